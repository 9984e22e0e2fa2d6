//! Top-k of one vector that is cut over several devices.

use burn::{
    backend::Dispatch,
    tensor::{DType, Device, ExecutionError, Int, IntDType, Tensor, kind::Ordered},
};

use super::{Method, TopkOptions, select};
use crate::ops::{Lengths, TopkSpec};

/// Most lists that are merged in one step.
const MERGED: usize = 4;
/// Lists that go from device to device are filled up to a multiple of so many elements: collectives take as many as the buffer has, which
/// may be longer than the tensor, and wait without end where sender and receiver do not agree.
const BLOCK: usize = 256;

/// A refused or failed [`topk_sharded`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ShardedError {
    /// There is no shard, so no device for the result.
    #[error("topk_sharded: there are no shards")]
    NoShards,
    /// More members asked than the shards have elements.
    #[error("topk_sharded: k = {k} is greater than the {length} elements of all shards")]
    KTooLarge {
        /// Members asked.
        k: usize,
        /// Elements of all shards.
        length: usize,
    },
    /// The shards do not have one dtype.
    #[error("topk_sharded: shard {shard} has dtype {found:?}, the first has {first:?}")]
    MixedDtypes {
        /// Which shard.
        shard: usize,
        /// Dtype of the first shard.
        first: DType,
        /// Dtype of this one.
        found: DType,
    },
    /// Some shards are on autodiff devices and some are not.
    #[error("topk_sharded: shard {shard} and the first are not both on autodiff devices")]
    MixedAutodiff {
        /// Which shard.
        shard: usize,
    },
    /// The operation does not exist for this dtype, or the device lacks it.
    #[error("topk_sharded: dtype {dtype:?} is not supported by this operation or by {device}")]
    Dtype {
        /// Dtype of the shards.
        dtype: DType,
        /// The device of the shard.
        device: String,
    },
    /// A vector in shards has no other than exact members.
    #[error("topk_sharded: method {method:?} is not supported (supported: Exact)")]
    Method {
        /// Method asked.
        method: Method,
    },
    /// The options name another dimension than the only one.
    #[error("topk_sharded: dimension {dim} is out of range for a vector (expected -1 or 0)")]
    Dimension {
        /// Dimension asked.
        dim: isize,
    },
    /// The indices need 64 bits, which a device lacks.
    #[error("topk_sharded: {length} elements need indices of 64 bits, which {device} lacks")]
    IndexDtype {
        /// Elements of all shards.
        length: usize,
        /// The device.
        device: String,
    },
    /// A device failed while it selected from its shard.
    #[error("topk_sharded: {device} failed: {reason}")]
    Device {
        /// The device.
        device: String,
        /// What the runtime reports.
        reason: String,
    },
}

/// The `k` greatest (or least) elements of one vector that is cut over several devices, and their positions in it.
///
/// Every device selects from its own shards; all of these selections are launched before any is waited for. What goes
/// from device to device are lists of at most k values and indices, which are merged in pairs until four are
/// left, and then on the first shard's device. They go by way of the host; values on autodiff devices from device to device.
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
/// go to the lowest index of the whole vector. Except on CubeCL's CPU runtime, where Burn's `cat` sets subnormals of
/// bf16 to zero.
///
/// # Gradient
///
/// The gradient of the values goes back through the devices and is scattered to the positions that they came from in
/// every shard; all else gets zero. An empty shard takes no part.
///
/// # Errors
///
/// [`ShardedError`]. All but [`ShardedError::Device`] come before anything is launched. A device is asked whether
/// it failed before its list leaves it; what happens on the first device later is told, as by [`topk`](super::topk),
/// when the result is read.
///
/// # Panics
///
/// As [`topk`](super::topk), where a device's kernels refuse a shard.
///
/// # Cost
///
/// Each device reads its shards as in [`topk`](super::topk). With s shards, log2(s) merges of 2 k elements follow one
/// another, and each list is copied as often, 12 bytes for each member of f32.
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
    let primary = shards[0].device();
    let parts = shards.iter().filter(|shard| shard.dims()[0] > 0).count();
    if options.k == 0 || parts == 0 {
        let none = request.best(shards[0].clone().slice(0..0), false);
        return Ok((none.values, none.indices));
    }
    let mut first = 0;
    let mut lists = Vec::with_capacity(parts);
    for shard in shards {
        let length = shard.dims()[0];
        if length > 0 {
            let device = shard.device();
            let best = request.best(shard, options.sorted && parts == 1);
            lists.push(best.after(first));
            // What is asked of a device may be held back until it is waited for.
            if parts > 1 {
                device.flush().map_err(|error| failed(&device, error))?;
            }
        }
        first += length as i64;
    }
    let best = request.merge_all(lists, &primary)?;
    Ok((best.values, best.indices))
}

