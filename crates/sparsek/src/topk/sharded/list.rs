//! Members of a shard, or of several, on their way to other devices.

use burn::tensor::{
    Device, Int, Tensor, TensorData, Transaction as Reading,
    kind::{Ordered, Transaction},
};

use super::error::ShardedError;

/// Lists that go from device to device are filled up to a multiple of so many elements: collectives take as many as the buffer has, which
/// may be longer than the tensor, and wait without end where sender and receiver do not agree.
const BLOCK: usize = 256;

/// Members and their places in the whole vector, in the order of these.
pub(super) struct List<K: Ordered> {
    pub values: Tensor<1, K>,
    pub indices: Tensor<1, Int>,
}

/// A list on a device, or on its way from there.
pub(super) enum Part<K: Ordered> {
    There(Box<List<K>>),
    Read(Read),
}

/// Values and indices of a list on the host.
pub(super) struct Read([TensorData; 2]);

impl<K: Ordered + Transaction> List<K> {
    /// The same, counted from the start of the whole vector.
    pub fn after(self, first: i64) -> Self {
        let indices = match first {
            0 => self.indices,
            first => self.indices.add_scalar(first),
        };
        Self { indices, ..self }
    }

    /// On the host, which learns whether the device has failed.
    pub fn read(self) -> Result<Read, ShardedError> {
        let from = self.values.device();
        let reading = Reading::default()
            .register(self.values)
            .register(self.indices);
        let read = reading.try_execute();
        let read = read.map_err(|error| ShardedError::of(&from, &error))?;
        Ok(Read(read.try_into().expect("two tensors were read")))
    }

    /// The same on a device, by way of the host. Where gradients are to come back, values go from device to device.
    pub fn to(self, device: &Device) -> Result<Self, ShardedError> {
        let from = self.values.device();
        if from == *device {
            return Ok(self);
        }
        if !from.is_autodiff() {
            return Ok(self.read()?.on(device));
        }
        let dtype = self.indices.dtype();
        let indices = self.indices.try_into_data();
        let indices = indices.map_err(|error| ShardedError::of(&from, &error))?;
        Ok(Self {
            values: moved(self.values, device)?,
            indices: Tensor::from_data(indices, (device, dtype)),
        })
    }
}

impl<K: Ordered> Part<K> {
    /// Where it is, or else where it is to be.
    pub fn device_or(&self, other: &Device) -> Device {
        match self {
            Self::There(list) => list.values.device(),
            Self::Read(_) => other.clone(),
        }
    }
}

impl Read {
    /// On a device.
    pub fn on<K: Ordered>(self, device: &Device) -> List<K> {
        let [values, indices] = self.0;
        let dtypes = [values.dtype(), indices.dtype()];
        List {
            values: Tensor::from_data(values, (device, dtypes[0])),
            indices: Tensor::from_data(indices, (device, dtypes[1])),
        }
    }

    /// This list and the one behind it.
    fn with(self, next: Self) -> Self {
        let [values, indices] = self.0;
        let [more, behind] = next.0;
        Self([joined(values, &more), joined(indices, &behind)])
    }
}

fn joined(data: TensorData, next: &TensorData) -> TensorData {
    let mut bytes = data.as_bytes().to_vec();
    bytes.extend_from_slice(next.as_bytes());
    let length = data.shape()[0] + next.shape()[0];
    TensorData::from_bytes_vec(bytes, [length], data.dtype())
}

/// Lists on a device, where neighbours that have been read come as one.
pub(super) fn gathered<K: Ordered + Transaction>(
    parts: Vec<Part<K>>,
    device: &Device,
) -> Result<Vec<List<K>>, ShardedError> {
    let mut lists = Vec::with_capacity(parts.len());
    let mut waiting: Option<Read> = None;
    for part in parts {
        match part {
            Part::Read(read) => {
                waiting = Some(match waiting.take() {
                    Some(before) => before.with(read),
                    None => read,
                });
            }
            Part::There(list) => {
                lists.extend(waiting.take().map(|read| read.on(device)));
                lists.push(list.to(device)?);
            }
        }
    }
    lists.extend(waiting.map(|read| read.on(device)));
    Ok(lists)
}

/// A list that has been computed, on another device. It is there when this returns, as its old place may be written to then.
fn moved<K: Ordered>(list: Tensor<1, K>, device: &Device) -> Result<Tensor<1, K>, ShardedError> {
    let length = list.dims()[0];
    // At least one, so that the list has a buffer of its own.
    let rest = BLOCK - length % BLOCK;
    let zeros = Tensor::zeros([rest], (&list.device(), list.dtype()));
    let whole = Tensor::cat(vec![list, zeros], 0);
    let moved = whole.clone().to_device(device);
    device
        .sync()
        .map_err(|error| ShardedError::of(device, &error))?;
    drop(whole);
    Ok(moved.slice(0..length))
}
