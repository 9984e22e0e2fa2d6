use burn::backend::{
    TensorMetadata,
    cubecl::dtype_to_elem_type,
    ops::{FloatTensorOps, ModuleOps},
    tensor::{FloatTensor, IntTensor},
};
use burn_cubecl::{
    CubeBackend,
    kernel::{into_contiguous, slice},
    tensor::CubeTensor,
};
use sparsek_kernels::dense::{
    self, AdamFactors, ClassScores, DenseRows, Normalized, PitchedRows, STEP_WORDS, Weight,
};

use super::{
    compressed::{Entries, is_sparse},
    tensor::{expect, tensor},
    tuning::{SLICE_ROWS, TALL_ROWS},
};
use crate::ops::{DenseGradientOps, DenseOps, SpmmGradientOps, SpmmOps};

fn slice_rows(count: usize) -> usize {
    let parts = (SLICE_ROWS / 2..=SLICE_ROWS).rev().step_by(8);
    parts.min_by_key(|part| count % part).unwrap_or(SLICE_ROWS)
}

fn linear(
    x: CubeTensor,
    weight: CubeTensor,
    bias: Option<CubeTensor>,
    addend: Option<CubeTensor>,
) -> CubeTensor {
    let [inputs, outputs] = weight.shape().dims();
    let weight = into_contiguous(weight);
    let bias = bias.map(into_contiguous);
    let matrix = Weight { handle: &weight.handle, inputs, outputs, strides: [outputs, 1] };
    match product(&x, &matrix, bias.as_ref(), addend.as_ref()) {
        Some(output) => output,
        None => added(CubeBackend::linear(x, weight, bias), addend),
    }
}

fn added(x: CubeTensor, addend: Option<CubeTensor>) -> CubeTensor {
    match addend {
        Some(addend) => CubeBackend::float_add(x, addend),
        None => x,
    }
}

fn product(
    x: &CubeTensor,
    matrix: &Weight,
    bias: Option<&CubeTensor>,
    addend: Option<&CubeTensor>,
) -> Option<CubeTensor> {
    let many = x.shape()[0] >= TALL_ROWS;
    many.then(|| product_of_any(x, matrix, bias, addend)).flatten()
}

fn product_of_any(
    x: &CubeTensor,
    matrix: &Weight,
    bias: Option<&CubeTensor>,
    addend: Option<&CubeTensor>,
) -> Option<CubeTensor> {
    if !matrix.fits(&x.client, &rows(x).into()) {
        return None;
    }
    let x = pitched(x);
    let (fused, later) = match dense::accumulates(&x.client) {
        true => (addend.cloned().map(into_contiguous), None),
        false => (None, addend.cloned()),
    };
    let [bias, fused] = [bias, fused.as_ref()].map(|tensor| tensor.map(|tensor| &tensor.handle));
    let output = dense::product(&x.client, &pitched_rows(&x), matrix, bias, fused);
    let shape = [x.shape()[0], matrix.outputs].into();
    let output = tensor(&x, expect("linear", output), shape, x.dtype);
    Some(added(output, later))
}

/// Copies unless elements are contiguous and kernels take a pitch.
fn pitched(x: &CubeTensor) -> CubeTensor {
    let strides = x.meta.strides();
    let plain = strides[1] == 1 && strides[0] >= x.shape()[1];
    match plain && dense::accumulates(&x.client) {
        true => x.clone(),
        false => into_contiguous(x.clone()),
    }
}

fn pitched_rows(x: &CubeTensor) -> PitchedRows<'_> {
    PitchedRows { rows: rows(x), pitch: x.meta.strides()[0] }
}

fn rows(x: &CubeTensor) -> DenseRows<'_> {
    let [rows, width] = x.shape().dims();
    DenseRows { handle: &x.handle, dtype: dtype_to_elem_type(x.dtype), rows, width }
}

fn normalized<'a>(x: &'a CubeTensor, gamma: &'a CubeTensor, epsilon: f32) -> Normalized<'a> {
    Normalized { x: rows(x), gamma: &gamma.handle, epsilon, planes: None }
}

fn with_scores<T>(
    scores: CubeTensor,
    labels: CubeTensor,
    body: impl FnOnce(&CubeTensor, &ClassScores) -> T,
) -> T {
    let [scores, labels] = [scores, labels].map(into_contiguous);
    let request = ClassScores {
        scores: rows(&scores),
        labels: &labels.handle,
        label_dtype: dtype_to_elem_type(labels.dtype),
    };
    body(&scores, &request)
}

