//! Members of shards, which come together on the host.

use std::sync::mpsc;

use burn::{
    backend::Dispatch,
    tensor::{DType, Device, IntDType, Tensor, TensorData, kind::Ordered},
};

use super::{MERGED, Part, Request, Selected, ShardedError};
use crate::{
    backends::queue,
    ops::{ListOps, Members, Outcome},
};

/// Elements of the whole vector on the host: their bytes, and where they stand in it, in ascending order.
struct List {
    values: Vec<u8>,
    places: Vec<i64>,
}

/// A selection that was launched.
struct Launched<K: Ordered> {
    device: Device,
    outcome: mpsc::Receiver<Outcome>,
    elements: Tensor<1, K>,
}

/// Waits for the bytes of members and of their positions.
type Reading<'a> = Box<dyn FnOnce() -> Result<[Vec<u8>; 2], String> + 'a>;

/// The best of all parts, on the primary device.
pub(super) fn merge<K: Ordered>(
    request: &Request,
    parts: Vec<Part<K>>,
    primary: &Device,
    dtype: DType,
) -> Result<Selected<K>, ShardedError> {
    let mut devices: Vec<Device> = parts.iter().map(|part| part.elements.device()).collect();
    let (elements, firsts): (Vec<_>, Vec<_>) = (parts.into_iter())
        .map(|part| (part.elements, part.first))
        .unzip();
    let mut lists = select(request, elements, |part, at| firsts[part] + at)?;
    while lists.len() > MERGED {
        devices = devices.into_iter().step_by(2).collect();
        let pairs: Vec<List> = lists.chunks(2).map(List::joined).collect();
        let elements = (pairs.iter().zip(&devices))
            .map(|(pair, device)| pair.elements::<K>(device, dtype))
            .collect();
        lists = select(request, elements, |pair, at| {
            pairs[pair].places[at as usize]
        })?;
    }
    let all = List::joined(&lists);
    // Equal values stand in the order of their places, so that the first of them have the lowest.
    let elements = all.elements::<K>(primary, dtype);
    let count = all.places.len();
    let spec = request.spec(count, request.sorted);
    let places = TensorData::new(all.places, [count]).convert_dtype(request.index.into());
    let x = elements.into_dispatch();
    let (values, indices) = if dtype.is_float() {
        <Dispatch as ListOps>::placed_float(x, places, spec)
    } else {
        <Dispatch as ListOps>::placed_int(x, places, spec)
    };
    let best = Selected {
        values: Tensor::from_dispatch(values),
        indices: Tensor::from_dispatch(indices),
    };
    queue::begin(primary);
    Ok(best)
}

/// The best of each vector, with the places that its positions stand for. All devices are told before any is waited for.
fn select<K: Ordered>(
    request: &Request,
    vectors: Vec<Tensor<1, K>>,
    place: impl Fn(usize, i64) -> i64,
) -> Result<Vec<List>, ShardedError> {
    let launched: Vec<_> = vectors.into_iter().map(|x| launch(request, x)).collect();
    let members: Vec<_> = launched.into_iter().map(Launched::members).collect();
    // Also where one has failed the others are waited for, as what nobody waits for stays mapped.
    let readings: Vec<_> = (members.iter())
        .map(|(_, members)| members.as_ref().map(read))
        .collect();
    let read: Vec<_> = (readings.into_iter())
        .map(|reading| reading.map_err(Clone::clone).and_then(|wait| wait()))
        .collect();
    (read.into_iter().zip(&members).enumerate())
        .map(|(vector, (read, (device, _)))| {
            let [values, positions] =
                read.map_err(|reason| ShardedError::failed(device, reason))?;
            let places = positions_of(&positions, request.index)
                .map(|at| place(vector, at))
                .collect();
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
        <Dispatch as ListOps>::list_float(x, spec, to)
    } else {
        <Dispatch as ListOps>::list_int(x, spec, to)
    };
    queue::begin(&device);
    Launched {
        device,
        outcome,
        elements: Tensor::from_dispatch(x),
    }
}

impl<K: Ordered> Launched<K> {
    fn members(self) -> (Device, Outcome) {
        let outcome = queue::launch(&self.device).and_then(|()| match self.outcome.recv() {
            Ok(outcome) => outcome,
            // As the elements have not come about; reading one tells why.
            Err(_) => match self.elements.slice(0..1).try_into_data() {
                Ok(_) => Err("the selection was not launched".into()),
                Err(error) => Err(error.to_string()),
            },
        });
        (self.device, outcome)
    }
}

/// Asks for members; the device copies them once it has them.
fn read(members: &Members) -> Reading<'_> {
    match members {
        #[cfg(feature = "cubecl")]
        Members::Device {
            client,
            values,
            positions,
        } => {
            let reading = client.read_async(vec![values.clone(), positions.clone()]);
            Box::new(move || {
                let read = cubecl::future::reader::read_sync(reading);
                let read = read.map_err(|error| error.to_string())?;
                let read: Vec<Vec<u8>> = read.iter().map(|bytes| bytes.to_vec()).collect();
                read.try_into()
                    .map_err(|read: Vec<_>| format!("{} buffers instead of 2", read.len()))
            })
        }
        Members::Host { values, positions } => {
            Box::new(move || Ok([values, positions].map(|data| data.as_bytes().to_vec())))
        }
    }
}

/// Positions of a dtype, by their bytes.
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
    /// One behind the other.
    fn joined(lists: &[Self]) -> Self {
        let values: Vec<&[u8]> = lists.iter().map(|list| &list.values[..]).collect();
        let places: Vec<&[i64]> = lists.iter().map(|list| &list.places[..]).collect();
        Self {
            values: values.concat(),
            places: places.concat(),
        }
    }

    fn elements<K: Ordered>(&self, device: &Device, dtype: DType) -> Tensor<1, K> {
        let values = TensorData::from_bytes_vec(self.values.clone(), [self.places.len()], dtype);
        Tensor::from_data(values, (device, dtype))
    }
}
