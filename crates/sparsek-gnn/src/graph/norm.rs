use super::types::{Graph, Norm};

impl Graph {
    /// Inverse in-degree, or 0.
    pub fn mean_norm(&self) -> Vec<f64> {
        self.inner.edges.mean_norm()
    }

    /// Target and source factors of [`Norm`]; self-loops weigh `loops`, others 1.
    pub fn node_norm(&self, norm: Norm, loops: f64) -> [Option<Vec<f64>>; 2] {
        let (mut into, mut out) = (vec![0.0; self.nodes()], vec![0.0; self.nodes()]);
        for (target, source) in self.pairs() {
            let weight = if target == source { loops } else { 1.0 };
            into[target] += weight;
            out[source] += weight;
        }
        let inverse = |sums: Vec<f64>, root: bool| -> Vec<f64> {
            let power = |d: f64| if root { d.sqrt().recip() } else { d.recip() };
            let finite = |d: f64| if d == 0.0 { 0.0 } else { power(d) };
            sums.into_iter().map(finite).collect()
        };
        match norm {
            Norm::Both => {
                let root = inverse(into, true);
                [Some(root.clone()), Some(root)]
            }
            Norm::Left => [None, Some(inverse(out, false))],
            Norm::Right => [Some(inverse(into, false)), None],
            Norm::None => [None, None],
        }
    }

    /// (target, source) in CSR order.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let row = move |target| self.neighbors(target).iter().map(move |&j| (target, j));
        let pairs = (0..self.nodes()).flat_map(row);
        pairs.map(|(target, source)| (target, source as usize))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn root() -> Vec<f64> {
        vec![1.0, 3f64.sqrt().recip(), 0.0]
    }

    #[rstest]
    #[case::both(Norm::Both, 1.0, [Some(root()), Some(root())])]
    #[case::left(Norm::Left, 1.0, [None, Some(vec![0.5, 1.0, 1.0])])]
    #[case::right(Norm::Right, 2.0, [Some(vec![0.5, 0.25, 0.0]), None])]
    #[case::none(Norm::None, 2.0, [None, None])]
    fn factors_by_hand(
        #[case] norm: Norm,
        #[case] loops: f64,
        #[case] expected: [Option<Vec<f64>>; 2],
    ) {
        let graph = Graph::from_edges(3, [(0, 0), (0, 1), (1, 1), (2, 1)]).unwrap();
        assert_eq!(graph.node_norm(norm, loops), expected);
    }
}