fn transposed_product(x: CubeTensor, y: CubeTensor) -> CubeTensor {
    let last = x.meta.num_dims() - 1;
    CubeBackend::float_matmul(CubeBackend::float_swap_dims(x, last - 1, last), y)
}

impl DenseOps for CubeBackend {
    fn linear_rows(x: FloatTensor<Self>, weight: FloatTensor<Self>) -> FloatTensor<Self> {
        linear(x, weight, None, None)
    }

    fn linear_rows_biased(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        linear(x, weight, Some(bias), None)
    }

    fn linear_rows_added(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        addend: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        linear(x, weight, Some(bias), Some(addend))
    }

    fn add_bias_rows(x: FloatTensor<Self>, bias: FloatTensor<Self>) -> FloatTensor<Self> {
        let [width] = bias.shape().dims();
        Self::float_add(x, Self::float_reshape(bias, [1, width].into()))
    }

    fn row_products(
        x: FloatTensor<Self>,
        y: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let [outputs, inputs] = y.shape().dims();
        let [y, bias] = [y, bias].map(into_contiguous);
        let matrix = Weight { handle: &y.handle, inputs, outputs, strides: [1, inputs] };
        let many = outputs >= TALL_ROWS;
        let own = many.then(|| product_of_any(&x, &matrix, Some(&bias), None)).flatten();
        own.unwrap_or_else(|| CubeBackend::linear(x, CubeBackend::float_transpose(y), Some(bias)))
    }

    fn layer_norm_rows(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f32,
    ) -> FloatTensor<Self> {
        let [x, gamma, beta] = [x, gamma, beta].map(into_contiguous);
        let request = normalized(&x, &gamma, epsilon);
        let output = dense::layer_norm(&x.client, &request, &beta.handle);
        tensor(&x, expect("layer_norm", output), x.shape(), x.dtype)
    }

    fn linear_compressed(
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        weight: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let width = weight.shape()[0];
        if is_sparse(&columns, width) {
            return Entries::of_rows(columns, width).product(values, weight);
        }
        Self::linear_rows(Self::expand(values, columns, width), weight)
    }

    fn linear_selected(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        columns: IntTensor<Self>,
    ) -> FloatTensor<Self> {
        Self::linear_compressed_gradient(columns, weight, x)
    }

    fn column_sums(x: FloatTensor<Self>) -> FloatTensor<Self> {
        let x = into_contiguous(x);
        let sums = expect("column_sums", dense::column_sums(&x.client, &rows(&x)));
        tensor(&x, sums, [x.shape()[1]].into(), x.dtype)
    }

    fn cross_entropy(
        scores: FloatTensor<Self>,
        labels: IntTensor<Self>,
        scale: f32,
    ) -> FloatTensor<Self> {
        with_scores(scores, labels, |x, request| {
            let loss = dense::cross_entropy(&x.client, request, scale);
            tensor(x, expect("cross_entropy", loss), [1].into(), x.dtype)
        })
    }

    fn dropout(
        x: FloatTensor<Self>,
        words: IntTensor<Self>,
        keep: f32,
        call: u32,
    ) -> FloatTensor<Self> {
        let [x, words] = [x, words].map(into_contiguous);
        let output = dense::dropout(&x.client, &flat(&x), &words.handle, keep, call);
        tensor(&x, expect("dropout", output), x.shape(), x.dtype)
    }
}

fn flat(x: &CubeTensor) -> DenseRows<'_> {
    DenseRows {
        handle: &x.handle,
        dtype: dtype_to_elem_type(x.dtype),
        rows: 1,
        width: x.shape().num_elements(),
    }
}

impl DenseGradientOps for CubeBackend {
    fn linear_rows_backward(
        weight: FloatTensor<Self>,
        upstream: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let [inputs, outputs] = weight.shape().dims();
        let weight = into_contiguous(weight);
        let transposed = Weight {
            handle: &weight.handle,
            inputs: outputs,
            outputs: inputs,
            strides: [1, outputs],
        };
        match product(&upstream, &transposed, None, None) {
            Some(gradient) => gradient,
            None => Self::linear_x_backward(weight, upstream),
        }
    }

