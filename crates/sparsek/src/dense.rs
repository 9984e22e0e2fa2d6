//! Layers of many rows, such as graph nodes.
//!
//! `x` is f32, f64, f16 or bf16; parameters share its dtype. Functions panic if shapes or dtypes do
//! not fit, or the device lacks the dtype.

use burn::{
    backend::Dispatch,
    tensor::{DType, Int, Tensor},
};

pub use sparsek_kernels::dense::AdamFactors;

use crate::{
    ops::{DenseGradientOps, DenseOps},
    sparse::Compressed,
};

/// `x · weight + bias`. Differentiable.
///
/// `x`: `[rows, inputs]`, `weight`: `[inputs, outputs]`, `bias`: `[outputs]`; result: `[rows,
/// outputs]`.
///
/// From 8192 rows of f32, GPUs use this crate's kernels: f32 sums, deterministic per device, never
/// tuned. Factors round to 11 bits on CUDA (TF32), 16 on Vulkan (bf16), and never without tensor
/// cores. Else Burn's product runs, which may round f32; from 4096 rows, its GPU weight gradient
/// sums slices of ≤ 2048.
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
    check_linear("linear", &x, &weight, bias.as_ref());
    let (x, weight) = (x.into_dispatch(), weight.into_dispatch());
    Tensor::from_dispatch(match bias {
        None => <Dispatch as DenseOps>::linear_rows(x, weight),
        Some(bias) => <Dispatch as DenseOps>::linear_rows_biased(x, weight, bias.into_dispatch()),
    })
}

/// `x · weight + bias + addend`, as [`linear`]; one launch on CUDA with TF32.
///
/// `addend`, result: `[rows, outputs]`.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::dense::linear_added;
///
/// let device = Device::flex();
/// let x = Tensor::<2>::from_data([[1.0, 2.0]], &device);
/// let weight = Tensor::from_data([[1.0], [10.0]], &device);
/// let bias = Tensor::from_data([100.0], &device);
/// let y = linear_added(x, weight, bias, Tensor::from_data([[0.5]], &device));
/// y.into_data().assert_eq(&TensorData::from([[121.5]]), false);
/// ```
pub fn linear_added(
    x: Tensor<2>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    addend: Tensor<2>,
) -> Tensor<2> {
    check_linear("linear_added", &x, &weight, Some(&bias));
    let (wanted, found) = ([x.dims()[0], weight.dims()[1]], addend.dims());
    assert!(found == wanted, "linear_added: an addend of {found:?} for a result of {wanted:?}");
    check("linear_added", "the addend", x.dtype(), addend.dtype());
    Tensor::from_dispatch(<Dispatch as DenseOps>::linear_rows_added(
        x.into_dispatch(),
        weight.into_dispatch(),
        bias.into_dispatch(),
        addend.into_dispatch(),
    ))
}

/// `x + bias`: `[rows, width]` and `[width]`. Differentiable, the bias by [`column_sums`].
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::dense::add_bias;
///
/// let device = Device::flex();
/// let x = Tensor::<2>::from_data([[1.0], [2.0]], &device);
/// let y = add_bias(x, Tensor::from_data([10.0], &device));
/// y.into_data().assert_eq(&TensorData::from([[11.0], [12.0]]), false);
/// ```
pub fn add_bias(x: Tensor<2>, bias: Tensor<1>) -> Tensor<2> {
    let ([_, width], [found]) = (x.dims(), bias.dims());
    assert!(found == width, "add_bias: a bias of {found} elements for {width} columns");
    check("add_bias", "the bias", x.dtype(), bias.dtype());
    let (x, bias) = (x.into_dispatch(), bias.into_dispatch());
    Tensor::from_dispatch(<Dispatch as DenseOps>::add_bias_rows(x, bias))
}

fn check_linear(operation: &str, x: &Tensor<2>, weight: &Tensor<2>, bias: Option<&Tensor<1>>) {
    let ([_, width], [inputs, outputs]) = (x.dims(), weight.dims());
    assert!(
        width == inputs,
        "{operation}: rows of {width} elements, but the weight has {inputs} rows"
    );
    check(operation, "the weight", x.dtype(), weight.dtype());
    if let Some(bias) = bias {
        let [found] = bias.dims();
        assert!(found == outputs, "{operation}: a bias of {found} elements for {outputs} columns");
        check(operation, "the bias", x.dtype(), bias.dtype());
    }
}

