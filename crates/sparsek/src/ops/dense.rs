use burn::backend::{
    Backend, backend_extension,
    tensor::{FloatTensor, IntTensor},
};
use sparsek_kernels::dense::AdamFactors;

/// Layers; compressed rows are `[rows, k]` values and ascending columns.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion"),
    Autodiff
)]
pub trait DenseOps: Backend {
    /// `x · weight`.
    #[fusion(dtype = x, shape = [x[0], weight[1]].into())]
    fn linear_rows(x: FloatTensor<Self>, weight: FloatTensor<Self>) -> FloatTensor<Self>;

    /// `x · weight + bias`.
    #[fusion(dtype = x, shape = [x[0], weight[1]].into())]
    fn linear_rows_biased(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    /// `x · weight + bias + addend`.
    #[fusion(dtype = x, shape = addend)]
    fn linear_rows_added(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        addend: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    /// `x + bias`.
    #[fusion(dtype = x, shape = x)]
    fn add_bias_rows(x: FloatTensor<Self>, bias: FloatTensor<Self>) -> FloatTensor<Self>;

    /// `x · yᵀ + bias`, rounded like tensor cores. No gradient.
    #[fusion(dtype = x, shape = [x[0], y[0]].into())]
    fn row_products(
        x: FloatTensor<Self>,
        y: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    /// Layer normalization.
    #[fusion(dtype = x, shape = x)]
    fn layer_norm_rows(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f32,
    ) -> FloatTensor<Self>;

    /// `x · weight` for compressed `x`.
    #[fusion(dtype = values, shape = [values[0], weight[1]].into())]
    fn linear_compressed(
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        weight: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    /// `x · weightᵀ` at `columns`.
    #[fusion(dtype = x, shape = columns)]
    fn linear_selected(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        columns: IntTensor<Self>,
    ) -> FloatTensor<Self>;

    /// Adds all rows.
    #[fusion(dtype = x, shape = [x[1]].into())]
    fn column_sums(x: FloatTensor<Self>) -> FloatTensor<Self>;

    /// Scaled sum of cross-entropies; skips negative labels.
    #[fusion(dtype = scores, shape = [1].into())]
    fn cross_entropy(
        scores: FloatTensor<Self>,
        labels: IntTensor<Self>,
        scale: f32,
    ) -> FloatTensor<Self>;

    /// Dropout by the seed in `words`; `call` numbers it in its step.
    #[fusion(dtype = x, shape = x)]
    fn dropout(
        x: FloatTensor<Self>,
        words: IntTensor<Self>,
        keep: f32,
        call: u32,
    ) -> FloatTensor<Self>;
}

#[cfg(feature = "fusion")]
mod shapes {
    use burn::backend::fusion::custom::TensorSpec;

    use super::AdamFactors;

    pub(super) fn stepped(
        x: &TensorSpec,
        _gradient: &TensorSpec,
        first: &TensorSpec,
        second: &TensorSpec,
        _factors: &AdamFactors,
    ) -> (TensorSpec, TensorSpec, TensorSpec) {
        (x.clone(), first.clone(), second.clone())
    }

    pub(super) fn stepped_in_place(
        x: &TensorSpec,
        gradient: &TensorSpec,
        first: &TensorSpec,
        second: &TensorSpec,
        _words: &TensorSpec,
        factors: &AdamFactors,
    ) -> (TensorSpec, TensorSpec, TensorSpec) {
        stepped(x, gradient, first, second, factors)
    }

    pub(super) fn step(table: &TensorSpec, counter: &TensorSpec) -> (TensorSpec, TensorSpec) {
        (TensorSpec::new([table.shape[1]].into(), table.dtype), counter.clone())
    }

    pub(super) fn normalized(
        x: &TensorSpec,
        gamma: &TensorSpec,
        _upstream: &TensorSpec,
        _epsilon: &f32,
    ) -> (TensorSpec, TensorSpec) {
        let parameters = [2, gamma.shape[0]];
        (x.clone(), TensorSpec::new(parameters.into(), x.dtype))
    }
}

/// Gradients of [`DenseOps`], hits and Adam.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion")
)]
pub trait DenseGradientOps: Backend {
    /// `upstream · weightᵀ`.
    #[fusion(dtype = upstream, shape = [upstream[0], weight[0]].into())]
    fn linear_rows_backward(
        weight: FloatTensor<Self>,
        upstream: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    /// `xᵀ · upstream`.
    #[fusion(dtype = upstream, shape = [x[1], upstream[1]].into())]
    fn linear_rows_gradient(x: FloatTensor<Self>, upstream: FloatTensor<Self>)
    -> FloatTensor<Self>;

    /// Gradients of rows; gamma and beta, `[2, width]`.
    #[fusion(meta = shapes::normalized)]
    fn layer_norm_rows_gradient(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        upstream: FloatTensor<Self>,
        epsilon: f32,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// `upstream · weightᵀ` at `columns`.
    #[fusion(dtype = upstream, shape = columns)]
    fn linear_compressed_gradient(
        columns: IntTensor<Self>,
        weight: FloatTensor<Self>,
        upstream: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    /// Weight gradient.
    #[fusion(dtype = upstream, shape = [*width, upstream[1]].into())]
    fn linear_compressed_weight_gradient(
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        upstream: FloatTensor<Self>,
        width: usize,
    ) -> FloatTensor<Self>;

    /// Gradient of [`DenseOps::cross_entropy`].
    #[fusion(dtype = scores, shape = scores)]
    fn cross_entropy_gradient(
        scores: FloatTensor<Self>,
        labels: IntTensor<Self>,
        upstream: FloatTensor<Self>,
        scale: f32,
    ) -> FloatTensor<Self>;

    /// 1 where the label scores highest, else 0.
    #[fusion(dtype = scores, shape = [scores[0]].into())]
    fn class_hits(scores: FloatTensor<Self>, labels: IntTensor<Self>) -> FloatTensor<Self>;

    /// Adam step.
    #[fusion(meta = shapes::stepped)]
    fn adam_step(
        x: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        factors: AdamFactors,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);

    /// [`adam_step`](Self::adam_step) in the given buffers, with rate and epsilon from `words`.
    #[fusion(meta = shapes::stepped_in_place)]
    fn adam_step_in_place(
        x: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        words: IntTensor<Self>,
        factors: AdamFactors,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);

    /// Table row at the counter; counts up in place.
    #[fusion(meta = shapes::step)]
    fn next_step(
        table: IntTensor<Self>,
        counter: IntTensor<Self>,
    ) -> (IntTensor<Self>, IntTensor<Self>);
}
