mod device;
mod error;
mod host;
mod types;

use burn::tensor::{DType, Device, Int, IntDType, Tensor, kind::Ordered};
use sparsek_kernels::topk::{Method, TopkOptions};

pub use self::error::ShardedError;
use self::types::Part;
use super::{
    lists::{Request, device_name},
    request::is_supported,
};

/// `k` greatest (or least) elements of a vector sharded over devices, and their indices.
///
/// ```text
/// each device selects up to k elements of each of its shards, all queued before any is awaited
/// while more than 4 lists: devices merge them in pairs
/// the first shard's device merges the rest
/// ```
///
/// Lists move through the host; autodiff values move directly.
///
/// # Shapes
///
/// - `shards`: consecutive vectors of any length and device. One dtype: f32, f16, bf16, f64, i32,
///   u32 or i64.
/// - values, indices: `[k]` on the first shard's device; i64, or i32 if a device lacks i64 and i32
///   suffices.
/// - `options.method`: exact.
///
/// # Guarantees
///
/// Bitwise [`topk`](super::topk) of the whole vector, with gradient. Exception: on autodiff CPU
/// devices of CubeCL, Burn's `cat` flushes bf16 subnormals.
///
/// # Errors
///
/// Only [`ShardedError::Device`] follows a launch. Later failures of the first device appear on
/// reading.
///
/// # Cost
///
/// One read per shard. s shards take log2(s) − 1 merges of 2 k elements and one of up to 4 k, at
/// 12 bytes per f32 both ways.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::topk::{TopkOptions, topk_sharded};
///
/// # fn main() -> Result<(), sparsek::topk::ShardedError> {
/// // Two devices, one of them twice.
/// let devices = [Device::flex(), Device::flex()];
/// let shards = vec![
///     Tensor::<1>::from_data([0.5, 3.0, -1.0], &devices[0]),
///     Tensor::<1>::from_data([7.0], &devices[1]),
///     Tensor::<1>::from_data([3.0, 2.0], &devices[0]),
/// ];
/// let (values, indices) = topk_sharded(shards, &TopkOptions::new(2).with_sorted(true))?;
/// values.into_data().assert_eq(&TensorData::from([7.0, 3.0]), false);
/// indices.into_data().assert_eq(&TensorData::from([3, 1]), false);
/// # Ok(())
/// # }
/// ```
pub fn topk_sharded<K: Ordered>(
    shards: Vec<Tensor<1, K>>,
    options: &TopkOptions,
) -> Result<(Tensor<1, K>, Tensor<1, Int>), ShardedError> {
    let request = check(&shards, options)?;
    let (primary, dtype) = (shards[0].device(), shards[0].dtype());
    if options.k == 0 {
        let none = request.best(shards[0].clone().slice(0..0), false);
        return Ok((none.values, none.indices));
    }
    let mut parts = Vec::with_capacity(shards.len());
    let mut first = 0;
    for elements in shards {
        let length = elements.dims()[0];
        if length > 0 {
            parts.push(Part { elements, first });
        }
        first += length as i64;
    }
    let best = match &parts[..] {
        [only] if only.elements.device() == primary => {
            request.best(only.elements.clone(), options.sorted)
        }
        _ if primary.is_autodiff() => device::merge(&request, parts, &primary)?,
        _ => host::merge(&request, parts, &primary, dtype)?,
    };
    Ok((best.values, best.indices))
}

fn check<K: Ordered>(
    shards: &[Tensor<1, K>],
    options: &TopkOptions,
) -> Result<Request, ShardedError> {
    let first = shards.first().ok_or(ShardedError::NoShards)?;
    if options.method != Method::Exact {
        let method = options.method;
        return Err(ShardedError::Method { method });
    }
    let dtype = first.dtype();
    let autodiff = first.device().is_autodiff();
    let mut length = 0;
    for (shard, x) in shards.iter().enumerate() {
        let device = x.device();
        if x.dtype() != dtype {
            return Err(ShardedError::MixedDtypes { shard, first: dtype, found: x.dtype() });
        }
        if device.is_autodiff() != autodiff {
            return Err(ShardedError::MixedAutodiff { shard });
        }
        if !is_supported(dtype) || !device.supports_dtype(dtype) {
            let device = device_name(&device);
            return Err(ShardedError::Dtype { dtype, device });
        }
        length += x.dims()[0];
    }
    if options.k > length {
        return Err(ShardedError::KTooLarge { k: options.k, length });
    }
    let lacking =
        shards.iter().map(Tensor::device).find(|device| !device.supports_dtype(DType::I64));
    Ok(Request {
        k: options.k,
        largest: options.largest,
        sorted: options.sorted,
        index: index_dtype(length, lacking.as_ref())?,
    })
}

/// `lacking`: a device without i64.
fn index_dtype(length: usize, lacking: Option<&Device>) -> Result<IntDType, ShardedError> {
    match lacking {
        None => Ok(IntDType::I64),
        Some(_) if i32::try_from(length).is_ok() => Ok(IntDType::I32),
        Some(device) => Err(ShardedError::IndexDtype { length, device: device_name(device) }),
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use rstest::{fixture, rstest};

    use super::*;

    #[fixture]
    fn device() -> Device {
        Device::flex()
    }

    #[rstest]
    fn indices_beyond_32_bits_are_exact(device: Device) {
        let request = Request { k: 3, largest: true, sorted: true, index: IntDType::I64 };
        let far = (1i64 << 53) + 1;
        let shards = (0..6).map(|i| Tensor::<1>::from_floats([1.0, i as f32, 5.0], &device));
        let parts = (shards.enumerate())
            .map(|(i, elements)| Part { elements, first: i as i64 * far })
            .collect();
        let best = host::merge(&request, parts, &device, DType::F32).unwrap();
        let found: Vec<i64> = best.indices.into_data().iter::<i64>().collect();
        assert_eq!(found, [2, far + 2, 2 * far + 2]);
    }

    #[rstest]
    fn short_vectors_do_without_64_bits(device: Device) {
        let most = i32::MAX as usize;
        assert_eq!(index_dtype(most + 1, None), Ok(IntDType::I64));
        assert_eq!(index_dtype(most, Some(&device)), Ok(IntDType::I32));
        assert!(matches!(
            index_dtype(most + 1, Some(&device)),
            Err(ShardedError::IndexDtype { length, .. }) if length == most + 1
        ));
    }
}