/// [`linear`] of compressed rows. Gradients keep no dense `x`; Flex builds none.
///
/// `x`: `[rows, inputs]` compressed, `weight`: `[inputs, outputs]`; result: `[rows, outputs]`.
///
/// On Flex, and GPUs if `inputs` ≥ 64 k: deterministic, f32 sums of 16-bit floats, at k / `inputs`
/// of the dense cost, also for gradients. Else GPUs add two passes over dense rows.
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

/// `x · weightᵀ` at the columns of `kept`, ignoring its values.
///
/// `x`: `[rows, inputs]`, `weight`: `[width, inputs]`; `kept`, result: `[rows, width]` compressed.
///
/// Differentiable in `x` and `weight`, through kept outputs only. Costs as [`linear_compressed`].
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::{dense::linear_selected, sparse::sparse_topk, topk::Method};
///
/// let device = Device::flex();
/// let (x, weight) = (Tensor::<2>::from_data([[1.0]], &device), [[2.0], [7.0], [5.0]]);
/// let weight = Tensor::<2>::from_data(weight, &device);
/// let scores = x.clone().matmul(weight.clone().transpose());
/// let y = linear_selected(x, weight, &sparse_topk(scores, 2, Method::Exact));
/// y.to_dense().into_data().assert_eq(&TensorData::from([[0.0, 7.0, 5.0]]), false);
/// ```
pub fn linear_selected(x: Tensor<2>, weight: Tensor<2>, kept: &Compressed) -> Compressed {
    let ([rows, inputs], [width, found]) = (x.dims(), weight.dims());
    assert!(
        inputs == found,
        "linear_selected: rows of {inputs} elements, but the weight has {found} columns"
    );
    let (wanted, found) = ([rows, width], [kept.rows(), kept.width()]);
    assert!(found == wanted, "linear_selected: columns of {found:?} for a result of {wanted:?}");
    check("linear_selected", "the weight", x.dtype(), weight.dtype());
    let values = Tensor::from_dispatch(<Dispatch as DenseOps>::linear_selected(
        x.into_dispatch(),
        weight.into_dispatch(),
        kept.columns().clone().into_dispatch(),
    ));
    kept.clone().map(|_| values)
}

/// `(x - mean) / sqrt(var + epsilon) * gamma + beta` per row, with biased variance.
///
/// `x`, result: `[rows, width]`; `gamma`, `beta`: `[width]`.
///
/// Differentiable, deterministic; keeps `x` and `gamma`. Sums in f32 (f64 for f64); the variance
/// sums squared differences.
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
        assert!(found == width, "layer_norm: {name} has {found} elements, rows have {width}");
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

/// Adds all rows: `[rows, width]` → `[width]`. Differentiable, deterministic on GPUs.
///
/// Sums in f32 (f64 for f64).
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::dense::column_sums;
///
/// let x = Tensor::<2>::from_data([[1.0, 2.0], [10.0, 20.0]], &Device::flex());
/// column_sums(x).into_data().assert_eq(&TensorData::from([11.0, 22.0]), false);
/// ```
pub fn column_sums(x: Tensor<2>) -> Tensor<1> {
    Tensor::from_dispatch(<Dispatch as DenseOps>::column_sums(x.into_dispatch()))
}

/// `scale · Σ -ln softmax(scores[i])[labels[i]]`, `[1]`.
///
/// `scores`: `[rows, classes]`; `labels`: `[rows]`. Skips negative labels, with gradient 0; labels
/// ≥ `classes` have no meaning. A `scale` of 1 / labeled rows gives the mean.
///
/// Differentiable in the scores; deterministic on GPUs. Forward takes a launch and one per factor
/// of 128 rows, backward one. Sums in f32 (f64 for f64). Panics for f64 on wgpu.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor, TensorData};
/// use sparsek::dense::cross_entropy;
///
/// let device = Device::flex();
/// let scores = Tensor::<2>::from_data([[0.0, 0.0], [5.0, 1.0]], &device);
/// let labels = Tensor::<1, Int>::from_data([1, -1], &device);
/// let loss = cross_entropy(scores, labels, 1.0).into_data();
/// loss.assert_approx_eq::<f32>(&TensorData::from([2f32.ln()]), Default::default());
/// ```
pub fn cross_entropy(scores: Tensor<2>, labels: Tensor<1, Int>, scale: f32) -> Tensor<1> {
    check_labels("cross_entropy", &scores, &labels);
    let (scores, labels) = (scores.into_dispatch(), labels.into_dispatch());
    Tensor::from_dispatch(<Dispatch as DenseOps>::cross_entropy(scores, labels, scale))
}