    fn linear_rows_gradient(
        x: FloatTensor<Self>,
        upstream: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let [count, width] = x.shape().dims();
        let [_, across] = upstream.shape().dims();
        let sides = [&x, &upstream];
        let [left, right] = sides.map(|side| rows(side).into());
        if count >= TALL_ROWS && dense::inner_fits(&x.client, &left, &right) {
            let sides = sides.map(pitched);
            let [left, right] = [&sides[0], &sides[1]].map(pitched_rows);
            let sum =
                expect("the gradient of linear", dense::inner_product(&x.client, &left, &right));
            return tensor(&x, sum, [width, across].into(), x.dtype);
        }
        if count < 2 * SLICE_ROWS {
            return transposed_product(x, upstream);
        }
        let rows_per_slice = slice_rows(count);
        let slices = count / rows_per_slice;
        let whole = slices * rows_per_slice;
        let sides = [(x, width), (upstream, across)];
        let sides = sides.map(|(side, width)| (into_contiguous(side), width));
        let [x, y] = sides.clone().map(|(side, width)| {
            let shape = [slices, rows_per_slice, width].into();
            tensor(&side, side.handle.clone(), shape, side.dtype)
        });
        let sum = Self::float_sum_dim(transposed_product(x, y), 0);
        let sum = Self::float_reshape(sum, [width, across].into());
        if whole == count {
            return sum;
        }
        let [x, y] = sides.map(|(side, width)| slice(side, &[whole..count, 0..width]));
        Self::float_add(sum, transposed_product(x, y))
    }

    fn layer_norm_rows_gradient(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        upstream: FloatTensor<Self>,
        epsilon: f32,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let [x, gamma, upstream] = [x, gamma, upstream].map(into_contiguous);
        let request = normalized(&x, &gamma, epsilon);
        let gradients = dense::layer_norm_gradient(&x.client, &request, &upstream.handle);
        let [gradient, parameters] = expect("the gradient of layer_norm", gradients);
        let width = x.shape()[1];
        (
            tensor(&x, gradient, x.shape(), x.dtype),
            tensor(&x, parameters, [2, width].into(), x.dtype),
        )
    }

    fn linear_compressed_gradient(
        columns: IntTensor<Self>,
        weight: FloatTensor<Self>,
        upstream: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let width = weight.shape()[0];
        if is_sparse(&columns, width) {
            return Entries::of_rows(columns, width).sampled(upstream, weight);
        }
        Self::gather_columns(Self::linear_rows_backward(weight, upstream), columns)
    }

    fn linear_compressed_weight_gradient(
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        upstream: FloatTensor<Self>,
        width: usize,
    ) -> FloatTensor<Self> {
        if is_sparse(&columns, width) {
            return Entries::of_columns(columns, width).product(values, upstream);
        }
        Self::linear_rows_gradient(Self::expand(values, columns, width), upstream)
    }

    fn cross_entropy_gradient(
        scores: FloatTensor<Self>,
        labels: IntTensor<Self>,
        upstream: FloatTensor<Self>,
        scale: f32,
    ) -> FloatTensor<Self> {
        let upstream = into_contiguous(upstream);
        with_scores(scores, labels, |x, request| {
            let gradient =
                dense::cross_entropy_gradient(&x.client, request, &upstream.handle, scale);
            let gradient = expect("the gradient of cross_entropy", gradient);
            tensor(x, gradient, x.shape(), x.dtype)
        })
    }

    fn class_hits(scores: FloatTensor<Self>, labels: IntTensor<Self>) -> FloatTensor<Self> {
        with_scores(scores, labels, |x, request| {
            let hits = expect("class_hits", dense::class_hits(&x.client, request));
            tensor(x, hits, [x.shape()[0]].into(), x.dtype)
        })
    }

    fn adam_step(
        x: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        factors: AdamFactors,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let [x, gradient, first, second] = [x, gradient, first, second].map(into_contiguous);
        let shape = x.shape();
        let moments = [&first.handle, &second.handle];
        let stepped = dense::adam_step(&x.client, &flat(&x), &gradient.handle, moments, factors);
        let [next, first, second] =
            expect("adam_step", stepped).map(|handle| tensor(&x, handle, shape.clone(), x.dtype));
        (next, first, second)
    }

    fn adam_step_in_place(
        x: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        words: IntTensor<Self>,
        factors: AdamFactors,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let [x, gradient, first, second] = [x, gradient, first, second].map(into_contiguous);
        let moments = [&first.handle, &second.handle];
        let stepped = dense::adam_step_in_place(
            &x.client,
            &flat(&x),
            &gradient.handle,
            moments,
            &words.handle,
            factors,
        );
        expect("adam_step_in_place", stepped);
        (x, first, second)
    }

    fn next_step(
        table: IntTensor<Self>,
        counter: IntTensor<Self>,
    ) -> (IntTensor<Self>, IntTensor<Self>) {
        let rows = table.shape()[0];
        let words = dense::next_step(&table.client, &table.handle, rows, &counter.handle);
        let words = expect("next_step", words);
        (tensor(&table, words, [STEP_WORDS].into(), table.dtype), counter)
    }
}
