//! What several devices need to train together: checks, and the sum over them.
use burn::{
    backend::Device as _,
    tensor::{
        Device, Tensor,
        distributed::{CollectiveTensor, ReduceOperation, all_reduce},
    },
};

use super::{Batching, TrainConfig, TrainError, data::read};

/// Devices that cannot train together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DevicesError {
    /// The list is empty.
    #[error("there is no device to train on")]
    None,
    /// A device is there more than once.
    #[error("{device} is listed twice")]
    Repeated {
        /// The device.
        device: String,
    },
    /// The devices are not of one backend and type.
    #[error("{device} is not of the kind of {first}")]
    Kinds {
        /// The first device.
        first: String,
        /// One of another kind.
        device: String,
    },
    /// Batches are not parts of the graph.
    #[error("{devices} devices need batches of parts of the graph, a share for each")]
    Batching {
        /// Number of devices.
        devices: usize,
    },
    /// The devices would not get equally many parts; above all where there are more devices than parts.
    #[error("{parts} parts cannot be shared out evenly over {devices} devices")]
    Parts {
        /// Parts of the graph.
        parts: usize,
        /// Number of devices.
        devices: usize,
    },
    /// The backend cannot sum over devices.
    #[error(
        "{device} has no collective operations, which several devices need: CUDA has, where it finds NCCL as libnccl.so"
    )]
    Collectives {
        /// The device.
        device: String,
    },
}

impl TrainConfig {
    /// Checks that a model can be trained so on these devices. One device can always; nothing but the collectives of several is
    /// asked of a device.
    ///
    /// # Errors
    /// [`TrainError::Devices`].
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
            return Err(DevicesError::Repeated {
                device: name(device),
            });
        }
        if kind(device) != kind(first) {
            return Err(DevicesError::Kinds {
                first: name(first),
                device: name(device),
            });
        }
    }
    check_batches(batches, count)?;
    match devices.iter().find(|device| !has_collectives(device)) {
        None => Ok(()),
        Some(device) => Err(DevicesError::Collectives {
            device: name(device),
        }),
    }
}

/// Whether batches can be shared out over several devices.
pub(super) fn check_batches(batches: &Batching, devices: usize) -> Result<(), DevicesError> {
    match *batches {
        Batching::Parts { parts, .. } if parts.is_multiple_of(devices) => Ok(()),
        Batching::Parts { parts, .. } => Err(DevicesError::Parts { parts, devices }),
        _ => Err(DevicesError::Batching { devices }),
    }
}

/// The backend and its type of device.
fn kind(device: &Device) -> u16 {
    device.as_dispatch().to_id().type_id
}

/// Whether Burn can sum over such devices; where not, its `all_reduce` panics.
pub(super) fn has_collectives(device: &Device) -> bool {
    match device.clone().without_autodiff().as_dispatch() {
        #[cfg(any(
            feature = "cuda",
            feature = "vulkan",
            feature = "wgpu",
            feature = "metal",
            feature = "cpu"
        ))]
        burn::backend::DispatchDevice::Cube(device) => device.client().has_device_transport(),
        _ => false,
    }
}

/// From a tensor on each device to their sum on each.
pub(super) type Sum = fn(Vec<Tensor<1>>, &[Device]) -> Vec<Tensor<1>>;

/// By Burn's `all_reduce`, NCCL's on CUDA. Every device is asked before any is waited for, and for one tensor only: a device may
/// hold back what comes next until all have joined.
pub(super) fn sum_over_devices(each: Vec<Tensor<1>>, devices: &[Device]) -> Vec<Tensor<1>> {
    let ask = |tensor| all_reduce(tensor, ReduceOperation::Sum, devices.to_vec());
    let sums: Vec<_> = each.into_iter().map(ask).collect();
    sums.into_iter().map(CollectiveTensor::resolve).collect()
}

/// Counts the devices by a sum over them, so that a group that cannot be formed is found before anything is trained.
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
