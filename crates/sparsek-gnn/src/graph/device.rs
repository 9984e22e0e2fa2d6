//! What of a graph is kept on devices. Tensors here are outside autodiff, where they act as constants.
use std::sync::PoisonError;

use burn::tensor::{DType, Device, Tensor, TensorData};
use sparsek::sparse::{Adjacency, Pattern, Scaling};

use super::{Graph, Norm};

/// What is kept for a device.
pub(super) struct OnDevice {
    device: Device,
    adjacency: Adjacency,
    /// Sums over the edges out of each node.
    departures: Option<Adjacency>,
    /// From the weights of the edges and of new loops to those of the graph with self-loops.
    looped: Option<Adjacency>,
    constants: Vec<(Constant, DType, Tensor<1>)>,
}

/// Numbers that depend on the graph alone.
#[derive(Clone, Copy, PartialEq)]
enum Constant {
    Mean,
    Targets { norm: Norm, loops: f64 },
    Sources { norm: Norm, loops: f64 },
    Loops { weight: f64 },
}

impl Graph {
    /// The pattern and its transpose on the device, uploaded on first use; autodiff of the device plays no part.
    pub fn adjacency(&self, device: &Device) -> Adjacency {
        self.on_device(device, |slot| slot.adjacency.clone())
    }

    /// What turns sums into means, made on first use.
    pub fn mean_scaling(&self, device: &Device, dtype: DType) -> Scaling {
        let mean = self.constant(device, summed(dtype), Constant::Mean, || self.mean_norm());
        Scaling::default().with_rows(mean)
    }

    /// What makes a sum the one that a norm asks for, where loops weigh `loops`, made on first use.
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

    fn side(&self, norm: Norm, loops: f64, side: usize) -> Vec<f64> {
        let [targets, sources] = self.node_norm(norm, loops);
        let factors = if side == 0 { targets } else { sources };
        factors.expect("asked for where the norm has them")
    }

    /// The matrix of nodes and edges that sums weights of edges over those out of each node.
    pub(crate) fn departures(&self, device: &Device) -> Adjacency {
        self.on_device(device, |slot| {
            let make = || {
                let (transposed, entries) = self.inner.pattern.transpose();
                let indptr = transposed.indptr().to_vec();
                let sums = Pattern::new(self.nodes(), self.edges(), indptr, entries);
                Adjacency::new(&sums.expect("every edge leaves a node"), &slot.device)
            };
            slot.departures.get_or_insert_with(make).clone()
        })
    }

    /// The weights of [`Graph::with_self_loops`]: those of the edges, `loops` for loops that are added.
    pub(crate) fn looped_weights(&self, weights: Tensor<1>, loops: f64) -> Tensor<1> {
        let device = weights.device();
        let (edges, nodes) = (self.edges(), self.nodes());
        let sources = self.looped().sources.clone();
        let picks = self.on_device(&device, |slot| {
            let make = || {
                let (rows, cols) = (sources.len(), edges + nodes);
                let indptr = (0..=rows as u32).collect();
                let picks = Pattern::new(rows, cols, indptr, sources.to_vec());
                Adjacency::new(&picks.expect("every loop has a source"), &slot.device)
            };
            slot.looped.get_or_insert_with(make).clone()
        });
        let added = Tensor::full([nodes], loops, (&device, weights.dtype()));
        let all = Tensor::cat(vec![weights, added], 0).reshape([edges + nodes, 1]);
        sparsek::sparse::spmm(&picks, all).reshape([sources.len()])
    }

    fn constant(
        &self,
        device: &Device,
        dtype: DType,
        key: Constant,
        values: impl FnOnce() -> Vec<f64>,
    ) -> Tensor<1> {
        self.on_device(device, |slot| {
            let mut made = slot.constants.iter();
            if let Some((.., tensor)) = made.find(|(k, d, _)| (*k, *d) == (key, dtype)) {
                return tensor.clone();
            }
            let values = values();
            let shape = [values.len()];
            let tensor = Tensor::from_data(TensorData::new(values, shape), (&slot.device, dtype));
            slot.constants.push((key, dtype, tensor.clone()));
            tensor
        })
    }

    fn on_device<T>(&self, device: &Device, get: impl FnOnce(&mut OnDevice) -> T) -> T {
        let device = device.clone().without_autodiff();
        let slots = self.inner.devices.lock();
        let mut slots = slots.unwrap_or_else(PoisonError::into_inner);
        let found = slots.iter().position(|slot| slot.device == device);
        let at = found.unwrap_or_else(|| {
            let adjacency = Adjacency::new(&self.inner.pattern, &device);
            slots.push(OnDevice {
                device,
                adjacency,
                departures: None,
                looped: None,
                constants: Vec::new(),
            });
            slots.len() - 1
        });
        get(&mut slots[at])
    }
}

/// What products of a dtype are summed in.
fn summed(dtype: DType) -> DType {
    match dtype {
        DType::F64 => DType::F64,
        _ => DType::F32,
    }
}
