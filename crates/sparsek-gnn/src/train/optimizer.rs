//! Adam takes one launch per parameter and keeps Burn's state.

use std::fmt::Debug;

use burn::{
    config::Config,
    grad_clipping::GradientClipping,
    module::ParamGroup,
    optim::{
        AdaGrad, AdaGradConfig, Adam as BurnAdam, AdamConfig, AdamState, AdamW, AdamWConfig, Adan,
        AdanConfig, AdaptiveMomentumState, DynOptimizer, DynState, Lamb, LambConfig, LearningRate,
        Lion, LionConfig, ModuleOptimizer, Optimizer, RmsProp, RmsPropConfig, Sgd, SgdConfig,
        StateSink, StateSource,
    },
    tensor::{Device, Tensor, kind::BridgeTensor},
};
use serde_json::{Value, json};
use sparsek::{
    dense::{AdamFactors, adam_step},
    steps::{StepRow, adam_step_in_place},
};

use super::json::to_json;
use crate::step::optimizer_step;

const BETA_1: f32 = 0.9;
const BETA_2: f32 = 0.999;
const EPSILON: f32 = 1e-8;

/// Optimizer for [`Trainer::with_optimizer`](super::Trainer::with_optimizer): Burn's Adam, AdamW,
/// AdaGrad, Adan, Lamb, Lion, RmsProp or Sgd.
pub trait OptimizerConfig: Config + Debug + Send + Sync + 'static {
    /// Its optimizer.
    type Optimizer: Optimizer;

    /// Name; resumption compares it.
    fn name(&self) -> String;

    /// Builds it without gradient clipping.
    fn build(&self) -> Self::Optimizer;
}

macro_rules! optimizers {
    ($($config:ident => $optimizer:ty),* $(,)?) => {$(
        impl OptimizerConfig for $config {
            type Optimizer = $optimizer;

            fn name(&self) -> String {
                stringify!($optimizer).to_string()
            }

            fn build(&self) -> $optimizer {
                $config::build(self)
            }
        }
    )*};
}

optimizers! {
    AdaGradConfig => AdaGrad,
    AdamConfig => BurnAdam,
    AdamWConfig => AdamW,
    AdanConfig => Adan,
    LambConfig => Lamb,
    LionConfig => Lion,
    RmsPropConfig => RmsProp,
    SgdConfig => Sgd,
}

pub(super) trait AnyOptimizer: Debug + Send + Sync {
    fn optimizer(&self, device: &Device, clipping: Option<GradientClipping>) -> ModuleOptimizer;

    fn record(&self) -> Value;
}

impl<C: OptimizerConfig> AnyOptimizer for C {
    fn optimizer(&self, device: &Device, clipping: Option<GradientClipping>) -> ModuleOptimizer {
        located(self.build(), device, clipping)
    }

    fn record(&self) -> Value {
        json!({ "name": self.name(), "config": to_json(self) })
    }
}

pub(super) fn adam(
    weight_decay: f64,
    device: &Device,
    clipping: Option<GradientClipping>,
) -> ModuleOptimizer {
    located(Adam { decay: weight_decay as f32 }, device, clipping)
}

pub(super) fn adam_row(lr: LearningRate, time: usize, seed: u64) -> StepRow {
    let AdamFactors { rate, epsilon, .. } = Adam { decay: 0.0 }.factors(lr, time);
    StepRow { rate, epsilon, seed: [seed as u32, (seed >> 32) as u32] }
}

fn located<O: Optimizer>(
    optimizer: O,
    device: &Device,
    clipping: Option<GradientClipping>,
) -> ModuleOptimizer {
    let device = device.clone().without_autodiff();
    let located = Located { optimizer: optimizer.clone(), device };
    ModuleOptimizer::from(optimizer).with_group(ParamGroup::all(), located, clipping)
}

#[derive(Clone)]
struct Adam {
    decay: f32,
}

impl Adam {
    /// `time` counts from 1.
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
        // Not clones: a step in place needs buffers apart.
        let zeros = || tensor.zeros_like();
        let before = state.map(|state| state.momentum);
        let before = before.unwrap_or_else(|| AdaptiveMomentumState::new(0, zeros(), zeros()));
        let moments = [before.moment_1, before.moment_2];
        let (time, (tensor, [first, second])) = match optimizer_step() {
            Some((words, time)) => {
                let factors = self.factors(lr, time);
                (time, adam_step_in_place(tensor, grad, moments, &words, factors))
            }
            None => {
                let time = before.time + 1;
                (time, adam_step(tensor, grad, moments, self.factors(lr, time)))
            }
        };
        let state = AdamState::new(AdaptiveMomentumState::new(time, first, second));
        (tensor, Some(state))
    }

    fn to_device<const D: usize>(mut state: Self::State<D>, device: &Device) -> Self::State<D> {
        state.momentum = state.momentum.to_device(device);
        state
    }
}

/// Burn 0.22.1 restores state on `Device::default()`, which may not exist.
struct Located<O> {
    optimizer: O,
    device: Device,
}

impl<O: Optimizer> DynOptimizer for Located<O> {
    fn step_dyn(
        &self,
        rank: usize,
        lr: LearningRate,
        tensor: BridgeTensor,
        grad: BridgeTensor,
        state: Option<DynState>,
    ) -> (BridgeTensor, Option<DynState>) {
        self.optimizer.step_dyn(rank, lr, tensor, grad, state)
    }

    fn to_device_dyn(&self, state: DynState, device: &Device) -> DynState {
        self.optimizer.to_device_dyn(state, device)
    }

    fn state_flatten(&self, prefix: &str, state: &DynState, out: &mut StateSink) {
        self.optimizer.state_flatten(prefix, state, out);
    }

    fn state_unflatten(
        &self,
        rank: usize,
        prefix: &str,
        src: &mut StateSource,
        _: &Device,
    ) -> Option<DynState> {
        self.optimizer.state_unflatten(rank, prefix, src, &self.device)
    }
}
