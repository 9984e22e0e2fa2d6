//! Properties of the tensor operations on views of rank 2, along either dimension.

use std::cell::RefCell;

use burn::tensor::kind::Ordered;
use burn::tensor::{DType, Device, Float, Tensor, TensorData};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestCaseResult;
use sparsek_kernels::topk as kernel;
use sparsek_tests::{
    backend::Backend, data::Matrix, element::Element, runner::Outcome, with_dtype,
};

use super::{
    common::{Plan, check_requests},
    request::{Extent, Request, Variant, request},
};
use crate::{
    kernels::{Check, I32, Layout},
    topk::{masks, ragged_tensors, tensors},
};

#[derive(Clone, Copy, Debug)]
enum View {
    Rows,
    /// Columns in sequence, selected along dimension 0.
    Columns,
    Transposed,
    Sliced,
}

impl View {
    const ALL: [Self; 4] = [Self::Rows, Self::Columns, Self::Transposed, Self::Sliced];

    /// Whether Burn can read the result: on the CPU runtime cubecl-std 0.11.3 divides by zero on
    /// empty transposed tensors.
    fn reads(self, request: &Request, variant: &Variant) -> bool {
        matches!(self, Self::Rows) || (variant.rows > 0 && request.options(variant).k > 0)
    }

    /// The tensor, and the dimension of its rows.
    fn tensor<K: Ordered, T: Element>(
        self,
        matrix: &Matrix<T>,
        device: &Device,
    ) -> (Tensor<2, K>, isize) {
        let (rows, cols) = (matrix.rows, matrix.cols);
        let make = |data: Vec<T>, shape| {
            Tensor::<2, K>::from_data(TensorData::new(data, shape), (device, T::dtype()))
        };
        let columns = || {
            let column = |j| (0..rows).map(move |i| matrix.data[i * cols + j]);
            make((0..cols).flat_map(column).collect(), [cols, rows])
        };
        match self {
            Self::Rows => (make(matrix.data.clone(), [rows, cols]), -1),
            Self::Columns => (columns(), 0),
            Self::Transposed => (columns().transpose(), -1),
            Self::Sliced => {
                let (height, width) = (rows + 3, cols + 8);
                // Surround it with the greatest bits.
                let mut data = vec![T::of_bits(!T::SIGN); height * width];
                for i in 0..rows {
                    let start = (i + 1) * width + 8;
                    data[start..start + cols].copy_from_slice(matrix.row(i));
                }
                let whole = make(data, [height, width]);
                (whole.slice([1..1 + rows, 8..8 + cols]), -1)
            }
        }
    }
}

/// `topk`, `argtopk`, `topk_bool_mask` and, for floats, `topk_mask` equal the oracle.
pub fn property(backend: &Backend, plan: Plan) -> Outcome {
    let check = RefCell::new(Check::new(backend, None));
    let requests = (request(Extent::FULL), select(View::ALL.to_vec()));
    check_requests(plan, requests, |(request, view)| {
        let check = &mut check.borrow_mut();
        with_dtype!(request.dtype, T => variants::<T>(backend, check, &request, view))
    })?;
    check.into_inner().end()
}

fn variants<T: Element>(
    backend: &Backend,
    check: &mut Check,
    request: &Request,
    view: View,
) -> TestCaseResult {
    let before = check.passed;
    for variant in request.variants.iter().filter(|variant| view.reads(request, variant)) {
        if !refused::<T>(backend, check, request, variant).map_err(TestCaseError::fail)? {
            compare::<T>(&backend.device, request, variant, view).map_err(TestCaseError::fail)?;
            check.passed += 1;
        }
    }
    if check.passed == before {
        return Err(TestCaseError::reject("refused"));
    }
    Ok(())
}

/// Whether Burn lacks the dtype or the kernels refuse the request as documented; the tensor
/// operations would panic.
fn refused<T: Element>(
    backend: &Backend,
    check: &mut Check,
    request: &Request,
    variant: &Variant,
) -> Result<bool, String> {
    if !backend.device.supports_dtype(T::dtype()) {
        return Ok(true);
    }
    let Some(client) = &backend.client else {
        return Ok(false);
    };
    // A request without rows is validated, but launches nothing.
    let none = Matrix::<T> {
        starts: None,
        lengths: request.ragged.then(Vec::new),
        rows: 0,
        cols: request.cols,
        data: Vec::new(),
    };
    let input = Layout::Contiguous.upload(client, &none);
    match kernel::topk(client, &input, &request.options(variant), I32, None) {
        Ok(_) => Ok(false),
        Err(error) => check.refuse(error).map(|()| true),
    }
}

fn compare<T: Element>(
    device: &Device,
    request: &Request,
    variant: &Variant,
    view: View,
) -> Result<(), String> {
    let matrix = request.matrix::<T>(variant);
    let options = request.options(variant);
    let (x, dim) = view.tensor::<T::Kind, T>(&matrix, device);
    let lengths = matrix.lengths.as_ref().map(|lengths| {
        let each = lengths.iter().map(|&length| length.min(i64::from(i32::MAX)));
        each.collect::<Vec<i64>>()
    });
    match &lengths {
        None => {
            tensors::check::<2, T::Kind, T>(&x, &options, dim)?;
            masks::check(x, &matrix, &options, dim)?;
        }
        Some(lengths) => {
            ragged_tensors::check::<2, 1, T>(&x, lengths, DType::I32, (&options, dim))?
        }
    }
    if T::FLOAT {
        let (x, _) = view.tensor::<Float, T>(&matrix, device);
        match &lengths {
            None => tensors::check_mask::<2, T>(&x, &options, dim)?,
            Some(lengths) => ragged_tensors::check_mask::<2, 1, T>(&x, lengths, (&options, dim))?,
        }
    }
    Ok(())
}
