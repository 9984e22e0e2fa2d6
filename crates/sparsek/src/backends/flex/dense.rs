use burn::{
    backend::{
        Flex,
        ops::{FloatTensorOps, ModuleOps},
        tensor::{FloatTensor, IntTensor},
    },
    tensor::Shape,
};
use burn_flex::FlexTensor;
use multiversion::multiversion;
use num_traits::Float as _;
use rayon::prelude::*;
use sparsek_kernels::dense::{AdamFactors, DropoutMask, STEP_WORDS};

use super::{
    element::{Float, filled, from_vec, with_float, with_index},
    parallel,
    spmm::{add_range, add_rows},
    tuning::{ACCUMULATORS, MAX_SHARES, MIN_FILL, MIN_SHARE_ROWS, SUM_ROWS},
};
use crate::ops::{DenseGradientOps, DenseOps};

fn moments<E: Float>(row: &[E], epsilon: f32) -> [E::Sum; 2] {
    let count = number::<E>(row.len() as f64);
    let sum = |numbers: &dyn Fn(E::Sum) -> E::Sum| {
        let mut sum = E::Sum::default();
        row.iter().for_each(|&x| sum += numbers(x.widen()));
        sum / count
    };
    let mean = sum(&|x| x);
    let variance = sum(&|x| (x - mean) * (x - mean));
    [mean, (variance + number::<E>(epsilon.into())).sqrt().recip()]
}

fn number<E: Float>(x: f64) -> E::Sum {
    num_traits::cast(x).expect("sums are floats")
}

fn class_of(label: impl TryInto<usize>) -> Option<usize> {
    label.try_into().ok()
}

fn exponentials<E: Float>(row: &[E]) -> [E::Sum; 2] {
    let mut greatest = row[0].widen();
    row.iter().for_each(|x| {
        if x.widen() > greatest {
            greatest = x.widen();
        }
    });
    let mut sum = E::Sum::default();
    row.iter().for_each(|x| sum += (x.widen() - greatest).exp());
    [greatest, sum]
}

fn widened<E: Float>(tensor: &FlexTensor) -> Vec<E::Sum> {
    let tensor = tensor.to_contiguous();
    let elements: &[E] = tensor.as_slice().expect("contiguous");
    elements.iter().map(|&x| x.widen()).collect()
}

#[multiversion(targets("x86_64+avx2"))]
fn dot<E: Float>(left: &[E], right: &[E]) -> E::Sum {
    let mut sums = [<E as Float>::Sum::default(); ACCUMULATORS];
    let (lefts, rights) = (left.chunks_exact(ACCUMULATORS), right.chunks_exact(ACCUMULATORS));
    let mut rest = <E as Float>::Sum::default();
    for (a, b) in lefts.remainder().iter().zip(rights.remainder()) {
        rest += a.widen() * b.widen();
    }
    for (left, right) in lefts.zip(rights) {
        for (sum, (a, b)) in sums.iter_mut().zip(left.iter().zip(right)) {
            *sum += a.widen() * b.widen();
        }
    }
    sums.into_iter().for_each(|sum| rest += sum);
    rest
}

impl DenseOps for Flex {
    fn linear_rows(x: FloatTensor<Self>, weight: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::linear(x, weight, None)
    }

    fn linear_rows_biased(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        Self::linear(x, weight, Some(bias))
    }

    fn linear_rows_added(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        addend: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        Self::float_add(Self::linear(x, weight, Some(bias)), addend)
    }

    fn add_bias_rows(x: FloatTensor<Self>, bias: FloatTensor<Self>) -> FloatTensor<Self> {
        let width = bias.layout().shape()[0];
        Self::float_add(x, Self::float_reshape(bias, [1, width].into()))
    }

    fn row_products(
        x: FloatTensor<Self>,
        y: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        Self::linear(x, Self::float_transpose(y), Some(bias))
    }

    fn layer_norm_rows(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f32,
    ) -> FloatTensor<Self> {
        let x = x.to_contiguous();
        let shape = x.layout().shape().clone();
        let width = shape[1].max(1);
        with_float!(x.dtype(), E => {
            let (gamma, beta) = (widened::<E>(&gamma), widened::<E>(&beta));
            let source: &[E] = x.as_slice().expect("contiguous");
            let mut output = source.to_vec();
            parallel::rows(&mut output, width, || (), |_, _, row| {
                let [mean, inverse] = moments(row, epsilon);
                for ((x, &gamma), &beta) in row.iter_mut().zip(&gamma).zip(&beta) {
                    *x = E::narrow((x.widen() - mean) * inverse * gamma + beta);
                }
            });
            from_vec(output, shape)
        })
    }