/// What is selected from every list.
#[derive(Clone, Copy, Debug)]
struct Request {
    k: usize,
    largest: bool,
    sorted: bool,
    index: IntDType,
}

/// Members and their places in the whole vector, in the order of these.
struct List<K: Ordered> {
    values: Tensor<1, K>,
    indices: Tensor<1, Int>,
}

impl Request {
    /// The best of a vector, all of it where it has fewer than k elements.
    fn best<K: Ordered>(&self, x: Tensor<1, K>, sorted: bool) -> List<K> {
        let spec = TopkSpec {
            k: self.k.min(x.dims()[0]),
            largest: self.largest,
            sorted,
            method: Method::Exact,
            index: self.index,
        };
        let (values, indices) = select(x, Lengths::<Dispatch>::Whole, spec);
        List { values, indices }
    }

    /// The best of neighbouring lists.
    fn merge<K: Ordered>(
        &self,
        lists: Vec<List<K>>,
        device: &Device,
        sorted: bool,
    ) -> Result<List<K>, ShardedError> {
        let mut values = Vec::with_capacity(lists.len());
        let mut indices = Vec::with_capacity(lists.len());
        for list in lists {
            let list = list.to(device)?;
            values.push(list.values);
            indices.push(list.indices);
        }
        // Equal values stand in the order of their indices, so that the first of them have the lowest.
        let best = self.best(Tensor::cat(values, 0), sorted);
        Ok(List {
            values: best.values,
            indices: Tensor::cat(indices, 0).select(0, best.indices),
        })
    }

    /// The best of all lists, by pairs while there are many.
    fn merge_all<K: Ordered>(
        &self,
        mut lists: Vec<List<K>>,
        primary: &Device,
    ) -> Result<List<K>, ShardedError> {
        while lists.len() > MERGED {
            let mut merged = Vec::with_capacity(lists.len().div_ceil(2));
            let mut rest = lists.into_iter();
            while let Some(left) = rest.next() {
                merged.push(match rest.next() {
                    Some(right) => {
                        let device = left.values.device();
                        self.merge(vec![left, right], &device, false)?
                    }
                    None => left,
                });
            }
            lists = merged;
        }
        if lists.len() == 1 {
            return lists.remove(0).to(primary);
        }
        self.merge(lists, primary, self.sorted)
    }
}

impl<K: Ordered> List<K> {
    /// The same, counted from the start of the whole vector.
    fn after(self, first: i64) -> Self {
        let indices = match first {
            0 => self.indices,
            first => self.indices.add_scalar(first),
        };
        Self { indices, ..self }
    }

    /// The same on a device, by way of the host, which learns whether the one that it leaves has failed. Where gradients are to come back,
    /// from device to device.
    fn to(self, device: &Device) -> Result<Self, ShardedError> {
        let from = self.values.device();
        if from == *device {
            return Ok(self);
        }
        let of_device = |error| failed(&from, error);
        let dtypes = (self.values.dtype(), self.indices.dtype());
        let indices = self.indices.try_into_data().map_err(of_device)?;
        let indices = Tensor::from_data(indices, (device, dtypes.1));
        if from.is_autodiff() {
            let values = moved(self.values, device)?;
            return Ok(Self { values, indices });
        }
        let values = self.values.try_into_data().map_err(of_device)?;
        Ok(Self {
            values: Tensor::from_data(values, (device, dtypes.0)),
            indices,
        })
    }
}

/// A list that has been computed, on another device. It is there when this returns, as its old place may be written to then.
fn moved<K: Ordered>(list: Tensor<1, K>, device: &Device) -> Result<Tensor<1, K>, ShardedError> {
    let length = list.dims()[0];
    // At least one, so that the list has a buffer of its own.
    let rest = BLOCK - length % BLOCK;
    let zeros = Tensor::zeros([rest], (&list.device(), list.dtype()));
    let whole = Tensor::cat(vec![list, zeros], 0);
    let moved = whole.clone().to_device(device);
    device.sync().map_err(|error| failed(device, error))?;
    drop(whole);
    Ok(moved.slice(0..length))
}

fn failed(device: &Device, error: ExecutionError) -> ShardedError {
    ShardedError::Device {
        device: name(device),
        reason: error.to_string(),
    }
}

fn name(device: &Device) -> String {
    format!("{device:?}")
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
        let lists = (0..6).map(|i| {
            let x = Tensor::<1>::from_floats([1.0, i as f32, 5.0], &device);
            request.best(x, false).after(i * far)
        });
        let best = request.merge_all(lists.collect(), &device).unwrap();
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
