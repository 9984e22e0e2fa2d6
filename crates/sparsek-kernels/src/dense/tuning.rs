//! Constants that measurement chose, on an NVIDIA H200; records lie under `benches/records/`.

/// Rows that a unit adds.
pub(super) const RUN: usize = 128;
/// Rows whose loads a unit issues before it adds them.
pub(super) const FLIGHT: usize = 8;
/// Units of a cube of the layer norm.
pub(super) const NORM_UNITS: u32 = 128;

/// Steps of a product whose loads are in flight.
pub(super) const PRODUCT_AHEAD: usize = 2;
/// Tiles of a product whose columns of the matrix are in registers.
pub(super) const PRODUCT_GROUP: usize = 4;
/// Steps of an inner product that are in flight or in shared memory.
pub(super) const INNER_AHEAD: usize = 2;
/// Cubes for each multiprocessor that share the rows of a split inner product.
pub(super) const SPLIT_CUBES: usize = 4;
