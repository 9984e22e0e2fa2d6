use burn::{
    backend::Device as _,
    tensor::{
        Device, Tensor,
        distributed::{CollectiveTensor, ReduceOperation, all_reduce},
    },
};

use super::{
    config::{Batching, TrainConfig},
    data::read,
    error::{DevicesError, TrainError},
};

impl TrainConfig {
    /// Errors unless devices can train together.
    pub fn check_devices(&self, devices: &[Device]) -> Result<(), TrainError> {
        Ok(check(&self.batches, devices)?)
    }
}

fn check(batches: &Batching, devices: &[Device]) -> Result<(), DevicesError> {
    let first = devices.first().ok_or(DevicesError::None)?;
    let (name, count) = (|device: &Device| format!("{device:?}"), devices.len());
    if count == 1 {
        return Ok(());
    }
    for (at, device) in devices.iter().enumerate() {
        if devices[..at].contains(device) {
            return Err(DevicesError::Repeated { device: name(device) });
        }
        if kind(device) != kind(first) {
            return Err(DevicesError::Kinds { first: name(first), device: name(device) });
        }
    }
    check_batches(batches, count)?;
    match devices.iter().find(|device| !has_collectives(device)) {
        None => Ok(()),
        Some(device) => Err(DevicesError::Collectives { device: name(device) }),
    }
}

pub(super) fn check_batches(batches: &Batching, devices: usize) -> Result<(), DevicesError> {
    match *batches {
        Batching::Parts { parts, .. } if parts.is_multiple_of(devices) => Ok(()),
        Batching::Parts { parts, .. } => Err(DevicesError::Parts { parts, devices }),
        _ => Err(DevicesError::Batching { devices }),
    }
}

fn kind(device: &Device) -> u16 {
    device.as_dispatch().to_id().type_id
}

/// Burn's `all_reduce` panics without collectives.
pub(super) fn has_collectives(device: &Device) -> bool {
    match device.clone().without_autodiff().as_dispatch() {
        #[cfg(any(
            feature = "cuda",
            feature = "vulkan",
            feature = "wgpu",
            feature = "webgpu",
            feature = "rocm",
            feature = "metal",
            feature = "cpu"
        ))]
        burn::backend::DispatchDevice::Cube(device) => device.client().has_device_transport(),
        _ => false,
    }
}

pub(super) type Sum = fn(Vec<Tensor<1>>, &[Device]) -> Vec<Tensor<1>>;

/// Asks all before awaiting any: one may block until all join.
pub(super) fn sum_over_devices(each: Vec<Tensor<1>>, devices: &[Device]) -> Vec<Tensor<1>> {
    let ask = |tensor| all_reduce(tensor, ReduceOperation::Sum, devices.to_vec());
    let sums: Vec<_> = each.into_iter().map(ask).collect();
    sums.into_iter().map(CollectiveTensor::resolve).collect()
}

/// Finds broken groups early.
pub(super) fn join(devices: &[Device], sum: Sum) -> Result<(), TrainError> {
    let ones = devices.iter().map(|device| Tensor::ones([1], device));
    let wanted = devices.len() as f32;
    for count in sum(ones.collect(), devices) {
        let found = read(count)?;
        if found != [wanted] {
            let reason = format!("{wanted} devices counted themselves as {found:?}");
            return Err(TrainError::Device(reason));
        }
    }
    Ok(())
}
