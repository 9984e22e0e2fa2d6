//! The selection, one chunk at a time.
use std::error::Error;

use burn::tensor::{DType, Device, Float, Int, Tensor, TensorData, kind::Ordered};
use sparsek::topk::{TopkOptions, topk_sharded};

use crate::npy::{Selection, Vector};

/// Least elements of a chunk, and least per selected element: each chunk selects from the best so
/// far again.
const CHUNK: usize = 1 << 24;
const CHUNK_SHARE: usize = 4;

/// What to select.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub k: usize,
    pub largest: bool,
    pub sorted: bool,
    /// Elements per chunk; chosen from k by default.
    pub chunk: Option<usize>,
}

impl Request {
    /// Elements per chunk.
    pub fn chunk(&self) -> usize {
        let fitting = || CHUNK.max(self.k.saturating_mul(CHUNK_SHARE));
        self.chunk.unwrap_or_else(fitting)
    }
}

/// Selects from a vector; `progress` receives the elements seen.
pub fn select(
    vector: Vector,
    request: &Request,
    devices: &[Device],
    progress: &dyn Fn(usize),
) -> Result<Selection, Box<dyn Error>> {
    #[cfg(feature = "kernels")]
    if let Some(clients) = stream::clients(devices) {
        return stream::select(vector, request, &clients, progress);
    }
    match vector.dtype.is_float() {
        true => by_tensors::<Float>(vector, request, devices, progress),
        false => by_tensors::<Int>(vector, request, devices, progress),
    }
}

/// Divides every chunk among the devices. The best so far are one more shard, in front.
fn by_tensors<K: Ordered>(
    vector: Vector,
    request: &Request,
    devices: &[Device],
    progress: &dyn Fn(usize),
) -> Result<Selection, Box<dyn Error>> {
    let (dtype, all) = (vector.dtype, vector.length);
    let size = dtype.size();
    let mut best = Selection::default();
    let mut seen = 0;
    vector.for_each_chunk(request.chunk(), |chunk| {
        let length = chunk.len() / size;
        let before = best.indices.len();
        let mut shards = vec![shard::<K>(&best.values, dtype, &devices[0])];
        let share = length.div_ceil(devices.len()) * size;
        for (part, device) in chunk.chunks(share).zip(devices) {
            shards.push(shard(part, dtype, device));
        }
        let last = seen + length == all;
        let options = TopkOptions::new(request.k.min(before + length))
            .with_largest(request.largest)
            .with_sorted(request.sorted && last);
        let (values, places) = topk_sharded(shards, &options)?;
        let places = places.try_into_data()?;
        let place = |at: i64| match usize::try_from(at) {
            Ok(at) if at < before => best.indices[at],
            _ => at - before as i64 + seen as i64,
        };
        let indices = places.iter::<i64>().map(place).collect();
        let values = values.try_into_data()?.as_bytes().to_vec();
        best = Selection { values, indices };
        seen += length;
        progress(seen);
        Ok(())
    })?;
    Ok(best)
}

fn shard<K: Ordered>(bytes: &[u8], dtype: DType, device: &Device) -> Tensor<1, K> {
    let length = bytes.len() / dtype.size();
    let data = TensorData::from_bytes_vec(bytes.to_vec(), [length], dtype);
    Tensor::from_data(data, (device, dtype))
}

/// CubeCL devices copy the next piece while selecting from others.
#[cfg(feature = "kernels")]
mod stream {
    use burn::backend::DispatchDevice;
    use cubecl::{client::Client, ir::ElemType};
    use sparsek_kernels::topk::{TopkStream, VectorOptions};

    use super::*;

    /// Least and most bytes of a piece, and elements per selected element.
    const PIECES: [usize; 2] = [1 << 26, 1 << 29];
    const PIECE_SHARE: usize = 64;

    /// Clients, if all devices are CubeCL's.
    pub fn clients(devices: &[Device]) -> Option<Vec<Client>> {
        let client = |device: &Device| match device.as_dispatch() {
            DispatchDevice::Cube(device) => Some(device.client()),
            #[allow(unreachable_patterns, reason = "others are features")]
            _ => None,
        };
        devices.iter().map(client).collect()
    }

    pub fn select(
        vector: Vector,
        request: &Request,
        clients: &[Client],
        progress: &dyn Fn(usize),
    ) -> Result<Selection, Box<dyn Error>> {
        let options = VectorOptions {
            largest: request.largest,
            sorted: request.sorted,
            ..VectorOptions::new(request.k)
        };
        let mut stream = TopkStream::over(clients, elem_type(vector.dtype), options);
        let size = vector.dtype.size();
        let share = request.k.saturating_mul(PIECE_SHARE).saturating_mul(size);
        let piece = share.clamp(PIECES[0], PIECES[1]) / size;
        let chunk = request.chunk.unwrap_or(piece).min(vector.length).max(1);
        // Equal parts, as the stream cuts.
        let part = chunk.div_ceil(chunk.div_ceil(piece));
        vector.for_each_chunk(part, |part| {
            stream.push(part)?;
            progress(stream.seen() as usize);
            Ok(())
        })?;
        let best = stream.finish()?;
        Ok(Selection {
            values: best.values,
            indices: best.indices.into_iter().map(|at| at as i64).collect(),
        })
    }

    fn elem_type(dtype: DType) -> ElemType {
        burn::backend::cubecl::dtype_to_elem_type(dtype)
    }
}
