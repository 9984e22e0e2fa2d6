//! Merges autodiff shards; values move directly, so gradients move back.

use burn::tensor::{Device, Int, Tensor, Transaction, kind::Ordered};

use super::{
    super::lists::{Request, Selected},
    error::ShardedError,
    types::{MERGED, Part},
};

/// Padding unit: collectives send whole buffers and deadlock if sizes differ.
const BLOCK: usize = 256;

pub(super) fn merge<K: Ordered>(
    request: &Request,
    parts: Vec<Part<K>>,
    primary: &Device,
) -> Result<Selected<K>, ShardedError> {
    let mut lists = Vec::with_capacity(parts.len());
    for Part { elements, first } in parts {
        let device = elements.device();
        let best = request.best(elements, false);
        lists.push(Selected { indices: best.indices.add_scalar(first), ..best });
        // Fusion may defer operations.
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
    // Index order preserves tie-breaking.
    let best = request.best(Tensor::cat(values, 0), sorted);
    Ok(Selected { values: best.values, indices: Tensor::cat(indices, 0).select(0, best.indices) })
}

impl<K: Ordered> Selected<K> {
    /// Indices go through the host, which reports failures.
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

/// Waits, since the source may be overwritten.
fn moved<K: Ordered>(list: Tensor<1, K>, device: &Device) -> Result<Tensor<1, K>, ShardedError> {
    let length = list.dims()[0];
    // At least 1: the list gets its own buffer.
    let rest = BLOCK - length % BLOCK;
    let zeros = Tensor::zeros([rest], (&list.device(), list.dtype()));
    let whole = Tensor::cat(vec![list, zeros], 0);
    let moved = whole.clone().to_device(device);
    (device.sync()).map_err(|error| ShardedError::failed(device, error))?;
    // Only reads report failed transfers.
    let first = moved.clone().slice(0..1).try_into_data();
    first.map_err(|error| ShardedError::failed(device, error))?;
    drop(whole);
    Ok(moved.slice(0..length))
}