    fn linear_compressed(
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        weight: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let [values, columns, weight] = [values, columns, weight].map(|t| t.to_contiguous());
        let [rows, k] = values.layout().shape().dims();
        let [_, across] = weight.layout().shape().dims();
        with_float!(values.dtype(), E => with_index!(columns.dtype(), I => {
            let values: &[E] = values.as_slice().expect("contiguous");
            let places: &[I] = columns.as_slice().expect("contiguous");
            let weight: &[E] = weight.as_slice().expect("contiguous");
            let row_of = |at: usize| &weight[places[at] as usize * across..][..across];
            let mut output = filled(E::narrow(Default::default()), rows * across);
            parallel::rows(&mut output, across, Vec::new, |sums, row, output| {
                sums.clear();
                sums.resize(across, Default::default());
                let slots = row * k..row * k + k;
                add_range(sums, slots, row_of, |at| values[at].widen());
                for (output, &sum) in output.iter_mut().zip(sums.iter()) {
                    *output = E::narrow(sum);
                }
            });
            from_vec(output, Shape::from([rows, across]))
        }))
    }

    fn linear_selected(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        columns: IntTensor<Self>,
    ) -> FloatTensor<Self> {
        Self::linear_compressed_gradient(columns, weight, x)
    }

    fn column_sums(x: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::linear_bias_backward(x)
    }

    fn cross_entropy(
        scores: FloatTensor<Self>,
        labels: IntTensor<Self>,
        scale: f32,
    ) -> FloatTensor<Self> {
        let [scores, labels] = [scores, labels].map(|tensor| tensor.to_contiguous());
        let classes = scores.layout().shape()[1];
        with_float!(scores.dtype(), E => with_index!(labels.dtype(), I => {
            let elements: &[E] = scores.as_slice().expect("contiguous");
            let labels: &[I] = labels.as_slice().expect("contiguous");
            let run = SUM_ROWS * classes.max(1);
            let parts = labels.len().div_ceil(SUM_ROWS);
            let sums = parallel::collect(parts, &|part| {
                let rows = elements[part * run..].chunks_exact(classes.max(1));
                let labels = labels[part * SUM_ROWS..].iter().take(SUM_ROWS);
                let mut sum = <E as Float>::Sum::default();
                for (row, &label) in rows.zip(labels) {
                    if let Some(label) = class_of(label) {
                        let [greatest, exponentials] = exponentials(row);
                        let own = row.get(label).map(|x| x.widen());
                        let own = own.unwrap_or_else(<E as Float>::Sum::min_value);
                        sum += exponentials.ln() + (greatest - own);
                    }
                }
                sum
            });
            let mut sum = <E as Float>::Sum::default();
            sums.into_iter().for_each(|part| sum += part);
            from_vec(vec![E::narrow(sum * number::<E>(scale.into()))], Shape::from([1]))
        }))
    }

    fn dropout(
        x: FloatTensor<Self>,
        words: IntTensor<Self>,
        keep: f32,
        call: u32,
    ) -> FloatTensor<Self> {
        let x = x.to_contiguous();
        let [_, _, low, high] = step_words(&words);
        let mask = DropoutMask::new([low, high], call, keep);
        with_float!(x.dtype(), E => {
            let scale = number::<E>((1.0 / keep).into());
            let elements: &[E] = x.as_slice().expect("contiguous");
            let kept = elements.par_iter().with_min_len(MIN_FILL).enumerate();
            let kept = kept.map(|(place, x)| match mask.keeps(place) {
                true => E::narrow(x.widen() * scale),
                false => E::narrow(<E as Float>::Sum::default()),
            });
            from_vec(kept.collect(), x.layout().shape().clone())
        })
    }
}

fn step_words(words: &FlexTensor) -> [u32; STEP_WORDS] {
    let words = words.to_contiguous();
    let words: &[i32] = words.as_slice().expect("words of i32");
    std::array::from_fn(|word| words[word] as u32)
}

impl DenseGradientOps for Flex {
    fn linear_rows_backward(
        weight: FloatTensor<Self>,
        upstream: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        Self::linear_x_backward(weight, upstream)
    }

    fn linear_rows_gradient(
        x: FloatTensor<Self>,
        upstream: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        Self::linear_weight_backward(x, upstream)
    }

