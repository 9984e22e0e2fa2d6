//! Top-k of one vector that is cut over several devices.

mod error;
mod lists;
mod tracked;

use burn::{
    backend::Dispatch,
    tensor::{DType, Device, Int, IntDType, Tensor, kind::Ordered},
};

pub use self::error::ShardedError;
use self::error::name;
use super::{Method, TopkOptions, select};
use crate::ops::{Lengths, TopkSpec};

/// Most lists that are merged in one step.
const MERGED: usize = 4;

/// The `k` greatest (or least) elements of one vector that is cut over several devices, and their positions in it.
///
/// Every device selects from its own shards; all are told so before any is waited for. What leaves a device is a list of at most k values and
/// indices. Lists come together on the host and are merged on the devices, in pairs until four are left, and then on the first shard's;
/// on autodiff devices values go from device to device.
///
/// # Shapes
///
/// - `shards`: vectors of any length, empty ones included, in the order in which they make up the whole; several
///   may be on one device. All of one dtype: f32, f16, bf16, f64, i32, u32 or i64 where the devices have it.
/// - values and indices: `[k]`, on the device of the first shard. Indices count from the start of the first shard. They
///   are i64; where a device has no i64, they are i32 if this can number the elements.
/// - `options.k` counts members of the whole vector, `options.dim` is -1 or 0, `options.method` is exact.
///
/// # Guarantees
///
/// Those of [`topk`](super::topk) of the whole vector: the same values and indices, bit for bit, however it is cut. Ties
/// go to the lowest index of the whole vector. Except on autodiff devices of CubeCL's CPU runtime, where Burn's `cat` sets subnormals of
/// bf16 to zero.
///
/// # Gradient
///
/// The gradient of the values goes back through the devices and is scattered to the positions that they came from in
/// every shard; all else gets zero. An empty shard takes no part.
///
/// # Errors
///
/// [`ShardedError`]. All but [`ShardedError::Device`] come before anything is launched. A device that refuses its shard, lacks memory or fails
/// is named, as its list is read before the result is made; what happens on the first device later is told, as by [`topk`](super::topk),
/// when the result is read.
///
/// # Cost
///
/// Each device reads its shards as in [`topk`](super::topk). With s shards, log2(s) - 1 merges follow one another, of 2 k elements and at last of
/// up to 4 k; for each, lists go to the host and back, 12 bytes for each member of f32. Up to four shards of short vectors take 0.2 to 0.3 ms more than one
/// selection, of which part passes while devices read long ones (NVIDIA H200).
///
/// # Example
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
        _ if primary.is_autodiff() => tracked::merge(&request, parts, &primary)?,
        _ => lists::merge(&request, parts, &primary, dtype)?,
    };
    Ok((best.values, best.indices))
}

/// Elements of the whole vector that are on one device, and the place of the first of them.
struct Part<K: Ordered> {
    elements: Tensor<1, K>,
    first: i64,
}

/// What is selected from every list.
#[derive(Clone, Copy, Debug)]
struct Request {
    k: usize,
    largest: bool,
    sorted: bool,
    index: IntDType,
}

/// Members and their places in the whole vector, or in what was selected from, in the order of these or of the members.
struct Selected<K: Ordered> {
    values: Tensor<1, K>,
    indices: Tensor<1, Int>,
}

impl Request {
    /// The best of so many elements, all of them where they are fewer than k.
    fn spec(&self, length: usize, sorted: bool) -> TopkSpec {
        TopkSpec {
            k: self.k.min(length),
            largest: self.largest,
            sorted,
            method: Method::Exact,
            index: self.index,
        }
    }

    fn best<K: Ordered>(&self, x: Tensor<1, K>, sorted: bool) -> Selected<K> {
        let spec = self.spec(x.dims()[0], sorted);
        let (values, indices) = select(x, Lengths::<Dispatch>::Whole, spec);
        Selected { values, indices }
    }
}

fn check<K: Ordered>(
    shards: &[Tensor<1, K>],
    options: &TopkOptions,
) -> Result<Request, ShardedError> {
    let first = shards.first().ok_or(ShardedError::NoShards)?;
    if !(-1..=0).contains(&options.dim) {
        return Err(ShardedError::Dimension { dim: options.dim });
    }
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
            return Err(ShardedError::MixedDtypes {
                shard,
                first: dtype,
                found: x.dtype(),
            });
        }
        if device.is_autodiff() != autodiff {
            return Err(ShardedError::MixedAutodiff { shard });
        }
        if !super::is_supported(dtype) || !device.supports_dtype(dtype) {
            let device = name(&device);
            return Err(ShardedError::Dtype { dtype, device });
        }
        length += x.dims()[0];
    }
    if options.k > length {
        return Err(ShardedError::KTooLarge {
            k: options.k,
            length,
        });
    }
    let lacking = shards
        .iter()
        .map(Tensor::device)
        .find(|device| !device.supports_dtype(DType::I64));
    Ok(Request {
        k: options.k,
        largest: options.largest,
        sorted: options.sorted,
        index: index_dtype(length, lacking.as_ref())?,
    })
}

/// The dtype of the indices, given a device that has no i64, if there is one.
fn index_dtype(length: usize, lacking: Option<&Device>) -> Result<IntDType, ShardedError> {
    match lacking {
        None => Ok(IntDType::I64),
        Some(_) if i32::try_from(length).is_ok() => Ok(IntDType::I32),
        Some(device) => Err(ShardedError::IndexDtype {
            length,
            device: name(device),
        }),
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;

    /// Places that need 64 bits survive offsets and merges.
    #[test]
    fn indices_beyond_32_bits_are_exact() {
        let device = Device::flex();
        let request = Request {
            k: 3,
            largest: true,
            sorted: true,
            index: IntDType::I64,
        };
        let far = (1i64 << 53) + 1;
        let shards = (0..6).map(|i| Tensor::<1>::from_floats([1.0, i as f32, 5.0], &device));
        let parts = (shards.enumerate())
            .map(|(i, elements)| Part {
                elements,
                first: i as i64 * far,
            })
            .collect();
        let best = lists::merge(&request, parts, &device, DType::F32).unwrap();
        let found: Vec<i64> = best.indices.into_data().iter::<i64>().collect();
        assert_eq!(found, [2, far + 2, 2 * far + 2]);
    }

    #[test]
    fn short_vectors_do_without_64_bits() {
        let device = Device::flex();
        let most = i32::MAX as usize;
        assert_eq!(index_dtype(most + 1, None), Ok(IntDType::I64));
        assert_eq!(index_dtype(most, Some(&device)), Ok(IntDType::I32));
        assert!(matches!(
            index_dtype(most + 1, Some(&device)),
            Err(ShardedError::IndexDtype { length, .. }) if length == most + 1
        ));
    }
}
