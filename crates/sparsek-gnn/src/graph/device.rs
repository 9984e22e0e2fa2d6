//! Device constants, outside autodiff.

use std::sync::PoisonError;

use burn::tensor::{DType, Device, Tensor};
use sparsek::sparse::{Adjacency, MessagePassing, Pattern, Scaling};

use super::{
    bipartite::{Constants, summed},
    types::{Constant, DeviceCache, Graph, Norm},
};

impl Graph {
    /// CSR pattern and transpose; cached.
    pub fn adjacency(&self, device: &Device) -> Adjacency {
        self.inner.edges.adjacency(device)
    }

    /// Operations along edges; cached.
    ///
    /// ```
    /// # #[cfg(feature = "flex")] {
    /// use burn::tensor::{Device, Tensor};
    /// use sparsek_gnn::Graph;
    ///
    /// let graph = Graph::from_edges(3, [(0, 2), (1, 2)]).unwrap();
    /// let x = Tensor::<2>::from_floats([[1.0], [2.0], [4.0]], &Device::flex());
    /// let edges = graph.messages(&x.device());
    /// let y = edges.scatter_min(edges.gather(x)).try_into_vec_as::<f32>().unwrap();
    /// assert_eq!(y, [0.0, 0.0, 1.0]);
    /// # }
    /// ```
    pub fn messages(&self, device: &Device) -> MessagePassing {
        self.inner.edges.messages(device)
    }

    /// Scales sums to means; cached.
    pub fn mean_scaling(&self, device: &Device, dtype: DType) -> Scaling {
        self.inner.edges.mean_scaling(device, dtype)
    }

    /// Scales by `norm`, loops weighing `loops`; cached.
    pub fn scaling(&self, device: &Device, dtype: DType, norm: Norm, loops: f64) -> Scaling {
        let mut scaling = Scaling::default();
        if matches!(norm, Norm::Both | Norm::Right) {
            let key = Constant::Targets { norm, loops };
            let targets = || self.side(norm, loops, 0);
            scaling = scaling.with_rows(self.constant(device, summed(dtype), key, targets));
        }
        if matches!(norm, Norm::Both | Norm::Left) {
            let key = Constant::Sources { norm, loops };
            let sources = || self.side(norm, loops, 1);
            scaling = scaling.with_cols(self.constant(device, summed(dtype), key, sources));
        }
        if loops != 1.0 {
            let key = Constant::Loops { weight: loops };
            let weigh = |(i, j)| if i == j { loops } else { 1.0 };
            let weights = || self.pairs().map(weigh).collect();
            scaling = scaling.with_weights(self.constant(device, dtype, key, weights));
        }
        scaling
    }

    /// `1 / √(d(i) d(j))` of out-degrees.
    pub(crate) fn out_scaling(&self, device: &Device, dtype: DType) -> Scaling {
        let roots = self.constant(device, summed(dtype), Constant::OutRoots, || {
            let root = |d: u32| if d == 0 { 0.0 } else { f64::from(d).sqrt().recip() };
            self.out_degrees().into_iter().map(root).collect()
        });
        Scaling::default().with_rows(roots.clone()).with_cols(roots)
    }

    fn side(&self, norm: Norm, loops: f64, side: usize) -> Vec<f64> {
        let [targets, sources] = self.node_norm(norm, loops);
        let factors = if side == 0 { targets } else { sources };
        factors.expect("the caller matches on the norm")
    }

    /// `[nodes, edges]`: sums edges by source.
    pub(crate) fn outgoing(&self, device: &Device) -> Adjacency {
        self.on_device(device, |slot| {
            let make = || {
                let (transposed, entries) = self.pattern().transpose();
                let indptr = transposed.indptr().to_vec();
                let sums = Pattern::new(self.nodes(), self.edges(), indptr, entries);
                Adjacency::new(&sums.expect("every edge leaves a node"), &slot.device)
            };
            slot.outgoing.get_or_insert_with(make).clone()
        })
    }

    pub(crate) fn looped_weights(&self, weights: Tensor<1>, loops: f64) -> Tensor<1> {
        let device = weights.device();
        let (edges, nodes) = (self.edges(), self.nodes());
        let sources = self.looped().sources.clone();
        let gather = self.on_device(&device, |slot| {
            let make = || {
                let (rows, cols) = (sources.len(), edges + nodes);
                let indptr = (0..=rows as u32).collect();
                let gather = Pattern::new(rows, cols, indptr, sources.to_vec());
                Adjacency::new(&gather.expect("every loop has a source"), &slot.device)
            };
            slot.looped.get_or_insert_with(make).clone()
        });
        let added = Tensor::full([nodes], loops, (&device, weights.dtype()));
        let all = Tensor::cat(vec![weights, added], 0).reshape([edges + nodes, 1]);
        sparsek::sparse::spmm(&gather, all).reshape([sources.len()])
    }

    /// Loops get the mean over other edges into their node, or 0.
    pub(crate) fn looped_features(&self, features: Tensor<2>) -> Tensor<2> {
        let edges = self.inner.loop_features.get_or_init(|| {
            let looped = self.with_self_loops();
            let indptr = self.pattern().indptr();
            let (mut ends, mut entries) = (vec![0], Vec::new());
            for ((target, source), &entry) in looped.pairs().zip(self.looped().sources.iter()) {
                if target == source {
                    let into = (indptr[target]..).zip(self.neighbors(target));
                    let others = into.filter(|&(_, &other)| other as usize != target);
                    entries.extend(others.map(|(entry, _)| entry));
                } else {
                    entries.push(entry);
                }
                ends.push(entries.len() as u32);
            }
            let pattern = Pattern::new(looped.edges(), self.edges(), ends, entries);
            pattern.unwrap_or_else(|error| panic!("features of self-loops: {error}")).into()
        });
        let (device, dtype) = (features.device(), features.dtype());
        let means = edges.mean_scaling(&device, dtype);
        sparsek::sparse::spmm_with(&edges.adjacency(&device), features, &means)
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

    fn on_device<T>(&self, device: &Device, get: impl FnOnce(&mut DeviceCache) -> T) -> T {
        let device = device.clone().without_autodiff();
        let slots = self.inner.devices.lock();
        let mut slots = slots.unwrap_or_else(PoisonError::into_inner);
        let found = slots.iter().position(|slot| slot.device == device);
        let at = found.unwrap_or_else(|| {
            slots.push(DeviceCache {
                device,
                outgoing: None,
                looped: None,
                constants: Constants::default(),
            });
            slots.len() - 1
        });
        get(&mut slots[at])
    }
}
