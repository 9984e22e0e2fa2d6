use burn::{
    module::ParamGroup,
    optim::{
        Adam, AdamConfig, DynOptimizer, DynState, LearningRate, ModuleOptimizer, StateSink,
        StateSource, decay::WeightDecayConfig,
    },
    tensor::{Device, kind::BridgeTensor},
};

use super::config::TrainConfig;

pub(super) fn adam(config: &TrainConfig, device: &Device) -> ModuleOptimizer {
    let penalty = config.weight_decay as f32;
    let decay = (penalty > 0.0).then(|| WeightDecayConfig::new(penalty));
    let adam = AdamConfig::new()
        .with_epsilon(1e-8)
        .with_weight_decay(decay);
    let located = Located {
        adam: adam.build(),
        device: device.clone().without_autodiff(),
    };
    adam.init().with_group(ParamGroup::all(), located, None)
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
