//! Products of a CSR matrix with dense matrices, parallel over rows.

use burn::tensor::{DType, Shape, bf16, f16};
use burn_flex::FlexTensor;
use rayon::prelude::*;

use super::from_vec;

/// A float that products are computed on, and the type its sums are kept in.
pub(super) trait Float: Copy + PartialOrd + Send + Sync {
    type Sum: Copy + Default + Send + std::ops::AddAssign + std::ops::Mul<Output = Self::Sum>;
    fn widen(self) -> Self::Sum;
    fn narrow(sum: Self::Sum) -> Self;
}

macro_rules! float {
    ($float:ident, $sum:ident, $widen:expr, $narrow:expr) => {
        impl Float for $float {
            type Sum = $sum;
            fn widen(self) -> $sum {
                $widen(self)
            }
            fn narrow(sum: $sum) -> Self {
                $narrow(sum)
            }
        }
    };
}

float!(f32, f32, |x| x, |x| x);
float!(f64, f64, |x| x, |x| x);
float!(f16, f32, f16::to_f32, f16::from_f32);
float!(bf16, f32, bf16::to_f32, bf16::from_f32);

/// A CSR pattern.
pub(super) struct Pattern<'a> {
    indptr: &'a [i32],
    indices: &'a [i32],
}

impl<'a> Pattern<'a> {
    pub fn new(indptr: &'a FlexTensor, indices: &'a FlexTensor) -> Self {
        Self {
            indptr: ints(indptr),
            indices: ints(indices),
        }
    }

    pub fn rows(&self) -> usize {
        self.indptr.len() - 1
    }

    /// The column of an entry.
    pub fn column(&self, entry: usize) -> usize {
        self.indices[entry] as usize
    }

    /// Entries of a row.
    pub fn row(&self, row: usize) -> std::ops::Range<usize> {
        self.indptr[row] as usize..self.indptr[row + 1] as usize
    }
}

fn ints(tensor: &FlexTensor) -> &[i32] {
    tensor
        .as_slice()
        .expect("patterns are contiguous i32 tensors")
}

/// `y[i] = Σ w[e] x[j]` over the entries `e = (i, j)`; entry `e` weighs `weights[entries[e]]`.
pub(super) fn product(
    x: FlexTensor,
    weights: Option<(FlexTensor, Option<FlexTensor>)>,
    indptr: FlexTensor,
    indices: FlexTensor,
) -> FlexTensor {
    let x = x.to_contiguous();
    let width = x.layout().shape()[1];
    let weights = weights.map(|(values, entries)| (values.to_contiguous(), entries));
    let pattern = Pattern::new(&indptr, &indices);
    let rows = pattern.indptr.len() - 1;
    let shape = Shape::from([rows, width]);
    with_float!(x.dtype(), E => {
        let source: &[E] = x.as_slice().expect("contiguous");
        let values: Option<&[E]> = weights
            .as_ref()
            .map(|(values, _)| values.as_slice().expect("contiguous"));
        let entries = weights
            .as_ref()
            .and_then(|(_, entries)| entries.as_ref())
            .map(ints);
        let weight = |entry: usize| {
            values.map(|values| values[entries.map_or(entry, |entries| entries[entry] as usize)])
        };
        let mut output = vec![E::narrow(Default::default()); rows * width];
        if width > 0 {
            output
                .par_chunks_exact_mut(width)
                .enumerate()
                .for_each_init(
                    || vec![<E as Float>::Sum::default(); width],
                    |sums, (row, output)| {
                        sums.fill(Default::default());
                        for entry in pattern.row(row) {
                            let start = pattern.indices[entry] as usize * width;
                            let from = &source[start..start + width];
                            match weight(entry) {
                                None => {
                                    for (sum, x) in sums.iter_mut().zip(from) {
                                        *sum += x.widen();
                                    }
                                }
                                Some(weight) => {
                                    let weight = weight.widen();
                                    for (sum, x) in sums.iter_mut().zip(from) {
                                        *sum += weight * x.widen();
                                    }
                                }
                            }
                        }
                        for (output, sum) in output.iter_mut().zip(sums.iter()) {
                            *output = E::narrow(*sum);
                        }
                    },
                );
        }
        from_vec(output, shape)
    })
}

/// `out[e] = left[i] · right[j]` for each entry `e = (i, j)`.
pub(super) fn sddmm(
    left: FlexTensor,
    right: FlexTensor,
    indptr: FlexTensor,
    indices: FlexTensor,
) -> FlexTensor {
    let left = left.to_contiguous();
    let right = right.to_contiguous();
    let width = left.layout().shape()[1];
    let pattern = Pattern::new(&indptr, &indices);
    let shape = Shape::from([pattern.indices.len()]);
    with_float!(left.dtype(), E => {
        let left: &[E] = left.as_slice().expect("contiguous");
        let right: &[E] = right.as_slice().expect("contiguous");
        let output: Vec<E> = (0..pattern.indptr.len() - 1)
            .into_par_iter()
            .flat_map_iter(|row| {
                let pattern = &pattern;
                pattern.row(row).map(move |entry| {
                    let column = pattern.indices[entry] as usize;
                    let mut sum = <E as Float>::Sum::default();
                    let pairs = left[row * width..][..width]
                        .iter()
                        .zip(&right[column * width..][..width]);
                    for (a, b) in pairs {
                        sum += a.widen() * b.widen();
                    }
                    E::narrow(sum)
                })
            })
            .collect();
        from_vec(output, shape)
    })
}
