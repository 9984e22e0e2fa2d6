//! The greatest of the rows that a pattern names, in plain Rust, parallel over rows.

use burn::{
    backend::{
        Flex,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{DType, Shape, bf16, f16},
};
use rayon::prelude::*;

use super::{
    from_vec,
    sparse::{Float, Pattern},
};
use crate::ops::{MaximumGradientOps, MaximumOps};

impl MaximumOps for Flex {
    fn spmm_max(
        x: FloatTensor<Self>,
        indptr: IntTensor<Self>,
        indices: IntTensor<Self>,
        _transposed_indptr: IntTensor<Self>,
        _transposed_indices: IntTensor<Self>,
        _transposed_entries: IntTensor<Self>,
    ) -> FloatTensor<Self> {
        Self::spmm_max_winners(x, indptr, indices).0
    }
}

impl MaximumGradientOps for Flex {
    fn spmm_max_winners(
        x: FloatTensor<Self>,
        indptr: IntTensor<Self>,
        indices: IntTensor<Self>,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        let x = x.to_contiguous();
        let width = x.layout().shape()[1];
        let pattern = Pattern::new(&indptr, &indices);
        let shape = Shape::from([pattern.rows(), width]);
        with_float!(x.dtype(), E => {
            let source: &[E] = x.as_slice().expect("contiguous");
            let zero = E::narrow(Default::default());
            let mut values = vec![zero; pattern.rows() * width];
            let mut winners = vec![-1i32; values.len()];
            if width > 0 {
                let rows = values.par_chunks_exact_mut(width);
                let rows = rows.zip(winners.par_chunks_exact_mut(width));
                rows.enumerate().for_each(|(row, (values, winners))| {
                    let entries = pattern.row(row);
                    let first = entries.start;
                    for entry in entries {
                        let start = pattern.column(entry) * width;
                        let own = values.iter_mut().zip(winners.iter_mut());
                        for ((value, winner), &x) in own.zip(&source[start..start + width]) {
                            if entry == first || x > *value {
                                (*value, *winner) = (x, entry as i32);
                            }
                        }
                    }
                });
            }
            (from_vec(values, shape.clone()), from_vec(winners, shape))
        })
    }

    fn spmm_max_gradient(
        upstream: FloatTensor<Self>,
        winners: IntTensor<Self>,
        transposed_indptr: IntTensor<Self>,
        transposed_indices: IntTensor<Self>,
        transposed_entries: IntTensor<Self>,
    ) -> FloatTensor<Self> {
        let (upstream, winners) = (upstream.to_contiguous(), winners.to_contiguous());
        let width = upstream.layout().shape()[1];
        let pattern = Pattern::new(&transposed_indptr, &transposed_indices);
        let ids: &[i32] = transposed_entries.as_slice().expect("contiguous");
        let winners: &[i32] = winners.as_slice().expect("contiguous");
        let shape = Shape::from([pattern.rows(), width]);
        with_float!(upstream.dtype(), E => {
            let upstream: &[E] = upstream.as_slice().expect("contiguous");
            let sum = |row: usize, column: usize| {
                let mut sum = <E as Float>::Sum::default();
                for entry in pattern.row(row) {
                    let at = pattern.column(entry) * width + column;
                    if winners[at] == ids[entry] {
                        sum += upstream[at].widen();
                    }
                }
                E::narrow(sum)
            };
            let sums = (0..pattern.rows() * width).into_par_iter();
            let sums: Vec<E> = sums.map(|at| sum(at / width, at % width)).collect();
            from_vec(sums, shape)
        })
    }
}
