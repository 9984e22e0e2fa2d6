//! Selections whose members come to the host, on which they are already.

use std::sync::mpsc::Sender;

use burn::{
    backend::{
        Flex,
        ops::IntTensorOps,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::TensorData,
};
use burn_flex::FlexTensor;

use super::pairs;
use crate::ops::{Lengths, ListOps, Members, Outcome, TopkSpec};

fn list(input: FlexTensor, spec: &TopkSpec, to: &Sender<Outcome>) -> FlexTensor {
    let (values, positions) = pairs(input.clone(), Lengths::Whole, spec);
    // Somebody waits for it, unless the caller has panicked.
    let _ = to.send(Ok(Members::Host {
        values: values.into_data(),
        positions: positions.into_data(),
    }));
    input
}

fn placed(input: FlexTensor, places: TensorData, spec: &TopkSpec) -> (FlexTensor, FlexTensor) {
    let (values, positions) = pairs(input, Lengths::Whole, spec);
    (
        values,
        Flex::int_select(FlexTensor::from_data(places), 0, positions),
    )
}

impl ListOps for Flex {
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
