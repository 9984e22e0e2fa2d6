//! Merges shards through the host.

use std::sync::mpsc;

use burn::{
    backend::Dispatch,
    tensor::{DType, Device, IntDType, Tensor, TensorData, kind::Ordered},
};

use super::{
    error::ShardedError,
    types::{MERGED, Part, Request, Selected},
};
use crate::ops::{Outcome, SelectedBuffers, TopkGradientOps};

/// Elements on the host: bytes and ascending positions.
struct List {
    values: Vec<u8>,
    places: Vec<i64>,
}

struct Launched<K: Ordered> {
    device: Device,
    outcome: mpsc::Receiver<Outcome>,
    elements: Tensor<1, K>,
}

type Reading<'a> = Box<dyn FnOnce() -> Result<[Vec<u8>; 2], String> + 'a>;

pub(super) fn merge<K: Ordered>(
    request: &Request,
    parts: Vec<Part<K>>,
    primary: &Device,
    dtype: DType,
) -> Result<Selected<K>, ShardedError> {
    let mut devices: Vec<Device> = parts.iter().map(|part| part.elements.device()).collect();
    let (elements, firsts): (Vec<_>, Vec<_>) =
        (parts.into_iter()).map(|part| (part.elements, part.first)).unzip();
    let mut lists = select(request, elements, |part, at| firsts[part] + at)?;
    while lists.len() > MERGED {
        devices = devices.into_iter().step_by(2).collect();
        let pairs: Vec<List> = lists.chunks(2).map(List::joined).collect();
        let elements = (pairs.iter().zip(&devices))
            .map(|(pair, device)| pair.elements::<K>(device, dtype))
            .collect();
        lists = select(request, elements, |pair, at| pairs[pair].places[at as usize])?;
    }
    let all = List::joined(&lists);
    // Equal values are in index order, so ties go to the lowest index.
    let elements = all.elements::<K>(primary, dtype);
    let count = all.places.len();
    let spec = request.spec(count, request.sorted);
    let places = TensorData::new(all.places, [count]).convert_dtype(request.index.into());
    let x = elements.into_dispatch();
    let (values, indices) = if dtype.is_float() {
        <Dispatch as TopkGradientOps>::topk_gather_float(x, places, spec)
    } else {
        <Dispatch as TopkGradientOps>::topk_gather_int(x, places, spec)
    };
    let best =
        Selected { values: Tensor::from_dispatch(values), indices: Tensor::from_dispatch(indices) };
    flush(primary);
    Ok(best)
}

/// Selects from each vector, maps positions with `place`. Queues all devices before it waits.
fn select<K: Ordered>(
    request: &Request,
    vectors: Vec<Tensor<1, K>>,
    place: impl Fn(usize, i64) -> i64,
) -> Result<Vec<List>, ShardedError> {
    let launched: Vec<_> = vectors.into_iter().map(|x| launch(request, x)).collect();
    let selected: Vec<_> = launched.into_iter().map(Launched::wait).collect();
    // Await all even after a failure: buffers that nobody awaits stay mapped.
    let readings: Vec<_> =
        (selected.iter()).map(|(_, buffers)| buffers.as_ref().map(read)).collect();
    let read: Vec<_> = (readings.into_iter())
        .map(|reading| reading.map_err(Clone::clone).and_then(|wait| wait()))
        .collect();
    (read.into_iter().zip(&selected).enumerate())
        .map(|(vector, (read, (device, _)))| {
            let [values, positions] =
                read.map_err(|reason| ShardedError::failed(device, reason))?;
            let places =
                positions_of(&positions, request.index).map(|at| place(vector, at)).collect();
            Ok(List { values, places })
        })
        .collect()
}

fn launch<K: Ordered>(request: &Request, x: Tensor<1, K>) -> Launched<K> {
    let device = x.device();
    let spec = request.spec(x.dims()[0], false);
    let (to, outcome) = mpsc::channel();
    let float = x.dtype().is_float();
    let x = x.into_dispatch();
    let x = if float {
        <Dispatch as TopkGradientOps>::topk_send_float(x, spec, to)
    } else {
        <Dispatch as TopkGradientOps>::topk_send_int(x, spec, to)
    };
    flush(&device);
    Launched { device, outcome, elements: Tensor::from_dispatch(x) }
}

