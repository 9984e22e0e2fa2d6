//! Messages along edges, one after another in f64. Rows of messages are edges of the list.
//!
//! ```text
//! reduce:    y[t] = reduce over edges e = (s, t) of m[e]; 0 without edges
//! softmax:   y[e] = exp(s[e]) / Σ exp(s[f]) over the edges f into the target of e
//! attend:    y[t, h] = Σ over edges e = (s, t) of w[e, h] x[s, h]
//! ```

use super::layers::{Edges, Matrix};

/// Reduction of the messages into a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    Sum,
    Mean,
    Max,
    Min,
}

/// One message per edge, of its source, target and weight.
pub fn messages(edges: &Edges, of: impl Fn(usize, usize, f64) -> Vec<f64>) -> Matrix {
    edges.list.iter().map(|&(source, target, weight)| of(source, target, weight)).collect()
}

pub fn reduce(edges: &Edges, messages: &Matrix, how: Reduce) -> Matrix {
    let width = messages[0].len();
    let of = |node: usize, c: usize| {
        let into = edges.list.iter().zip(messages).filter(|(edge, _)| edge.1 == node);
        let values: Vec<f64> = into.map(|(_, message)| message[c]).collect();
        match how {
            _ if values.is_empty() => 0.0,
            Reduce::Sum => values.iter().sum(),
            Reduce::Mean => values.iter().sum::<f64>() / values.len() as f64,
            Reduce::Max => values.into_iter().fold(f64::NEG_INFINITY, f64::max),
            Reduce::Min => values.into_iter().fold(f64::INFINITY, f64::min),
        }
    };
    (0..edges.nodes).map(|node| (0..width).map(|c| of(node, c)).collect()).collect()
}

pub fn softmax(edges: &Edges, scores: &Matrix) -> Matrix {
    let powers: Matrix = scores.iter().map(|row| row.iter().map(|s| s.exp()).collect()).collect();
    let sums = reduce(edges, &powers, Reduce::Sum);
    let rows = edges.list.iter().zip(&powers);
    rows.map(|(edge, row)| row.iter().zip(&sums[edge.1]).map(|(p, sum)| p / sum).collect())
        .collect()
}

/// Dot products of the equal parts of two rows, one per head.
pub fn head_dots(a: &[f64], b: &[f64], heads: usize) -> Vec<f64> {
    let width = a.len() / heads;
    let pairs = a.chunks(width).zip(b.chunks(width));
    pairs.map(|(a, b)| a.iter().zip(b).map(|(a, b)| a * b).sum()).collect()
}

pub fn attend(edges: &Edges, weights: &Matrix, x: &Matrix) -> Matrix {
    let (heads, width) = (weights[0].len(), x[0].len());
    let mut y = vec![vec![0.0; width]; edges.nodes];
    for (&(source, target, _), weights) in edges.list.iter().zip(weights) {
        for c in 0..width {
            y[target][c] += weights[c * heads / width] * x[source][c];
        }
    }
    y
}

pub fn leaky_relu(x: f64, slope: f64) -> f64 {
    if x < 0.0 { slope * x } else { x }
}

/// The mean of the equal parts of each row.
pub fn head_mean(x: &Matrix, heads: usize) -> Matrix {
    let mean = |row: &Vec<f64>| {
        let width = row.len() / heads;
        let of = |c| (0..heads).map(|h| row[h * width + c]).sum::<f64>() / heads as f64;
        (0..width).map(of).collect()
    };
    x.iter().map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_heads_by_hand() {
        let edges = Edges { nodes: 3, list: vec![(0, 2, 1.0), (1, 2, 1.0), (2, 0, 1.0)] };
        let scores = vec![vec![0.0, 1.0], vec![3f64.ln(), 1.0], vec![5.0, 5.0]];
        let weights = softmax(&edges, &scores);
        assert!(
            weights
                .concat()
                .iter()
                .zip([0.25, 0.5, 0.75, 0.5, 1.0, 1.0])
                .all(|(a, b)| { (a - b).abs() < 1e-15 })
        );
        let x = vec![vec![4.0, 2.0], vec![8.0, 6.0], vec![1.0, 3.0]];
        let y = attend(&edges, &weights, &x);
        let expected = [[1.0, 3.0], [0.0, 0.0], [7.0, 4.0]];
        assert!(y.concat().iter().zip(expected.concat()).all(|(a, b)| (a - b).abs() < 1e-14));
        assert_eq!(reduce(&edges, &x, Reduce::Min), [[1.0, 3.0], [0.0, 0.0], [4.0, 2.0]]);
        assert_eq!(head_dots(&[1.0, 2.0], &[3.0, 4.0], 2), [3.0, 8.0]);
        assert_eq!(head_mean(&x, 2), [[3.0], [7.0], [2.0]]);
    }
}
