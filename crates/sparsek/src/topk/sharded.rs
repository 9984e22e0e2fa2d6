//! Top-k of one vector that is cut over several devices.

mod error;
mod list;

use burn::{
    backend::Dispatch,
    tensor::{
        DType, Device, Int, IntDType, Tensor,
        kind::{Ordered, Transaction},
    },
};
use rayon::prelude::*;

pub use error::ShardedError;
use error::name;
use list::{List, Part, gathered};

use super::{Method, TopkOptions, select};
use crate::ops::{Lengths, TopkSpec};

/// Most lists that are merged in one step.
const MERGED: usize = 4;
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
pub fn topk_sharded<K: Ordered + Transaction>(
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
    let parts = request.parts(shards, &primary, parts)?;
    let best = request.merge_all(parts, &primary)?;
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

/// A shard, which of them it is, and its first place in the whole vector.
struct Shard<K: Ordered> {
    number: usize,
    first: i64,
    x: Tensor<1, K>,
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

    /// The best of each shard that has elements, in their order. Every device has a thread: what is asked of it may be held back until
    /// it is waited for, and what one thread asks of many devices they get one after the other.
    fn parts<K: Ordered + Transaction>(
        &self,
        shards: Vec<Tensor<1, K>>,
        primary: &Device,
        count: usize,
    ) -> Result<Vec<Part<K>>, ShardedError> {
        let mut of_devices: Vec<(Device, Vec<Shard<K>>)> = Vec::new();
        let mut first = 0;
        for (number, x) in shards.into_iter().enumerate() {
            let (device, length) = (x.device(), x.dims()[0]);
            let shard = Shard { number, first, x };
            first += length as i64;
            if length == 0 {
                continue;
            }
            match of_devices.iter_mut().find(|(known, _)| *known == device) {
                Some((_, shards)) => shards.push(shard),
                None => of_devices.push((device, vec![shard])),
            }
        }
        // Lists that are merged at once are read by the threads, too.
        let reads = count <= MERGED && !primary.is_autodiff();
        let of_device = |(device, shards): (Device, Vec<Shard<K>>)| {
            let select = |shard: Shard<K>| {
                let best = self.best(shard.x, self.sorted && count == 1);
                (shard.number, best.after(shard.first))
            };
            let lists: Vec<_> = shards.into_iter().map(select).collect();
            if count > 1 {
                let flushed = device.flush();
                flushed.map_err(|error| ShardedError::of(&device, &error))?;
            }
            let part = |(number, list): (usize, List<K>)| {
                Ok((
                    number,
                    match reads && device != *primary {
                        true => Part::Read(list.read()?),
                        false => Part::There(Box::new(list)),
                    },
                ))
            };
            lists.into_iter().map(part).collect::<Result<Vec<_>, _>>()
        };
        let found: Result<Vec<_>, _> = match of_devices.len() {
            1 => of_devices.into_iter().map(of_device).collect(),
            _ => of_devices.into_par_iter().map(of_device).collect(),
        };
        let mut parts: Vec<_> = found?.into_iter().flatten().collect();
        parts.sort_unstable_by_key(|(number, _)| *number);
        Ok(parts.into_iter().map(|(_, part)| part).collect())
    }

    /// The best of neighbouring lists.
    fn merge<K: Ordered + Transaction>(
        &self,
        parts: Vec<Part<K>>,
        device: &Device,
        sorted: bool,
    ) -> Result<List<K>, ShardedError> {
        let lists = gathered(parts, device)?;
        let (values, indices) = lists
            .into_iter()
            .map(|list| (list.values, list.indices))
            .unzip();
        // Equal values stand in the order of their indices, so that the first of them have the lowest.
        let best = self.best(Tensor::cat(values, 0), sorted);
        Ok(List {
            values: best.values,
            indices: Tensor::cat(indices, 0).select(0, best.indices),
        })
    }

    /// The best of all lists, by pairs while there are many.
    fn merge_all<K: Ordered + Transaction>(
        &self,
        mut parts: Vec<Part<K>>,
        primary: &Device,
    ) -> Result<List<K>, ShardedError> {
        while parts.len() > MERGED {
            let mut merged = Vec::with_capacity(parts.len().div_ceil(2));
            let mut rest = parts.into_iter();
            while let Some(left) = rest.next() {
                merged.push(match rest.next() {
                    Some(right) => {
                        let device = left.device_or(primary);
                        Part::There(Box::new(self.merge(vec![left, right], &device, false)?))
                    }
                    None => left,
                });
            }
            parts = merged;
        }
        match parts.len() {
            1 => Ok(gathered(parts, primary)?.remove(0)),
            _ => self.merge(parts, primary, self.sorted),
        }
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
        let lists = (0..6).map(|i| {
            let x = Tensor::<1>::from_floats([1.0, i as f32, 5.0], &device);
            Part::There(Box::new(request.best(x, false).after(i * far)))
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
