//! Constants chosen by measurement on an NVIDIA H200; records lie under `benches/records/`.
//!
//! A density is entries / (rows · columns) of the index.

// Choice of the routine.

/// Least density for dense tiles in one pass.
pub(super) const DENSE_ONE_PASS: f64 = 1.0 / 32.0;
/// As [`DENSE_ONE_PASS`], for [`Needs::union`](super::Needs::union).
pub(super) const DENSE_UNION: f64 = 1.0 / 18.0;
/// Least density for [`Dense::Halves`](super::Dense::Halves).
pub(super) const DENSE_HALVES: f64 = 1.0 / 128.0;
/// Least density for [`Dense::Either`](super::Dense::Either).
pub(super) const DENSE_EITHER: f64 = 1.0 / 256.0;
/// Least density for tensor cores.
pub(super) const DENSE_TENSOR_CORE: f64 = 1.0 / 32.0;

// Passes over rows.

/// Units of a cube whose planes take an item each.
pub(super) const ROW_UNITS: u32 = 256;
/// Units of a cube that transposes a square of results.
pub(super) const JOIN_UNITS: u32 = 256;

// Inverted index.

/// Bytes of shared memory for the sums of a plane.
pub(super) const TILE_BYTES: usize = 4 << 10;
/// Units of a cube: one plane, which waits for no longer row.
pub(super) const INVERTED_UNITS: u32 = 32;
/// Planes that split the columns of a row.
pub(super) const PLANES_PER_ROW: u32 = 4;
/// Length of the longest indexed row from which planes split rows. It depends on the index alone,
/// so that sums do not vary with the rows compared.
pub(super) const PLANES_PER_ROW_FROM: u32 = 256;
/// Entries of a column that a unit reads at a time.
pub(super) const COLUMN_READS: u32 = 4;
/// Entries that a unit reads at the end of a column.
pub(super) const SHORT_COLUMN_READS: u32 = 2;
/// Entries between two checks whether any distance can be finite.
pub(super) const FINITE_CHECK_ENTRIES: u32 = 8;
/// Sums that a unit flushes at a time.
pub(super) const FLUSHED_TOGETHER: usize = 8;
/// Distances that a unit finishes at a time.
pub(super) const FINISHED_TOGETHER: usize = 4;

// Dense tiles.

/// Units of a cube.
pub(super) const TILE_UNITS: u32 = 1024;
/// Rows of a tile for each lane, with two passes.
pub(super) const TILE_ROWS: usize = 2;
/// Rows of a tile for each lane, with one pass.
pub(super) const TILE_ROWS_ONE_PASS: usize = 4;
/// Columns that must fit; otherwise each lane has one row.
pub(super) const TILE_COLUMNS: usize = 256;
/// Approximate limit for cubes.
pub(super) const TILE_CUBES: usize = 1024;
/// Left rows that cost as much as filling a tile.
pub(super) const TILE_FILL_ROWS: usize = 16;
/// Entries of a left row that a plane multiplies at a time.
pub(super) const TILE_STEP: u32 = 4;

// Tensor cores.

/// Steps whose loads are in flight.
pub(super) const STEPS_AHEAD: usize = 2;
/// Planes that pack one row.
pub(super) const PACK_PLANES: usize = 8;
/// Cubes for each multiprocessor that find the greatest value.
pub(super) const SCAN_CUBES: usize = 4;

// Hybrid: the paper's values.

/// Units of a cube: 32 planes of 32.
pub(super) const HYBRID_UNITS: u32 = 1024;
/// Units of a cube without planes.
pub(super) const HYBRID_LONE_UNITS: u32 = 256;
/// Shared memory of a cube.
pub(super) const HYBRID_SHARED_BYTES: usize = 48 << 10;
/// Least shared memory.
pub(super) const HYBRID_LEAST_BYTES: usize = 16 << 10;

// Neighbors.

/// Distances of a row that one plane counts and lists.
pub const RADIUS_BLOCK: usize = 4096;
/// Most neighbors that are written by a unit each; beyond, a unit writes a row.
pub(super) const EXCLUDE_SELF_UNIT_EACH: usize = 64;

// Host.

/// Rows of a dense tile.
pub(super) const HOST_LANES: usize = 32;
/// Most rows · entries for each pair of entries in one column, for dense tiles.
pub(super) const HOST_DENSE_WORK: usize = 16;
/// Most bytes of a dense tile: about a second-level cache.
pub(super) const HOST_DENSE_BYTES: usize = 1 << 21;
/// Rows handed out at a time, for a matrix with itself.
pub(super) const HOST_STRIPE: usize = 512;
/// Rows of a stripe that a thread fills.
pub(super) const HOST_STRIPE_PART: usize = 64;
