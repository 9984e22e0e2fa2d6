//! Random requests to one routine, or to automatic dispatch.

use std::cell::RefCell;

use cubecl::ir::ElemType;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestCaseResult;
use sparsek_kernels::KernelError;
use sparsek_kernels::topk::{self, Routine, Rows, TopkOptions};
use sparsek_tests::{
    backend::{Backend, Kind},
    data::Matrix,
    element::Element,
    runner::Outcome,
    verify, with_dtype,
};

use super::{
    common::{Plan, check_requests},
    request::{Extent, Request, request},
};
use crate::kernels::{Check, I32, I64, Layout, U32, read, read_positions, topk as launch_topk};

#[derive(Clone, Copy, Debug)]
enum Output {
    ValuesAndPositions,
    Positions,
    Mask,
    MaskAndPositions,
}

/// A request with what only kernels can choose.
#[derive(Clone, Debug)]
struct KernelRequest {
    request: Request,
    layout: Layout,
    output: Output,
    index: ElemType,
}

fn kernel_request(extent: Extent) -> impl Strategy<Value = KernelRequest> {
    let output = prop_oneof![
        4 => Just(Output::ValuesAndPositions),
        1 => Just(Output::Positions),
        1 => Just(Output::Mask),
        1 => Just(Output::MaskAndPositions),
    ];
    let index = prop_oneof![6 => Just(I32), 1 => Just(U32), 1 => Just(I64)];
    let fields = (request(extent), select(Layout::ALL.to_vec()), output, index);
    fields.prop_map(|(request, layout, output, index)| KernelRequest {
        request,
        layout,
        output,
        index,
    })
}

pub fn property(backend: &Backend, plan: Plan, routine: Option<Routine>) -> Outcome {
    let check = RefCell::new(Check::new(backend, routine));
    // Units of a cube are threads there and wait for each other at each step.
    let extent = match (backend.kind, routine) {
        (Kind::Cpu, Some(Routine::Cube)) => Extent::SMALL,
        _ => Extent::FULL,
    };
    check_requests(plan, kernel_request(extent), |request| {
        let check = &mut check.borrow_mut();
        with_dtype!(request.request.dtype, T => variants::<T>(check, &request))
    })?;
    check.into_inner().end()
}

fn variants<T: Element>(check: &mut Check, request: &KernelRequest) -> TestCaseResult {
    let before = check.passed;
    for variant in &request.request.variants {
        let matrix = request.request.matrix::<T>(variant);
        let options = request.request.options(variant);
        let input = request.layout.upload(check.client(), &matrix);
        match launch(check, request, &input, &matrix, &options) {
            Ok(verdict) => {
                verdict.map_err(TestCaseError::fail)?;
                check.passed += 1;
            }
            Err(error) => check.refuse(error).map_err(TestCaseError::fail)?,
        }
    }
    if check.passed == before {
        return Err(TestCaseError::reject("refused"));
    }
    Ok(())
}

fn launch<T: Element>(
    check: &Check,
    request: &KernelRequest,
    input: &Rows,
    matrix: &Matrix<T>,
    options: &TopkOptions,
) -> Result<Result<(), String>, KernelError> {
    let (client, routine, index) = (check.client(), check.routine, request.index);
    let positions = |handle| read_positions(client, handle, index, matrix.rows * options.k);
    match request.output {
        Output::ValuesAndPositions => {
            let (values, found) = launch_topk::<T>(client, input, options, index, routine)?;
            Ok(verify::selection(matrix, options, Some(&values), &found))
        }
        Output::Positions => {
            let found = positions(topk::argtopk(client, input, options, index, routine)?);
            Ok(verify::selection(matrix, options, None, &found))
        }
        Output::Mask | Output::MaskAndPositions => {
            let wanted = matches!(request.output, Output::MaskAndPositions).then_some(index);
            let masked = topk::topk_mask(client, input, options, wanted, routine)?;
            let dense = read::<T>(client, masked.values, matrix.data.len());
            let by_index = TopkOptions { sorted: false, ..*options };
            let found = masked.indices.map(positions);
            Ok(verify::mask(matrix, options, &dense).and_then(|()| {
                found.map_or(Ok(()), |found| verify::selection(matrix, &by_index, None, &found))
            }))
        }
    }
}
