use std::sync::{Arc, Mutex, PoisonError};

use burn::tensor::{DType, Device, Tensor, TensorData};
use sparsek::{
    io::memory,
    sparse::{Adjacency, MessagePassing, Pattern, Scaling},
};

use super::error::{GraphError, MAX_SIZE};

/// Immutable edges between source and target nodes with separate ids; otherwise as
/// [`Graph`](super::Graph).
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::graph::BipartiteGraph;
///
/// let ratings = BipartiteGraph::from_edges(3, 2, [(0, 1), (2, 1)]).unwrap();
/// assert_eq!(ratings.in_degrees(), [0, 2]);
/// let x = Tensor::<2>::from_floats([[1.0], [2.0], [4.0]], &Device::flex());
/// let edges = ratings.messages(&x.device());
/// let y = edges.scatter_sum(edges.gather(x)).try_into_vec_as::<f32>().unwrap();
/// assert_eq!(y, [0.0, 5.0]);
/// # }
/// ```
#[derive(Clone)]
pub struct BipartiteGraph {
    inner: Arc<Inner>,
}

struct Inner {
    pattern: Pattern,
    devices: Mutex<Vec<DeviceCache>>,
}

struct DeviceCache {
    device: Device,
    adjacency: Adjacency,
    messages: Option<MessagePassing>,
    constants: Constants<Constant>,
}

#[derive(Clone, Copy, PartialEq)]
enum Constant {
    Mean,
    Degree,
}

impl BipartiteGraph {
    /// Takes (source, target) edges in any order, in linear time plus row sorts.
    ///
    /// Errors for bad ids, and above [`MAX_SIZE`] or the [`sparsek::io::memory`] limit.
    pub fn from_edges(
        sources: usize,
        targets: usize,
        edges: impl IntoIterator<Item = (u32, u32)>,
    ) -> Result<Self, GraphError> {
        for nodes in [sources, targets] {
            if nodes > MAX_SIZE {
                return Err(GraphError::TooManyNodes { nodes });
            }
        }
        let bytes = memory::product(&[sources.max(targets), 2 * size_of::<u32>()]);
        memory::check(format_args!("a graph from {sources} to {targets} nodes"), bytes)?;
        let mut list = Vec::new();
        let mut indptr = vec![0u32; targets + 1];
        for (edge, (source_id, target_id)) in edges.into_iter().enumerate() {
            if edge >= MAX_SIZE {
                return Err(GraphError::TooManyEdges);
            }
            if source_id as usize >= sources || target_id as usize >= targets {
                return Err(GraphError::EdgeOutOfRange {
                    edge,
                    source_id,
                    target_id,
                    sources,
                    targets,
                });
            }
            indptr[target_id as usize + 1] += 1;
            list.push((source_id, target_id));
        }
        for i in 0..targets {
            indptr[i + 1] += indptr[i];
        }
        let mut next = indptr.clone();
        let mut indices = vec![0u32; list.len()];
        for (source, target) in list {
            let slot = &mut next[target as usize];
            indices[*slot as usize] = source;
            *slot += 1;
        }
        for row in indptr.windows(2) {
            indices[row[0] as usize..row[1] as usize].sort_unstable();
        }
        Ok(Pattern::new(targets, sources, indptr, indices)?.into())
    }

    /// Source count.
    pub fn sources(&self) -> usize {
        self.inner.pattern.cols()
    }

    /// Target count.
    pub fn targets(&self) -> usize {
        self.inner.pattern.rows()
    }

    /// Edge count.
    pub fn edges(&self) -> usize {
        self.inner.pattern.nnz()
    }

    /// CSR pattern, targets × sources.
    pub fn pattern(&self) -> &Pattern {
        &self.inner.pattern
    }

    /// Row lengths.
    pub fn in_degrees(&self) -> Vec<u32> {
        self.inner.pattern.indptr().windows(2).map(|w| w[1] - w[0]).collect()
    }

    /// Reverses every edge.
    pub fn reversed(&self) -> Self {
        self.inner.pattern.transpose().0.into()
    }

    /// Inverse in-degree, or 0.
    pub fn mean_norm(&self) -> Vec<f64> {
        let inverse = |d| if d == 0 { 0.0 } else { f64::from(d).recip() };
        self.in_degrees().into_iter().map(inverse).collect()
    }

    /// CSR pattern and transpose; cached.
    pub fn adjacency(&self, device: &Device) -> Adjacency {
        self.on_device(device, |slot| slot.adjacency.clone())
    }

