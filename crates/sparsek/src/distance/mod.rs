//! Distances between sparse rows, and nearest neighbors.
//!
//! After Nolet et al., "GPU Semiring Primitives for Sparse Neighborhood Methods" (2022); deviations
//! in `docs/papers.md`.

mod error;
mod graphs;
mod measure;
mod neighbors;
mod pairwise;

pub use error::DistanceError;
pub use measure::Measure;
pub use neighbors::NearestNeighbors;
pub use pairwise::pairwise_distances;
pub use sparsek_kernels::distance::{
    Algebra, Dense, Distance, Gradient, HostSemiring, Inner, Metric, ROUTINES, Real, Rescale,
    Routine, Strategy, Sums, UnknownMetric,
};
#[cfg(feature = "kernels")]
pub use sparsek_kernels::distance::{Semiring, SumsExpand, infinity, quotient};
