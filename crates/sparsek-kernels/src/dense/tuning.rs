//! Constants measured on an NVIDIA H200; records lie under `benches/records/`.

/// Rows that a unit adds.
pub(super) const RUN: usize = 128;
/// Rows loaded before any is added.
pub(super) const FLIGHT: usize = 8;
/// Units of a layer norm cube.
pub(super) const NORM_UNITS: u32 = 128;

/// Product steps in flight.
pub(super) const PRODUCT_AHEAD: usize = 2;
/// Tiles of a product's matrix in registers.
pub(super) const PRODUCT_GROUP: usize = 4;
/// Inner product steps in flight or shared memory.
pub(super) const INNER_AHEAD: usize = 2;
/// Cubes of a split inner product per multiprocessor.
pub(super) const SPLIT_CUBES: usize = 4;
