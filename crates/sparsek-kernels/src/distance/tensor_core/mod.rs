//! Inner products of whole numbers ([`Inner`](super::semiring::Inner)) on tensor cores.
//!
//! ```text
//! pack x and y as dense f16 rows            prepare::packed
//! each plane multiplies 64 rows with 64     m16n8k16, f32 sums
//! finish totals
//! ```
//!
//! f16 values and f32 sums are exact: distances equal other routines' bit for bit.

mod kernel;
mod launch;

pub use self::launch::multiplies;
pub(super) use self::launch::{check, check_size, check_values, launch, suits};
