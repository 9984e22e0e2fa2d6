//! Distances between dense rows, evaluated directly.
//!
//! ```text
//! one plane per pair of rows:
//!     total, greatest = Σ f(x, y), max |x − y| over own columns, then over the plane
//!     greatest out of range: again, scaled by a power of two
//! ```
//!
//! A distance depends on the two rows, the device and the column count alone: batches, places and
//! neighbors of a row change no bit. Angles read rows divided by their norms ([`unit_rows`]).

mod kernel;
mod launch;

pub use self::launch::{dense_distances, unit_rows};
