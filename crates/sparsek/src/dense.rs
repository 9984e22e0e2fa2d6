//! Layers of dense rows, one for each node of a graph: very many rows of few columns.
//!
//! The results are those of Burn's own layers. The gradients of parameters are sums over all rows, for which general products and
//! reductions leave most of a GPU idle; here they are cut into runs of rows. On tensor cores that multiply TF32 the products of many
//! rows are kernels of our own.

use burn::{
    backend::Dispatch,
    tensor::{DType, Tensor},
};

use crate::{
    ops::{DenseOps, MemberOps},
    sparse::Compressed,
};

/// `x · weight + bias`.
///
/// # Shapes
///
/// - `x`: `[rows, inputs]` of f32, f64, f16 or bf16.
/// - `weight`: `[inputs, outputs]`, `bias`: `[outputs]`, in the dtype of `x`.
/// - result: `[rows, outputs]`.
///
/// # Guarantees
///
/// Those of Burn's matrix products, which may round the factors of f32 to fewer bits for tensor cores. 8192 rows of f32 and more, of
/// inputs and outputs in multiples of 4, are multiplied by own kernels where CUDA has TF32: factors rounded to 11 bits, sums in f32,
/// deterministic on a device.
///
/// # Gradient
///
/// Of all three. That of the weight is a product for each 2048 rows on GPUs, then their sum.
///
/// # Cost
///
/// 2,449,029 rows of 256 with 256 outputs take 1.8 ms on an H200, so does the gradient of the rows; that of the weight 2.6.
///
/// # Panics
///
/// If the shapes or dtypes do not fit.
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

/// `x · weight` of compressed rows: [`linear`] of `x.to_dense()`, which is not kept for the gradient, and on Flex not made.
///
/// # Shapes
///
/// - `x`: `[rows, inputs]` compressed to k elements a row, f32, f64, f16 or bf16.
/// - `weight`: `[inputs, outputs]` in the dtype of `x`.
/// - result: `[rows, outputs]`.
///
/// # Guarantees
///
/// As [`linear`]; on Flex deterministic, halves are summed in f32.
///
/// # Gradient
///
/// Of the values and of the weight.
///
/// # Panics
///
/// If the shapes or dtypes do not fit.
///
/// # Cost
///
/// On GPUs that of the dense product, which tensor cores take, and two passes over dense rows; on Flex k of `inputs` of it.
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
    Tensor::from_dispatch(<Dispatch as MemberOps>::linear_members(
        x.values().clone().into_dispatch(),
        x.columns().clone().into_dispatch(),
        weight.into_dispatch(),
    ))
}

/// `(x - mean) / sqrt(var + epsilon) * gamma + beta`, with mean and biased variance of each row.
///
/// # Shapes
///
/// - `x` and the result: `[rows, width]` of f32, f64, f16 or bf16.
/// - `gamma`, `beta`: `[width]` in the dtype of `x`.
///
/// # Guarantees
///
/// Deterministic. Sums are kept in f32, or f64 where `x` is; the variance is of the differences from the mean.
///
/// # Gradient
///
/// Of all three, deterministic. Only `x` and `gamma` are kept for it.
///
/// # Panics
///
/// If the shapes or dtypes do not fit, or the device lacks the dtype.
///
/// # Cost
///
/// Reads and writes each row once; the gradient reads `x` and the upstream gradient twice.
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
