//! Selections moved to the host.

use std::sync::mpsc;

use burn::{
    backend::Dispatch,
    tensor::{DType, Device, Int, IntDType, Tensor, TensorData, kind::Ordered},
};
use sparsek_kernels::topk::TopkOptions;

use super::rows::select;
use crate::ops::{Bounds, Outcome, SelectedBuffers, TopkGradientOps, TopkSpec};

#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub k: usize,
    pub largest: bool,
    pub sorted: bool,
    pub index: IntDType,
}

pub(super) struct Selected<K: Ordered> {
    pub values: Tensor<1, K>,
    pub indices: Tensor<1, Int>,
}

impl Request {
    pub fn spec(&self, length: usize, sorted: bool) -> TopkSpec {
        let options = TopkOptions::new(self.k.min(length));
        TopkSpec {
            options: options.with_largest(self.largest).with_sorted(sorted),
            index: self.index,
        }
    }

    pub fn best<K: Ordered>(&self, x: Tensor<1, K>, sorted: bool) -> Selected<K> {
        let spec = self.spec(x.dims()[0], sorted);
        let (values, indices) = select(x, Bounds::<Dispatch>::Whole, spec);
        Selected { values, indices }
    }

    /// Index order preserves tie-breaking.
    pub fn best_of_list<K: Ordered>(
        &self,
        list: List,
        device: &Device,
        dtype: DType,
    ) -> Selected<K> {
        let elements = list.elements::<K>(device, dtype);
        let count = list.len();
        let spec = self.spec(count, self.sorted);
        let places = TensorData::new(list.places, [count]).convert_dtype(self.index.into());
        let x = elements.into_dispatch();
        let (values, indices) = if dtype.is_float() {
            <Dispatch as TopkGradientOps>::topk_gather_float(x, places, spec)
        } else {
            <Dispatch as TopkGradientOps>::topk_gather_int(x, places, spec)
        };
        let best = Selected {
            values: Tensor::from_dispatch(values),
            indices: Tensor::from_dispatch(indices),
        };
        flush(device);
        best
    }
}

#[derive(Debug)]
pub(super) struct DeviceFailure {
    pub device: String,
    pub reason: String,
}

pub(super) fn device_name(device: &Device) -> String {
    format!("{device:?}")
}

/// Bytes at ascending positions.
#[derive(Default)]
pub(super) struct List {
    values: Vec<u8>,
    places: Vec<i64>,
}

impl List {
    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn joined(lists: &[Self]) -> Self {
        let values: Vec<&[u8]> = lists.iter().map(|list| &list.values[..]).collect();
        let places: Vec<&[i64]> = lists.iter().map(|list| &list.places[..]).collect();
        Self { values: values.concat(), places: places.concat() }
    }

    /// `list` must have higher positions.
    pub fn append(&mut self, mut list: Self) {
        self.values.append(&mut list.values);
        self.places.append(&mut list.places);
    }

    /// Position in the vector.
    pub fn place(&self, at: i64) -> i64 {
        self.places[at as usize]
    }

    pub fn elements<K: Ordered>(&self, device: &Device, dtype: DType) -> Tensor<1, K> {
        let values = TensorData::from_bytes_vec(self.values.clone(), [self.len()], dtype);
        Tensor::from_data(values, (device, dtype))
    }
}

/// Queued selection in index order.
pub(super) struct Launched<K: Ordered> {
    device: Device,
    index: IntDType,
    outcome: mpsc::Receiver<Outcome>,
    elements: Tensor<1, K>,
}

impl<K: Ordered> Launched<K> {
    /// `x` must not be empty.
    pub fn new(request: &Request, x: Tensor<1, K>) -> Self {
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
        Self { device, index: request.index, outcome, elements: Tensor::from_dispatch(x) }
    }

    fn wait(self) -> Waited {
        let outcome = launch_queued(&self.device).and_then(|()| match self.outcome.recv() {
            Ok(outcome) => outcome,
            // Nothing was computed; a read reports why.
            Err(_) => match self.elements.slice(0..1).try_into_data() {
                Ok(_) => Err("the selection was not launched".into()),
                Err(error) => Err(error.to_string()),
            },
        });
        Waited { device: self.device, index: self.index, outcome }
    }
}

struct Waited {
    device: Device,
    index: IntDType,
    outcome: Outcome,
}

impl Waited {
    fn list(
        &self,
        read: Result<[Vec<u8>; 2], String>,
        place: impl Fn(i64) -> i64,
    ) -> Result<List, DeviceFailure> {
        let [values, positions] =
            read.map_err(|reason| DeviceFailure { device: device_name(&self.device), reason })?;
        let places = positions_of(&positions, self.index).map(place).collect();
        Ok(List { values, places })
    }
}

pub(super) fn read_all<K: Ordered>(
    launched: Vec<Launched<K>>,
    place: impl Fn(usize, i64) -> i64,
) -> Result<Vec<List>, DeviceFailure> {
    let selected: Vec<_> = launched.into_iter().map(Launched::wait).collect();
    // Await all even after failures: unawaited buffers stay mapped.
    let readings: Vec<_> =
        selected.iter().map(|waited| waited.outcome.as_ref().map(read)).collect();
    let read: Vec<_> = (readings.into_iter())
        .map(|reading| reading.map_err(Clone::clone).and_then(|wait| wait()))
        .collect();
    (read.into_iter().zip(&selected).enumerate())
        .map(|(vector, (read, waited))| waited.list(read, |at| place(vector, at)))
        .collect()
}

type Reading<'a> = Box<dyn FnOnce() -> Result<[Vec<u8>; 2], String> + 'a>;

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

/// Flushes fusion's queue without waiting.
fn flush(device: &Device) {
    #[cfg(all(feature = "cubecl", feature = "fusion"))]
    if let Some(client) = fusion_client(device) {
        client.flush_queue();
    }
    #[cfg(not(all(feature = "cubecl", feature = "fusion")))]
    let _ = device;
}

/// Waits for launches only. `Device::flush` would flush twice and block CubeCL's thread.
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
