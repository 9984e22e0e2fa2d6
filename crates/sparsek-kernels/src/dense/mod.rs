//! Operations on dense rows, one for each node of a graph: few columns, very many rows.
//!
//! - [`layer_norm`] and [`layer_norm_gradient`]: normalization of each row.
//! - [`column_sums`]: sums over all rows.
//! - [`product`] and [`inner_product`]: `x · w` and `xᵀ · y` on tensor cores, for f32.
//!
//! All are deterministic on a device.

mod column_sum;
mod gemm;
mod layer_norm;
mod tuning;
mod types;

pub use column_sum::column_sums;
pub use gemm::{
    inner::{inner_fits, inner_product},
    product::product,
};
pub use layer_norm::{Normalized, layer_norm, layer_norm_gradient};
pub use types::{DenseRows, Weight};
