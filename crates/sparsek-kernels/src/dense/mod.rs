//! Operations on dense rows: few columns, very many rows.
//!
//! Deterministic per device, but for `RowLists` order. Sums are f32, or f64 for f64.

#[cfg(feature = "kernels")]
mod adam;
#[cfg(feature = "kernels")]
mod classes;
#[cfg(feature = "kernels")]
mod column_sum;
mod factors;
#[cfg(feature = "kernels")]
mod gemm;
#[cfg(feature = "kernels")]
mod layer_norm;
mod mask;
#[cfg(feature = "kernels")]
mod steps;
#[cfg(feature = "kernels")]
mod tuning;
#[cfg(feature = "kernels")]
mod types;

#[cfg(feature = "kernels")]
pub use self::{
    adam::{adam_step, adam_step_in_place},
    classes::{ClassScores, class_hits, cross_entropy, cross_entropy_gradient},
    column_sum::column_sums,
    gemm::{
        filter::{RowLists, filtered_columns, filters_columns},
        inner::{inner_fits, inner_product},
        product::{accumulates, product},
    },
    layer_norm::{Normalized, layer_norm, layer_norm_gradient},
    steps::{dropout, next_step},
    types::{DenseRows, PitchedRows, Weight},
};
pub use factors::AdamFactors;
pub use mask::{DropoutMask, STEP_WORDS};
