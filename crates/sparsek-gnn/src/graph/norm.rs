//! How the edges of a graph are weighed.
use burn::config::Config;

use super::Graph;

/// What a message from `j` to `i` is multiplied with. `d(i)` is the sum of the weights of the edges into `i`, their number
/// where they have no weights; an infinite factor becomes 0.
#[derive(Config, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    /// `1 / √(d(i) d(j))`: Kipf and Welling, 2017, as PyG has it.
    Both,
    /// `1 / d'(j)`, with the weights of the edges out of `j`: what a node sends adds up to 1.
    Left,
    /// `1 / d(i)`: the mean over what a node receives.
    Right,
    /// 1.
    None,
}

impl Graph {
    /// The factors that turn sums into means: 1 / in-degree, and 0 for a node without incoming edges.
    pub fn mean_norm(&self) -> Vec<f64> {
        let inverse = |d| if d == 0 { 0.0 } else { f64::from(d).recip() };
        self.in_degrees().into_iter().map(inverse).collect()
    }

    /// The factor of each edge in CSR order, its weight included, where all edges weigh 1 but loops, which weigh `loops`.
    pub fn edge_norm(&self, norm: Norm, loops: f64) -> Vec<f64> {
        let mut weights = Vec::with_capacity(self.edges());
        let (mut into, mut out) = (vec![0.0; self.nodes()], vec![0.0; self.nodes()]);
        for (target, source) in self.pairs() {
            let weight = if target == source { loops } else { 1.0 };
            weights.push(weight);
            into[target] += weight;
            out[source] += weight;
        }
        let inverse = |d: f64| if d == 0.0 { 0.0 } else { d.recip() };
        let factors = self.pairs().zip(weights);
        factors
            .map(|((target, source), weight)| {
                weight
                    * match norm {
                        Norm::Both => inverse(into[target].sqrt()) * inverse(into[source].sqrt()),
                        Norm::Left => inverse(out[source]),
                        Norm::Right => inverse(into[target]),
                        Norm::None => 1.0,
                    }
            })
            .collect()
    }

    /// Target and source of each edge in CSR order.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let row = move |target| self.neighbours(target).iter().map(move |&j| (target, j));
        let pairs = (0..self.nodes()).flat_map(row);
        pairs.map(|(target, source)| (target, source as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_by_hand() {
        let graph = Graph::from_edges(3, [(0, 0), (0, 1), (1, 1), (2, 1)]).unwrap();
        let norm = |norm| graph.edge_norm(norm, 1.0);
        let both = [1.0, 3f64.sqrt().recip(), 1.0 / 3.0, 0.0];
        assert!(
            norm(Norm::Both)
                .iter()
                .zip(both)
                .all(|(a, b)| (a - b).abs() < 1e-15)
        );
        assert_eq!(norm(Norm::Left), [0.5, 0.5, 1.0, 1.0]);
        assert_eq!(norm(Norm::Right), [1.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0]);
        assert_eq!(graph.edge_norm(Norm::None, 2.0), [2.0, 1.0, 2.0, 1.0]);
        assert_eq!(graph.edge_norm(Norm::Right, 2.0)[1..], [0.25, 0.5, 0.25]);
    }
}
