//! ```text
//! one plane per pair of rows:
//!     total, greatest = Σ f(x, y), max |x − y| over own columns, then over the plane
//!     greatest out of range: again, scaled by a power of two
//! ```
//!
//! Each depends only on both rows, device and column count: batches change no bit.

mod kernel;
mod launch;

pub use self::launch::{Listed, dense_distances, listed_distances, unit_rows};
