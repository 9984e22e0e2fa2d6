//! Predictions from neighbors, as scikit-learn 1.9's `KNeighborsClassifier` and
//! `KNeighborsRegressor` make them.

use super::distance::Neighbor;

/// Weights of neighbors: 1, or 1 / distance, where distances of 0 count alone.
pub fn weights(neighbors: &[Neighbor], by_distance: bool) -> Vec<f64> {
    let exact = neighbors.iter().any(|&(_, d)| d == 0.0);
    let weight = |&(_, d): &Neighbor| match (by_distance, exact) {
        (false, _) => 1.0,
        (true, true) => f64::from(u8::from(d == 0.0)),
        (true, false) => 1.0 / d,
    };
    neighbors.iter().map(weight).collect()
}

/// Share of the votes of each class, ascending.
pub fn shares(neighbors: &[Neighbor], labels: &[i64], by_distance: bool) -> Vec<f64> {
    let mut classes = labels.to_vec();
    classes.sort_unstable();
    classes.dedup();
    let weights = weights(neighbors, by_distance);
    let total: f64 = weights.iter().sum();
    let votes = |class: &i64| -> f64 {
        let voters = neighbors.iter().zip(&weights);
        let voters = voters.filter(|((row, _), _)| labels[*row] == *class);
        voters.map(|(_, weight)| weight / total).sum()
    };
    classes.iter().map(votes).collect()
}

/// Mean of each output; `targets` has a row per index row.
pub fn means(neighbors: &[Neighbor], targets: &[Vec<f64>], by_distance: bool) -> Vec<f64> {
    let weights = weights(neighbors, by_distance);
    let total: f64 = weights.iter().sum();
    let mean = |output: usize| -> f64 {
        let voters = neighbors.iter().zip(&weights);
        voters.map(|((row, _), weight)| weight * targets[*row][output]).sum::<f64>() / total
    };
    (0..targets[0].len()).map(mean).collect()
}
