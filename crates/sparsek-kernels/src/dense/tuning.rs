//! Measured on H200: `benches/records/`.

/// Rows per unit.
pub(super) const RUN: usize = 128;
/// Rows in flight.
pub(super) const FLIGHT: usize = 8;
pub(super) const NORM_UNITS: u32 = 128;

// Products.

pub(super) const PRODUCT_PLANES: usize = 8;
/// Rows per plane.
pub(super) const PRODUCT_HEIGHT: usize = 32;
/// Columns per cube.
pub(super) const PRODUCT_ACROSS: usize = 128;
/// Steps in flight.
pub(super) const PRODUCT_AHEAD: usize = 2;
/// Matrix tiles in registers.
pub(super) const PRODUCT_GROUP: usize = 4;
/// Matrix fours in flight.
pub(super) const MATRIX_FLIGHT: usize = 4;
/// Sums that a plane collects; lists get them from half on.
pub(super) const FILTER_STAGED: usize = 128;

// Inner products.

pub(super) const INNER_PLANES: usize = 8;
pub(super) const INNER_LEFT_PLANES: usize = 4;
/// Columns of either side per plane.
pub(super) const INNER_SIDE: usize = 64;
pub(super) const INNER_AHEAD: usize = 2;
/// Cubes per multiprocessor.
pub(super) const SPLIT_CUBES: usize = 4;
pub(super) const SPLIT_PLANES: usize = 8;
pub(super) const SPLIT_FIRST_PLANES: usize = 4;
