//! Adam (Kingma and Ba, ICLR 2015) with one launch per parameter; its state is Burn's.
use burn::{
    module::ParamGroup,
    optim::{
        AdamState, AdaptiveMomentumState, DynOptimizer, DynState, LearningRate, ModuleOptimizer,
        Optimizer, StateSink, StateSource,
    },
    tensor::{Device, Tensor, kind::BridgeTensor},
};
use sparsek::dense::{AdamFactors, adam_step};

use super::config::TrainConfig;

const BETA_1: f32 = 0.9;
const BETA_2: f32 = 0.999;
const EPSILON: f32 = 1e-8;

pub(super) fn adam(config: &TrainConfig, device: &Device) -> ModuleOptimizer {
    let adam = Adam { decay: config.weight_decay as f32 };
    let located = Located { adam: adam.clone(), device: device.clone().without_autodiff() };
    ModuleOptimizer::from(adam).with_group(ParamGroup::all(), located, None)
}

#[derive(Clone)]
struct Adam {
    decay: f32,
}

impl Adam {
    /// Factors of step `time`, from 1.
    fn factors(&self, lr: LearningRate, time: usize) -> AdamFactors {
        let time = time as i32;
        let correction = (1.0 - BETA_2.powi(time)).sqrt();
        AdamFactors {
            beta_1: BETA_1,
            beta_2: BETA_2,
            decay: self.decay,
            rate: lr as f32 * (correction / (1.0 - BETA_1.powi(time))),
            epsilon: EPSILON * correction,
        }
    }
}

impl Optimizer for Adam {
    type State<const D: usize> = AdamState<D>;

    fn step<const D: usize>(
        &self,
        lr: LearningRate,
        tensor: Tensor<D>,
        grad: Tensor<D>,
        state: Option<Self::State<D>>,
    ) -> (Tensor<D>, Option<Self::State<D>>) {
        let before = state.map(|state| state.momentum).unwrap_or_else(|| {
            let zeros = tensor.zeros_like();
            AdaptiveMomentumState::new(0, zeros.clone(), zeros)
        });
        let time = before.time + 1;
        let moments = [before.moment_1, before.moment_2];
        let (tensor, [first, second]) = adam_step(tensor, grad, moments, self.factors(lr, time));
        let state = AdamState::new(AdaptiveMomentumState::new(time, first, second));
        (tensor, Some(state))
    }

    fn to_device<const D: usize>(mut state: Self::State<D>, device: &Device) -> Self::State<D> {
        state.momentum = state.momentum.to_device(device);
        state
    }
}

/// Burn 0.22.1 restores state on `Device::default()`, which may not exist: replaces the device.
struct Located {
    adam: Adam,
    device: Device,
}

impl DynOptimizer for Located {
    fn step_dyn(
        &self,
        rank: usize,
        lr: LearningRate,
        tensor: BridgeTensor,
        grad: BridgeTensor,
        state: Option<DynState>,
    ) -> (BridgeTensor, Option<DynState>) {
        self.adam.step_dyn(rank, lr, tensor, grad, state)
    }

    fn to_device_dyn(&self, state: DynState, device: &Device) -> DynState {
        self.adam.to_device_dyn(state, device)
    }

    fn state_flatten(&self, prefix: &str, state: &DynState, out: &mut StateSink) {
        self.adam.state_flatten(prefix, state, out);
    }

    fn state_unflatten(
        &self,
        rank: usize,
        prefix: &str,
        src: &mut StateSource,
        _: &Device,
    ) -> Option<DynState> {
        self.adam.state_unflatten(rank, prefix, src, &self.device)
    }
}