    /// Operations along edges; cached.
    pub fn messages(&self, device: &Device) -> MessagePassing {
        self.on_device(device, |slot| {
            let make = || {
                let adjacency = slot.adjacency.clone();
                MessagePassing::with_adjacency(&self.inner.pattern, adjacency, &slot.device)
            };
            slot.messages.get_or_insert_with(make).clone()
        })
    }

    /// Scales sums to means; cached.
    pub fn mean_scaling(&self, device: &Device, dtype: DType) -> Scaling {
        let mean = self.constant(device, summed(dtype), Constant::Mean, || self.mean_norm());
        Scaling::default().with_rows(mean)
    }

    pub(crate) fn degrees(&self, device: &Device, dtype: DType) -> Tensor<1> {
        self.constant(device, summed(dtype), Constant::Degree, || {
            self.in_degrees().into_iter().map(f64::from).collect()
        })
    }

    fn constant(
        &self,
        device: &Device,
        dtype: DType,
        key: Constant,
        values: impl FnOnce() -> Vec<f64>,
    ) -> Tensor<1> {
        self.on_device(device, |slot| slot.constants.get(key, &slot.device, dtype, values))
    }

    /// A single row would be broadcast.
    pub(crate) fn check_targets(&self, layer: &str, targets: &Tensor<2>) {
        let (found, expected) = (targets.dims()[0], self.targets());
        assert!(found == expected, "{layer}: {found} rows for {expected} targets");
    }

    fn on_device<T>(&self, device: &Device, get: impl FnOnce(&mut DeviceCache) -> T) -> T {
        let device = device.clone().without_autodiff();
        let slots = self.inner.devices.lock();
        let mut slots = slots.unwrap_or_else(PoisonError::into_inner);
        let found = slots.iter().position(|slot| slot.device == device);
        let at = found.unwrap_or_else(|| {
            let adjacency = Adjacency::new(&self.inner.pattern, &device);
            slots.push(DeviceCache {
                device,
                adjacency,
                messages: None,
                constants: Constants::default(),
            });
            slots.len() - 1
        });
        get(&mut slots[at])
    }
}

impl From<Pattern> for BipartiteGraph {
    fn from(pattern: Pattern) -> Self {
        Self { inner: Arc::new(Inner { pattern, devices: Mutex::default() }) }
    }
}

impl std::fmt::Debug for BipartiteGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BipartiteGraph")
            .field("sources", &self.sources())
            .field("targets", &self.targets())
            .field("edges", &self.edges())
            .finish_non_exhaustive()
    }
}

pub(super) struct Constants<K>(Vec<(K, DType, Tensor<1>)>);

impl<K> Default for Constants<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Copy + PartialEq> Constants<K> {
    pub fn get(
        &mut self,
        key: K,
        device: &Device,
        dtype: DType,
        values: impl FnOnce() -> Vec<f64>,
    ) -> Tensor<1> {
        if let Some((.., tensor)) = self.0.iter().find(|(k, d, _)| (*k, *d) == (key, dtype)) {
            return tensor.clone();
        }
        let values = values();
        let shape = [values.len()];
        let tensor = Tensor::from_data(TensorData::new(values, shape), (device, dtype));
        self.0.push((key, dtype, tensor.clone()));
        tensor
    }
}

pub(super) fn summed(dtype: DType) -> DType {
    match dtype {
        DType::F64 => DType::F64,
        _ => DType::F32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_become_sorted_rows_of_sources() {
        let graph = BipartiteGraph::from_edges(4, 2, [(3, 0), (1, 0), (3, 0)]).unwrap();
        assert_eq!((graph.sources(), graph.targets(), graph.edges()), (4, 2, 3));
        assert_eq!(graph.pattern().row(0), [1, 3, 3]);
        assert_eq!(graph.mean_norm(), [1.0 / 3.0, 0.0]);
        let reversed = graph.reversed();
        assert_eq!((reversed.sources(), reversed.targets()), (2, 4));
        assert_eq!(reversed.in_degrees(), [0, 1, 0, 2]);
    }

    #[test]
    fn ids_of_each_side_are_checked() {
        let error = |pair| BipartiteGraph::from_edges(4, 2, [(0, 0), pair]).unwrap_err();
        let expected = |source_id, target_id| GraphError::EdgeOutOfRange {
            edge: 1,
            source_id,
            target_id,
            sources: 4,
            targets: 2,
        };
        assert_eq!(error((4, 1)), expected(4, 1));
        assert_eq!(error((3, 2)), expected(3, 2));
        assert!(BipartiteGraph::from_edges(4, 2, [(3, 1)]).is_ok());
    }
}