    fn layer_norm_rows_gradient(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        upstream: FloatTensor<Self>,
        epsilon: f32,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let (x, upstream) = (x.to_contiguous(), upstream.to_contiguous());
        let shape = x.layout().shape().clone();
        let width = shape[1];
        with_float!(x.dtype(), E => {
            let gamma = widened::<E>(&gamma);
            let source: &[E] = x.as_slice().expect("contiguous");
            let upstream: &[E] = upstream.as_slice().expect("contiguous");
            let mut gradient = upstream.to_vec();
            let run = SUM_ROWS * width.max(1);
            let sums = gradient.par_chunks_mut(run).zip(source.par_chunks(run)).map(|(rows, x)| {
                let mut sums = vec![<E as Float>::Sum::default(); 2 * width];
                for (row, x) in rows.chunks_exact_mut(width).zip(x.chunks_exact(width)) {
                    row_gradient(x, row, &gamma, epsilon, &mut sums);
                }
                sums
            });
            let sums: Vec<_> = sums.collect();
            let mut parameters = vec![<E as Float>::Sum::default(); 2 * width];
            for sums in sums {
                parameters.iter_mut().zip(sums).for_each(|(all, part)| *all += part);
            }
            let parameters: Vec<E> = parameters.into_iter().map(E::narrow).collect();
            (from_vec(gradient, shape), from_vec(parameters, Shape::from([2, width])))
        })
    }

    fn linear_compressed_gradient(
        columns: IntTensor<Self>,
        weight: FloatTensor<Self>,
        upstream: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let [columns, weight, upstream] = [columns, weight, upstream].map(|t| t.to_contiguous());
        let shape = columns.layout().shape().clone();
        let [_, across] = weight.layout().shape().dims();
        with_float!(weight.dtype(), E => with_index!(columns.dtype(), I => {
            let places: &[I] = columns.as_slice().expect("contiguous");
            let weight: &[E] = weight.as_slice().expect("contiguous");
            let upstream: &[E] = upstream.as_slice().expect("contiguous");
            let k = shape[1];
            let mut gradient = filled(E::narrow(Default::default()), places.len());
            parallel::rows(&mut gradient, k, || (), |_, row, gradient| {
                let upstream = &upstream[row * across..][..across];
                for (output, &place) in gradient.iter_mut().zip(&places[row * k..]) {
                    let weight = &weight[place as usize * across..][..across];
                    *output = E::narrow(dot(upstream, weight));
                }
            });
            from_vec(gradient, shape)
        }))
    }

    fn linear_compressed_weight_gradient(
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        upstream: FloatTensor<Self>,
        width: usize,
    ) -> FloatTensor<Self> {
        let [values, columns, upstream] = [values, columns, upstream].map(|t| t.to_contiguous());
        let [rows, k] = values.layout().shape().dims();
        let [_, across] = upstream.layout().shape().dims();
        let share = rows.div_ceil(MAX_SHARES).max(MIN_SHARE_ROWS);
        with_float!(values.dtype(), E => with_index!(columns.dtype(), I => {
            let values: &[E] = values.as_slice().expect("contiguous");
            let places: &[I] = columns.as_slice().expect("contiguous");
            let upstream: &[E] = upstream.as_slice().expect("contiguous");
            let shares = parallel::collect(rows.div_ceil(share), &|number| {
                let mut sums = vec![<E as Float>::Sum::default(); width * across];
                for row in number * share..rows.min(number * share + share) {
                    let upstream = &upstream[row * across..][..across];
                    for at in row * k..row * k + k {
                        let sums = &mut sums[places[at] as usize * across..][..across];
                        add_rows(sums, [upstream], [values[at].widen()]);
                    }
                }
                sums
            });
            let mut gradient = vec![<E as Float>::Sum::default(); width * across];
            for sums in shares {
                gradient.iter_mut().zip(sums).for_each(|(all, part)| *all += part);
            }
            let gradient: Vec<E> = gradient.into_iter().map(E::narrow).collect();
            from_vec(gradient, Shape::from([width, across]))
        }))
    }

    fn cross_entropy_gradient(
        scores: FloatTensor<Self>,
        labels: IntTensor<Self>,
        upstream: FloatTensor<Self>,
        scale: f32,
    ) -> FloatTensor<Self> {
        let [scores, labels, upstream] =
            [scores, labels, upstream].map(|tensor| tensor.to_contiguous());
        let shape = scores.layout().shape().clone();
        let classes = shape[1].max(1);
        with_float!(scores.dtype(), E => with_index!(labels.dtype(), I => {
            let upstream: &[E] = upstream.as_slice().expect("contiguous");
            let factor = number::<E>(scale.into()) * upstream[0].widen();
            let labels: &[I] = labels.as_slice().expect("contiguous");
            let scores: &[E] = scores.as_slice().expect("contiguous");
            let mut gradient = scores.to_vec();
            parallel::rows(&mut gradient, classes, || (), |_, at, row| {
                let Some(label) = class_of(labels[at]) else {
                    return row.fill(E::narrow(Default::default()));
                };
                let [greatest, sum] = exponentials(row);
                for (class, x) in row.iter_mut().enumerate() {
                    let own = number::<E>(if class == label { 1.0 } else { 0.0 });
                    *x = E::narrow(factor * ((x.widen() - greatest).exp() / sum - own));
                }
            });
            from_vec(gradient, shape)
        }))
    }

