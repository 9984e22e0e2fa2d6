//! Operations on dense rows, one for each node of a graph: few columns, very many rows.
//!
//! - [`layer_norm`] and [`layer_norm_gradient`]: normalization of each row.
//! - [`column_sums`]: sums over all rows.
//! - [`cross_entropy`], [`cross_entropy_gradient`] and [`class_hits`]: loss and accuracy.
//! - [`adam_step`]: one step of the optimizer.
//! - [`product`] and [`inner_product`]: `x · w` and `xᵀ · y` of tall f32 matrices.
//!
//! All are deterministic on a device.

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
#[cfg(feature = "kernels")]
mod tuning;
#[cfg(feature = "kernels")]
mod types;

#[cfg(feature = "kernels")]
pub use self::{
    adam::adam_step,
    classes::{ClassScores, class_hits, cross_entropy, cross_entropy_gradient},
    column_sum::column_sums,
    gemm::{
        inner::{inner_fits, inner_product},
        product::{accumulates, product},
    },
    layer_norm::{Normalized, layer_norm, layer_norm_gradient},
    types::{DenseRows, PitchedRows, Weight},
};
pub use factors::AdamFactors;