impl<K: Ordered> Launched<K> {
    fn wait(self) -> (Device, Outcome) {
        let outcome = launch_queued(&self.device).and_then(|()| match self.outcome.recv() {
            Ok(outcome) => outcome,
            // Nothing was computed; reading reports why.
            Err(_) => match self.elements.slice(0..1).try_into_data() {
                Ok(_) => Err("the selection was not launched".into()),
                Err(error) => Err(error.to_string()),
            },
        });
        (self.device, outcome)
    }
}

fn read(buffers: &SelectedBuffers) -> Reading<'_> {
    match buffers {
        #[cfg(feature = "cubecl")]
        SelectedBuffers::Device { client, values, positions } => {
            let reading = client.read_async(vec![values.clone(), positions.clone()]);
            Box::new(move || {
                let read = cubecl::future::reader::read_sync(reading);
                let read = read.map_err(|error| {
                    sparsek_kernels::KernelError::of_read(client, &error).to_string()
                })?;
                let read: Vec<Vec<u8>> = read.iter().map(|bytes| bytes.to_vec()).collect();
                read.try_into()
                    .map_err(|read: Vec<_>| format!("{} buffers instead of 2", read.len()))
            })
        }
        SelectedBuffers::Host { values, positions } => {
            Box::new(move || Ok([values, positions].map(|data| data.as_bytes().to_vec())))
        }
    }
}

fn positions_of(bytes: &[u8], dtype: IntDType) -> impl Iterator<Item = i64> {
    let positions: Vec<i64> = match dtype {
        IntDType::I32 => {
            let positions: Vec<i32> = bytemuck::pod_collect_to_vec(bytes);
            positions.into_iter().map(i64::from).collect()
        }
        _ => bytemuck::pod_collect_to_vec(bytes),
    };
    positions.into_iter()
}

impl List {
    fn joined(lists: &[Self]) -> Self {
        let values: Vec<&[u8]> = lists.iter().map(|list| &list.values[..]).collect();
        let places: Vec<&[i64]> = lists.iter().map(|list| &list.places[..]).collect();
        Self { values: values.concat(), places: places.concat() }
    }

    fn elements<K: Ordered>(&self, device: &Device, dtype: DType) -> Tensor<1, K> {
        let values = TensorData::from_bytes_vec(self.values.clone(), [self.places.len()], dtype);
        Tensor::from_data(values, (device, dtype))
    }
}

/// Flushes fusion's queue, without waiting.
fn flush(device: &Device) {
    #[cfg(all(feature = "cubecl", feature = "fusion"))]
    if let Some(client) = fusion_client(device) {
        client.flush_queue();
    }
    #[cfg(not(all(feature = "cubecl", feature = "fusion")))]
    let _ = device;
}

/// Waits until operations are launched or failed, not for the device as `Device::flush`: a second
/// flush would block CubeCL's thread.
fn launch_queued(device: &Device) -> Result<(), String> {
    #[cfg(all(feature = "cubecl", feature = "fusion"))]
    if let Some(client) = fusion_client(device) {
        return client.try_sync(|| ()).map_err(|error| format!("{error:?}"));
    }
    #[cfg(not(all(feature = "cubecl", feature = "fusion")))]
    let _ = device;
    Ok(())
}

#[cfg(all(feature = "cubecl", feature = "fusion"))]
fn fusion_client(
    device: &Device,
) -> Option<burn_fusion::Client<burn_cubecl::fusion::FusionCubeRuntime>> {
    use burn::backend::DispatchDevice;

    match device.as_dispatch() {
        DispatchDevice::Cube(device) => {
            Some(burn_fusion::get_client::<burn_cubecl::CubeBackend>(device))
        }
        #[allow(unreachable_patterns, reason = "others are features")]
        _ => None,
    }
}