    fn class_hits(scores: FloatTensor<Self>, labels: IntTensor<Self>) -> FloatTensor<Self> {
        let [scores, labels] = [scores, labels].map(|tensor| tensor.to_contiguous());
        let [rows, classes] = scores.layout().shape().dims();
        with_float!(scores.dtype(), E => with_index!(labels.dtype(), I => {
            let elements: &[E] = scores.as_slice().expect("contiguous");
            let labels: &[I] = labels.as_slice().expect("contiguous");
            let mut hits = vec![E::narrow(Default::default()); rows];
            let rows = elements.chunks_exact(classes.max(1)).zip(labels);
            for ((row, &label), hit) in rows.zip(&mut hits) {
                let mut best = 0;
                for (class, x) in row.iter().enumerate() {
                    if x.widen() > row[best].widen() {
                        best = class;
                    }
                }
                if class_of(label) == Some(best) {
                    *hit = E::narrow(number::<E>(1.0));
                }
            }
            from_vec(hits, Shape::from([labels.len()]))
        }))
    }

    fn adam_step(
        x: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        factors: AdamFactors,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let [x, gradient, first, second] =
            [x, gradient, first, second].map(|tensor| tensor.to_contiguous());
        let shape = x.layout().shape().clone();
        with_float!(x.dtype(), E => {
            let factor = |x: f32| number::<E>(x.into());
            let [beta_1, beta_2] = [factors.beta_1, factors.beta_2].map(factor);
            let [rest_1, rest_2] =
                [1.0 - factors.beta_1, 1.0 - factors.beta_2].map(factor);
            let [decay, rate, epsilon] =
                [factors.decay, factors.rate, factors.epsilon].map(factor);
            let copy = |tensor: &FlexTensor| -> Vec<E> {
                let elements: &[E] = tensor.as_slice().expect("contiguous");
                elements.to_vec()
            };
            let gradient: &[E] = gradient.as_slice().expect("contiguous");
            let [mut x, mut first, mut second] = [&x, &first, &second].map(copy);
            let moments = first.par_iter_mut().zip(&mut second).with_min_len(MIN_FILL);
            x.par_iter_mut().zip(gradient).zip(moments).for_each(|((x, g), (m, v))| {
                let g = g.widen() + x.widen() * decay;
                let first = m.widen() * beta_1 + g * rest_1;
                let second = v.widen() * beta_2 + g * g * rest_2;
                *x = E::narrow(x.widen() - first * rate / (second.sqrt() + epsilon));
                (*m, *v) = (E::narrow(first), E::narrow(second));
            });
            (
                from_vec(x, shape.clone()),
                from_vec(first, shape.clone()),
                from_vec(second, shape),
            )
        })
    }

    fn adam_step_in_place(
        x: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        words: IntTensor<Self>,
        factors: AdamFactors,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let [rate, epsilon, ..] = step_words(&words).map(f32::from_bits);
        Self::adam_step(x, gradient, first, second, AdamFactors { rate, epsilon, ..factors })
    }

    fn next_step(
        table: IntTensor<Self>,
        counter: IntTensor<Self>,
    ) -> (IntTensor<Self>, IntTensor<Self>) {
        let table = table.to_contiguous();
        let rows: &[i32] = table.as_slice().expect("words of i32");
        let step: &[i32] = counter.as_slice().expect("a counter of i32");
        let step = step[0];
        let last = rows.len() / STEP_WORDS - 1;
        let row = &rows[last.min(step as usize) * STEP_WORDS..][..STEP_WORDS];
        let words = from_vec(row.to_vec(), Shape::from([STEP_WORDS]));
        (words, from_vec(vec![step + 1], Shape::from([1])))
    }
}

/// Overwrites `row`, the upstream; `sums`: gamma, then beta.
fn row_gradient<E: Float>(
    x: &[E],
    row: &mut [E],
    gamma: &[E::Sum],
    epsilon: f32,
    sums: &mut [E::Sum],
) {
    let [mean, inverse] = moments(x, epsilon);
    let count = number::<E>(x.len() as f64);
    let (scales, offsets) = sums.split_at_mut(x.len());
    let (mut plain, mut along) = (E::Sum::default(), E::Sum::default());
    for (column, (&x, upstream)) in x.iter().zip(row.iter()).enumerate() {
        let (value, upstream) = ((x.widen() - mean) * inverse, upstream.widen());
        scales[column] += upstream * value;
        offsets[column] += upstream;
        plain += upstream * gamma[column];
        along += upstream * gamma[column] * value;
    }
    let (plain, along) = (plain / count, along / count);
    for ((&x, own), &gamma) in x.iter().zip(row).zip(gamma) {
        let value = (x.widen() - mean) * inverse;
        *own = E::narrow((own.widen() * gamma - plain - value * along) * inverse);
    }
}
