//! Members of shards on autodiff devices, which come together from device to device, as their gradients go back.

use burn::tensor::{Device, Int, Tensor, Transaction, kind::Ordered};

use super::{MERGED, Part, Request, Selected, ShardedError};

/// Lists that go from device to device are filled up to a multiple of so many elements: collectives take as many as the buffer has, which
/// may be longer than the tensor, and wait without end where sender and receiver do not agree.
const BLOCK: usize = 256;

/// The best of all parts, on the primary device.
pub(super) fn merge<K: Ordered>(
    request: &Request,
    parts: Vec<Part<K>>,
    primary: &Device,
) -> Result<Selected<K>, ShardedError> {
    let mut lists = Vec::with_capacity(parts.len());
    for Part { elements, first } in parts {
        let device = elements.device();
        let best = request.best(elements, false);
        lists.push(Selected {
            indices: best.indices.add_scalar(first),
            ..best
        });
        // What is asked of a device may be held back until it is waited for.
        (device.flush()).map_err(|error| ShardedError::failed(&device, error))?;
    }
    while lists.len() > MERGED {
        let mut merged = Vec::with_capacity(lists.len().div_ceil(2));
        let mut rest = lists.into_iter();
        while let Some(left) = rest.next() {
            merged.push(match rest.next() {
                Some(right) => {
                    let device = left.values.device();
                    join(request, vec![left, right], &device, false)?
                }
                None => left,
            });
        }
        lists = merged;
    }
    join(request, lists, primary, request.sorted)
}

/// The best of neighbouring lists.
fn join<K: Ordered>(
    request: &Request,
    lists: Vec<Selected<K>>,
    device: &Device,
    sorted: bool,
) -> Result<Selected<K>, ShardedError> {
    let mut values = Vec::with_capacity(lists.len());
    let mut indices = Vec::with_capacity(lists.len());
    for list in lists {
        let list = list.to(device)?;
        values.push(list.values);
        indices.push(list.indices);
    }
    // Equal values stand in the order of their indices, so that the first of them have the lowest.
    let best = request.best(Tensor::cat(values, 0), sorted);
    Ok(Selected {
        values: best.values,
        indices: Tensor::cat(indices, 0).select(0, best.indices),
    })
}

impl<K: Ordered> Selected<K> {
    /// The same on a device: values from device to device, indices by way of the host, which learns whether the one that they leave has
    /// failed.
    fn to(self, device: &Device) -> Result<Self, ShardedError> {
        let from = self.values.device();
        if from == *device {
            return Ok(self);
        }
        let dtype = self.indices.dtype();
        let indices = Transaction::default().register(self.indices).try_execute();
        let mut indices = indices.map_err(|error| ShardedError::failed(&from, error))?;
        Ok(Self {
            values: moved(self.values, device)?,
            indices: Tensor::<1, Int>::from_data(indices.remove(0), (device, dtype)),
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
    (device.sync()).map_err(|error| ShardedError::failed(device, error))?;
    // What waits for a device does not learn that nothing has come; who reads does.
    let first = moved.clone().slice(0..1).try_into_data();
    first.map_err(|error| ShardedError::failed(device, error))?;
    drop(whole);
    Ok(moved.slice(0..length))
}
