//! Layers of many dense rows, such as nodes of a graph.
//!
//! As Burn's layers, but sums over all rows run in slices to fill a GPU, and TF32 tensor cores use
//! this crate's kernels. `x` is f32, f64, f16 or bf16; parameters have its dtype. Functions panic
//! if shapes or dtypes do not fit, or the device lacks the dtype.

use burn::{
    backend::Dispatch,
    tensor::{DType, Tensor},
};

use crate::{ops::DenseOps, sparse::Compressed};

/// `x · weight + bias`. Differentiable.
///
/// # Shapes
///
/// `x`: `[rows, inputs]`, `weight`: `[inputs, outputs]`, `bias`: `[outputs]`; result: `[rows,
/// outputs]`. Panics if shapes or dtypes do not fit.
///
/// # Guarantees
///
/// As Burn's products, which may round f32 for tensor cores. On CUDA with TF32, at least 8192 rows
/// of f32, with inputs and outputs in multiples of 4, use this crate's kernels: factors rounded to
/// 11 bits, sums in f32, deterministic per device. The weight's gradient sums slices of at most
/// 2048 rows on GPUs.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::dense::linear;
///
/// let device = Device::flex();
/// let x = Tensor::<2>::from_data([[1.0, 2.0]], &device);
/// let weight = Tensor::from_data([[1.0], [10.0]], &device);
/// let y = linear(x, weight, Some(Tensor::from_data([100.0], &device)));
/// y.into_data().assert_eq(&TensorData::from([[121.0]]), false);
/// ```
pub fn linear(x: Tensor<2>, weight: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<2> {
    let ([_, width], [inputs, outputs]) = (x.dims(), weight.dims());
    assert!(
        width == inputs,
        "linear: rows of {width} elements, but the weight has {inputs} rows"
    );
    check("linear", "the weight", x.dtype(), weight.dtype());
    if let Some(bias) = &bias {
        let [found] = bias.dims();
        assert!(
            found == outputs,
            "linear: a bias of {found} elements for {outputs} columns"
        );
        check("linear", "the bias", x.dtype(), bias.dtype());
    }
    let (x, weight) = (x.into_dispatch(), weight.into_dispatch());
    Tensor::from_dispatch(match bias {
        None => <Dispatch as DenseOps>::linear_rows(x, weight),
        Some(bias) => <Dispatch as DenseOps>::linear_rows_biased(x, weight, bias.into_dispatch()),
    })
}

/// [`linear`] of compressed rows. `x.to_dense()` is not kept for the gradient, nor built on Flex.
///
/// `x`: `[rows, inputs]` compressed, `weight`: `[inputs, outputs]`; result: `[rows, outputs]`.
/// Panics if shapes or dtypes do not fit.
///
/// Flex is deterministic, sums 16-bit floats in f32, and takes k / `inputs` of the dense product.
/// GPUs take two more passes over dense rows.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::{dense::linear_compressed, sparse::sparse_topk, topk::Method};
///
/// let device = Device::flex();
/// let x = sparse_topk(Tensor::<2>::from_data([[1.0, 2.0]], &device), 1, Method::Exact);
/// let y = linear_compressed(&x, Tensor::from_data([[1.0], [10.0]], &device));
/// y.into_data().assert_eq(&TensorData::from([[20.0]]), false);
/// ```
pub fn linear_compressed(x: &Compressed, weight: Tensor<2>) -> Tensor<2> {
    let (width, [inputs, _]) = (x.width(), weight.dims());
    assert!(
        width == inputs,
        "linear_compressed: rows of {width} elements, but the weight has {inputs} rows"
    );
    check("linear_compressed", "the weight", x.dtype(), weight.dtype());
    Tensor::from_dispatch(<Dispatch as DenseOps>::linear_compressed(
        x.values().clone().into_dispatch(),
        x.columns().clone().into_dispatch(),
        weight.into_dispatch(),
    ))
}

/// `(x - mean) / sqrt(var + epsilon) * gamma + beta`, with mean and biased variance of each row.
///
/// `x`, result: `[rows, width]`; `gamma`, `beta`: `[width]`. Panics if shapes or dtypes do not fit.
///
/// Differentiable and deterministic; keeps `x` and `gamma`. Sums are f64 for f64, else f32. The
/// variance sums squared differences.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::dense::layer_norm;
///
/// let device = Device::flex();
/// let x = Tensor::<2>::from_data([[1.0, 3.0]], &device);
/// let y = layer_norm(x, Tensor::ones([2], &device), Tensor::zeros([2], &device), 0.0);
/// y.into_data().assert_eq(&TensorData::from([[-1.0, 1.0]]), false);
/// ```
pub fn layer_norm(x: Tensor<2>, gamma: Tensor<1>, beta: Tensor<1>, epsilon: f32) -> Tensor<2> {
    let [_, width] = x.dims();
    for (name, parameter) in [("gamma", &gamma), ("beta", &beta)] {
        let [found] = parameter.dims();
        assert!(
            found == width,
            "layer_norm: {name} has {found} elements, rows have {width}"
        );
        check("layer_norm", name, x.dtype(), parameter.dtype());
    }
    assert!(
        x.device().supports_dtype(x.dtype()),
        "layer_norm: dtype {:?} is not supported here",
        x.dtype()
    );
    Tensor::from_dispatch(<Dispatch as DenseOps>::layer_norm_rows(
        x.into_dispatch(),
        gamma.into_dispatch(),
        beta.into_dispatch(),
        epsilon,
    ))
}

fn check(operation: &str, name: &str, expected: DType, found: DType) {
    assert!(
        found == expected,
        "{operation}: {name} is {found:?}, but x is {expected:?}"
    );
}