/// 1 where the label scores highest (first of ties), else 0.
///
/// Negative labels give 0. `scores`: `[rows, classes]`, outside autodiff; `labels`, result:
/// `[rows]`.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor, TensorData};
/// use sparsek::dense::class_hits;
///
/// let device = Device::flex();
/// let scores = Tensor::<2>::from_data([[1.0, 3.0], [5.0, 1.0]], &device);
/// let labels = Tensor::<1, Int>::from_data([1, 1], &device);
/// class_hits(scores, labels).into_data().assert_eq(&TensorData::from([1.0, 0.0]), false);
/// ```
pub fn class_hits(scores: Tensor<2>, labels: Tensor<1, Int>) -> Tensor<1> {
    check_labels("class_hits", &scores, &labels);
    assert!(
        !scores.device().is_autodiff(),
        "class_hits: the scores are tracked; pass them without autodiff"
    );
    let (scores, labels) = (scores.into_dispatch(), labels.into_dispatch());
    Tensor::from_dispatch(<Dispatch as DenseGradientOps>::class_hits(scores, labels))
}

fn check_labels(operation: &str, scores: &Tensor<2>, labels: &Tensor<1, Int>) {
    let ([rows, classes], [found]) = (scores.dims(), labels.dims());
    assert!(found == rows, "{operation}: {found} labels for {rows} rows of scores");
    assert!(classes > 0, "{operation}: scores of no class");
}

/// Runs an Adam step (Kingma and Ba, 2015) in one launch.
///
/// Returns parameter and moments; [`AdamFactors`] gives the formula. Tensors share shape and dtype,
/// outside autodiff. Deterministic; computes in f32 (f64 for f64).
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::dense::{AdamFactors, adam_step};
///
/// let one = |x: f32| Tensor::<1>::from_data([x], &Device::flex());
/// let factors = AdamFactors { beta_1: 0.5, beta_2: 0.0, decay: 0.0, rate: 0.1, epsilon: 0.0 };
/// let (x, [first, second]) = adam_step(one(1.0), one(4.0), [one(0.0), one(0.0)], factors);
/// x.into_data().assert_approx_eq::<f32>(&TensorData::from([0.95]), Default::default());
/// first.into_data().assert_eq(&TensorData::from([2.0]), false);
/// second.into_data().assert_eq(&TensorData::from([16.0]), false);
/// ```
pub fn adam_step<const D: usize>(
    x: Tensor<D>,
    gradient: Tensor<D>,
    moments: [Tensor<D>; 2],
    factors: AdamFactors,
) -> (Tensor<D>, [Tensor<D>; 2]) {
    check_adam("adam_step", &x, &gradient, &moments);
    let [first, second] = moments;
    let (x, first, second) = <Dispatch as DenseGradientOps>::adam_step(
        x.into_dispatch(),
        gradient.into_dispatch(),
        first.into_dispatch(),
        second.into_dispatch(),
        factors,
    );
    let moments = [first, second].map(Tensor::from_dispatch);
    (Tensor::from_dispatch(x), moments)
}

pub(crate) fn check_adam<const D: usize>(
    operation: &str,
    x: &Tensor<D>,
    gradient: &Tensor<D>,
    [first, second]: &[Tensor<D>; 2],
) {
    for (name, other) in
        [("the gradient", gradient), ("the first moment", first), ("the second moment", second)]
    {
        let (shape, found) = (x.dims(), other.dims());
        assert!(found == shape, "{operation}: {name} has shape {found:?}, the parameter {shape:?}");
        check(operation, name, x.dtype(), other.dtype());
    }
    assert!(
        !x.device().is_autodiff(),
        "{operation}: the parameter is tracked; pass it without autodiff"
    );
}

fn check(operation: &str, name: &str, expected: DType, found: DType) {
    assert!(found == expected, "{operation}: {name} is {found:?}, but x is {expected:?}");
}
