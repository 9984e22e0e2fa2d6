//! Inner products of whole numbers on tensor cores.
//!
//! ```text
//! pack x and y as dense f16 rows            prepare::packed
//! each plane multiplies 64 rows with 64     m16n8k16, f32 sums
//! finish every total as other routines do
//! ```
//!
//! f16 holds the values and f32 their sums exactly, so distances equal those of other routines bit
//! for bit. The work is all positions of both matrices. Chosen for dense enough data, if the total
//! is an inner product ([`Inner`](super::semiring::Inner)) and sums of the values are exact.

mod kernel;
mod launch;

pub use self::launch::multiplies;
pub(super) use self::launch::{check, check_size, check_values, launch, suits};
