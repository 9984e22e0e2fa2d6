use burn::tensor::{Device, Tensor};
use sparsek::sparse::{Adjacency, Pattern, spmm};

use super::error::LinkError;
use crate::graph::MAX_SIZE;

/// Gathers and scores pairs of nodes on a device; clones share buffers.
///
/// Deterministic, with gradients, in f32, f64, f16 or bf16. Panics unless z has one row per node.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::links::LinkPairs;
///
/// let device = Device::flex();
/// let z = Tensor::<2>::from_floats([[1.0, 2.0], [3.0, 0.0], [0.0, 5.0]], &device);
/// let pairs = LinkPairs::new(3, &[(2, 0), (0, 1)], &device).unwrap();
/// let scores = pairs.dot_scores(z).try_into_vec_as::<f32>().unwrap();
/// assert_eq!(scores, [10.0, 3.0]);
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LinkPairs {
    /// `[pairs, nodes]`, one entry per row.
    sources: Adjacency,
    targets: Adjacency,
}

impl LinkPairs {
    /// Uploads (source, target) pairs; errors for bad ids and above [`MAX_SIZE`].
    pub fn new(nodes: usize, pairs: &[(u32, u32)], device: &Device) -> Result<Self, LinkError> {
        if pairs.len() > MAX_SIZE {
            return Err(LinkError::TooManyPairs { pairs: pairs.len() });
        }
        let outside = |&(s, t): &(u32, u32)| s.max(t) as usize >= nodes;
        if let Some(pair) = pairs.iter().position(outside) {
            return Err(LinkError::NodeOutOfRange { pair, ids: pairs[pair], nodes });
        }
        let device = device.clone().without_autodiff();
        let rows = |ids: Vec<u32>| {
            let each = (0..=pairs.len() as u32).collect();
            let pattern = Pattern::new(pairs.len(), nodes, each, ids).expect("ids are in range");
            Adjacency::new(&pattern, &device)
        };
        let (sources, targets) = pairs.iter().copied().unzip();
        Ok(Self { sources: rows(sources), targets: rows(targets) })
    }

    /// Pair count.
    pub fn count(&self) -> usize {
        self.sources.nnz()
    }

    /// `y[e] = z[s]` of pair `e = (s, t)`: [nodes, width] → [pairs, width].
    pub fn gather_sources(&self, z: Tensor<2>) -> Tensor<2> {
        spmm(&self.sources, z)
    }

    /// `y[e] = z[t]`, as [`gather_sources`](Self::gather_sources).
    pub fn gather_targets(&self, z: Tensor<2>) -> Tensor<2> {
        spmm(&self.targets, z)
    }

    /// Logits `y[e] = z[s]·z[t]`: `[nodes, width]` → `[pairs]`.
    pub fn dot_scores(&self, z: Tensor<2>) -> Tensor<1> {
        let sources = self.gather_sources(z.clone());
        (sources * self.gather_targets(z)).sum_dim(1).reshape([self.count()])
    }
}
