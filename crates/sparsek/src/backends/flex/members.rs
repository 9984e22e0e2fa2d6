//! A linear layer of compressed rows in plain Rust: only members are multiplied.

use burn::{
    backend::{
        Flex,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{DType, Shape, bf16, f16},
};
use multiversion::multiversion;
use rayon::prelude::*;

use super::{
    aggregate::{add_range, add_rows},
    filled, from_vec,
    sparse::Float,
};
use crate::ops::{MemberGradientOps, MemberOps};

/// Shares that rows are cut into, at most, each with sums of its own; and fewest rows of one.
const SHARES: usize = 64;
const FEWEST: usize = 512;
/// Sums of a dot product that are kept side by side.
const SIDE: usize = 16;

/// The dot product of rows of one length.
#[multiversion(targets("x86_64+avx2"))]
fn dot<E: Float>(left: &[E], right: &[E]) -> E::Sum {
    let mut sums = [<E as Float>::Sum::default(); SIDE];
    let (lefts, rights) = (left.chunks_exact(SIDE), right.chunks_exact(SIDE));
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

impl MemberOps for Flex {
    fn linear_members(
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
            output.par_chunks_exact_mut(across.max(1)).enumerate().for_each_init(
                || vec![<E as Float>::Sum::default(); across],
                |sums, (row, output)| {
                    sums.fill(Default::default());
                    let members = row * k..row * k + k;
                    add_range(sums, members, row_of, |at| values[at].widen());
                    for (output, &sum) in output.iter_mut().zip(sums.iter()) {
                        *output = E::narrow(sum);
                    }
                },
            );
            from_vec(output, Shape::from([rows, across]))
        }))
    }
}

impl MemberGradientOps for Flex {
    fn linear_members_gradient(
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
            let gradient = places.par_iter().enumerate().with_min_len(FEWEST).map(|(at, &place)| {
                let upstream = &upstream[at / shape[1] * across..][..across];
                E::narrow(dot(upstream, &weight[place as usize * across..][..across]))
            });
            from_vec(gradient.collect::<Vec<E>>(), shape)
        }))
    }

    fn linear_members_weight_gradient(
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        upstream: FloatTensor<Self>,
        width: usize,
    ) -> FloatTensor<Self> {
        let [values, columns, upstream] = [values, columns, upstream].map(|t| t.to_contiguous());
        let [rows, k] = values.layout().shape().dims();
        let [_, across] = upstream.layout().shape().dims();
        let share = rows.div_ceil(SHARES).max(FEWEST);
        with_float!(values.dtype(), E => with_index!(columns.dtype(), I => {
            let values: &[E] = values.as_slice().expect("contiguous");
            let places: &[I] = columns.as_slice().expect("contiguous");
            let upstream: &[E] = upstream.as_slice().expect("contiguous");
            let shares: Vec<_> = (0..rows.div_ceil(share)).into_par_iter().map(|number| {
                let mut sums = vec![<E as Float>::Sum::default(); width * across];
                for row in number * share..rows.min(number * share + share) {
                    let upstream = &upstream[row * across..][..across];
                    for at in row * k..row * k + k {
                        let sums = &mut sums[places[at] as usize * across..][..across];
                        add_rows(sums, [upstream], [values[at].widen()]);
                    }
                }
                sums
            }).collect();
            let mut gradient = vec![<E as Float>::Sum::default(); width * across];
            for sums in shares {
                gradient.iter_mut().zip(sums).for_each(|(all, own)| *all += own);
            }
            let gradient: Vec<E> = gradient.into_iter().map(E::narrow).collect();
            from_vec(gradient, Shape::from([width, across]))
        }))
    }
}
