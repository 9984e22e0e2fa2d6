//! Distances between sparse or dense rows, and nearest neighbors.
//!
//! - [`Samples`]: sparse, dense or either ([`AnySamples`]).
//! - [`pairwise_distances`]: by a [`Metric`] or semiring ([`Measure`]).
//! - [`NearestNeighbors`], [`ShardedNeighbors`], [`NeighborStream`]: the k nearest rows, or all
//!   within a radius; [`Prefilter`] restricts them.
//! - [`Precomputed`], [`kneighbors_from_graph`]: by given distances.
//! - [`KNeighborsClassifier`], [`KNeighborsRegressor`]: predictions.
//! - [`weighted`]: column weights.
//!
//! After Nolet et al., "GPU Semiring Primitives for Sparse Neighborhood Methods" (2022); deviations
//! in `docs/papers.md`.

mod dense;
mod error;
mod filter;
mod graphs;
mod lists;
mod measure;
mod neighbors;
mod pairwise;
mod precomputed;
mod predict;
mod samples;
mod sharded;
mod types;
mod weighted;

pub use error::DistanceError;
pub use filter::Prefilter;
pub use graphs::GraphMode;
pub use lists::RadiusNeighbors;
pub use measure::Measure;
pub use pairwise::pairwise_distances;
pub use precomputed::{Precomputed, kneighbors_from_graph};
pub use predict::{KNeighborsClassifier, KNeighborsRegressor, Weights};
pub use samples::AnySamples;
pub use sharded::{NeighborStream, ShardedNeighbors};
pub use sparsek_kernels::distance::{
    Algebra, Dense, Distance, Gradient, HostSemiring, Inner, Metric, ROUTINES, Real, Rescale,
    Routine, Strategy, Sums, UnknownMetric,
};
#[cfg(feature = "kernels")]
pub use sparsek_kernels::distance::{Semiring, SumsExpand, infinity, quotient};
pub use types::{NearestNeighbors, Samples};
pub use weighted::weighted;
