//! Layers of dense rows in plain Rust, parallel over rows.

use burn::{
    backend::{Flex, ops::ModuleOps, tensor::FloatTensor},
    tensor::{DType, Shape, bf16, f16},
};
use burn_flex::FlexTensor;
use num_traits::Float as _;
use rayon::prelude::*;

use super::{from_vec, sparse::Float};
use crate::ops::{DenseGradientOps, DenseOps};

/// Rows of a share of the work.
const RUN: usize = 128;

/// The mean of a row and the inverse of its standard deviation.
fn moments<E: Float>(row: &[E], epsilon: f32) -> [E::Sum; 2] {
    let count = number::<E>(row.len() as f64);
    let sum = |numbers: &dyn Fn(E::Sum) -> E::Sum| {
        let mut sum = E::Sum::default();
        row.iter().for_each(|&x| sum += numbers(x.widen()));
        sum / count
    };
    let mean = sum(&|x| x);
    let variance = sum(&|x| (x - mean) * (x - mean));
    [
        mean,
        (variance + number::<E>(epsilon.into())).sqrt().recip(),
    ]
}

fn number<E: Float>(x: f64) -> E::Sum {
    num_traits::cast(x).expect("sums are floats")
}

fn widened<E: Float>(tensor: &FlexTensor) -> Vec<E::Sum> {
    let tensor = tensor.to_contiguous();
    let elements: &[E] = tensor.as_slice().expect("contiguous");
    elements.iter().map(|&x| x.widen()).collect()
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
            output.par_chunks_exact_mut(width).for_each(|row| {
                let [mean, inverse] = moments(row, epsilon);
                for ((x, &gamma), &beta) in row.iter_mut().zip(&gamma).zip(&beta) {
                    *x = E::narrow((x.widen() - mean) * inverse * gamma + beta);
                }
            });
            from_vec(output, shape)
        })
    }
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

    fn column_sums(x: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::linear_bias_backward(x)
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
            let run = RUN * width.max(1);
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
                parameters.iter_mut().zip(sums).for_each(|(all, own)| *all += own);
            }
            let parameters: Vec<E> = parameters.into_iter().map(E::narrow).collect();
            (from_vec(gradient, shape), from_vec(parameters, Shape::from([2, width])))
        })
    }
}

/// Makes the upstream gradient of a row that of the row, and adds to the sums of gamma's and beta's.
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
