//! Measured on an NVIDIA H200: `benches/records/`.

/// Rows per unit.
pub(super) const RUN: usize = 128;
/// Rows in flight.
pub(super) const FLIGHT: usize = 8;
pub(super) const NORM_UNITS: u32 = 128;

/// Product steps in flight.
pub(super) const PRODUCT_AHEAD: usize = 2;
/// Matrix tiles in registers.
pub(super) const PRODUCT_GROUP: usize = 4;
pub(super) const INNER_AHEAD: usize = 2;
/// Cubes per multiprocessor.
pub(super) const SPLIT_CUBES: usize = 4;
