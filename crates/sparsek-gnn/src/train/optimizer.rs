//! Adam whose saved state comes back on the device that it is for.
use burn::{
    module::ParamGroup,
    optim::{
        Adam, AdamConfig, DynOptimizer, DynState, LearningRate, ModuleOptimizer, StateSink,
        StateSource, decay::WeightDecayConfig,
    },
    tensor::{Device, kind::BridgeTensor},
};

use super::TrainConfig;

/// Builds Adam for parameters on `device`.
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

/// Burn 0.22.1 restores an optimizer's state on `Device::default()`, which is the first linked backend and may not
/// exist on the machine. This restores it on a given device; all else is Adam's.
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
