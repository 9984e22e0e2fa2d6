//! Selections whose members come to the host, on every CubeCL runtime.

use std::sync::mpsc::Sender;

use burn::{
    backend::{
        cubecl::dtype_to_elem_type,
        ops::IntTensorOps,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{DType, TensorData},
};
use burn_cubecl::{CubeBackend, tensor::CubeTensor};
use sparsek_kernels::topk;

use super::{rows_of, select};
use crate::ops::{Lengths, ListOps, Members, Outcome, TopkSpec};

fn list(input: CubeTensor, spec: &TopkSpec, to: &Sender<Outcome>) -> CubeTensor {
    // Somebody waits for it, unless the caller has panicked.
    let _ = to.send(members(input.clone(), spec));
    input
}

fn members(input: CubeTensor, spec: &TopkSpec) -> Outcome {
    let (input, rows) = rows_of(input, Lengths::Whole);
    let client = input.client;
    let index = dtype_to_elem_type(DType::from(spec.index));
    let selected = topk::topk(&client, &rows, &spec.into(), index, None);
    let selected = selected.map_err(|error| error.to_string())?;
    // The device begins now, and not when it is waited for.
    client.flush().map_err(|error| error.to_string())?;
    Ok(Members::Device {
        client,
        values: selected.values,
        positions: selected.indices,
    })
}

fn placed(input: CubeTensor, places: TensorData, spec: &TopkSpec) -> (CubeTensor, CubeTensor) {
    let device = input.device.clone();
    let (values, positions) = select(input, Lengths::Whole, spec);
    let places = CubeBackend::int_from_data(places, &device);
    (values, CubeBackend::int_select(places, 0, positions))
}

impl ListOps for CubeBackend {
    fn list_float(
        input: FloatTensor<Self>,
        spec: TopkSpec,
        to: Sender<Outcome>,
    ) -> FloatTensor<Self> {
        list(input, &spec, &to)
    }

    fn list_int(input: IntTensor<Self>, spec: TopkSpec, to: Sender<Outcome>) -> IntTensor<Self> {
        list(input, &spec, &to)
    }

    fn placed_float(
        input: FloatTensor<Self>,
        places: TensorData,
        spec: TopkSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        placed(input, places, &spec)
    }

    fn placed_int(
        input: IntTensor<Self>,
        places: TensorData,
        spec: TopkSpec,
    ) -> (IntTensor<Self>, IntTensor<Self>) {
        placed(input, places, &spec)
    }
}
