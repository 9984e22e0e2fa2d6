//! Patterns, and the floats that products are computed on.

use burn::tensor::{Element, bf16, f16};
use burn_flex::FlexTensor;
use bytemuck::Pod;

/// A float that products are computed on, and the type its sums are kept in.
pub(super) trait Float: Element + Pod + PartialOrd {
    type Sum: Element + Pod + Default + std::ops::AddAssign + num_traits::Float;
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

pub(super) fn ints(tensor: &FlexTensor) -> &[i32] {
    tensor
        .as_slice()
        .expect("patterns are contiguous i32 tensors")
}
