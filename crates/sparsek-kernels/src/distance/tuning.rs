//! Measured on H200: `benches/records/`. Density: index entries / (rows · columns).

/// Least density, one pass.
pub(super) const DENSE_ONE_PASS: f64 = 1.0 / 32.0;
/// With [`Strategy::union`](super::Strategy::union).
pub(super) const DENSE_UNION: f64 = 1.0 / 18.0;
pub(super) const DENSE_HALVES: f64 = 1.0 / 128.0;
pub(super) const DENSE_EITHER: f64 = 1.0 / 256.0;
/// For register tiles, without [`Dense::Products`](super::Dense::Products).
pub(super) const DENSE_REGISTER_TILE: f64 = 0.8;
/// With [`Dense::Products`](super::Dense::Products).
pub(super) const FULL_REGISTER_TILE: f64 = 1.0;
/// Left matrix, for a full index.
pub(super) const LEFT_REGISTER_TILE: f64 = 1.0 / 8.0;
pub(super) const DENSE_TENSOR_CORE: f64 = 1.0 / 32.0;

pub(super) const ROW_UNITS: u32 = 256;
pub(super) const JOIN_UNITS: u32 = 256;

/// Inverted index: shared bytes per plane.
pub(super) const TILE_BYTES: usize = 4 << 10;
/// One plane, no waiting.
pub(super) const INVERTED_UNITS: u32 = 32;
pub(super) const PLANES_PER_ROW: u32 = 4;
/// By the longest indexed row alone: batches change no sum.
pub(super) const PLANES_PER_ROW_FROM: u32 = 256;
/// Entries per unit.
pub(super) const COLUMN_READS: u32 = 4;
/// At a column's end.
pub(super) const SHORT_COLUMN_READS: u32 = 2;
pub(super) const FINITE_CHECK_ENTRIES: u32 = 8;
pub(super) const FLUSHED_TOGETHER: usize = 8;
pub(super) const FINISHED_TOGETHER: usize = 4;

pub(super) const TILE_UNITS: u32 = 1024;
/// In two passes.
pub(super) const TILE_ROWS: usize = 2;
pub(super) const TILE_ROWS_ONE_PASS: usize = 4;
/// Must fit; else one row per lane.
pub(super) const TILE_COLUMNS: usize = 256;
pub(super) const TILE_CUBES: usize = 1024;
/// Filling cost, in rows.
pub(super) const TILE_FILL_ROWS: usize = 16;
pub(super) const TILE_STEP: u32 = 4;

pub(super) const REGISTER_TILE_UNITS: u32 = 256;
/// Pairs per unit.
pub(super) const REGISTER_TILE_ACROSS: usize = 4;
/// At most; half for f64.
pub(super) const REGISTER_TILE_DOWN: usize = 8;
pub(super) const REGISTER_TILE_STEP: usize = 4;
/// First that fits.
pub(super) const REGISTER_TILE_DEPTHS: [usize; 3] = [32, 16, 8];
pub(super) const REGISTER_TILE_READERS: usize = 8;

pub(super) const STEPS_AHEAD: usize = 2;
pub(super) const PACK_PLANES: usize = 8;
pub(super) const SCAN_CUBES: usize = 4;

// Hybrid: the paper's values.

pub(super) const HYBRID_UNITS: u32 = 1024;
/// Without planes.
pub(super) const HYBRID_LONE_UNITS: u32 = 256;
pub(super) const HYBRID_SHARED_BYTES: usize = 48 << 10;
pub(super) const HYBRID_LEAST_BYTES: usize = 16 << 10;

pub(super) const EXPAND_SORT_UNITS: u32 = 256;

/// Exponents between which squares are accurate.
#[derive(Clone, Copy, Debug)]
pub struct SquareRange {
    /// Least magnitude.
    pub least: i32,
    /// Greatest magnitude.
    pub greatest: i32,
    /// Scales smaller magnitudes up, greater ones down.
    pub scale: i32,
}

impl SquareRange {
    /// Of f64, else f32.
    pub const fn of(double: bool) -> Self {
        if double {
            Self { least: -400, greatest: 400, scale: 600 }
        } else {
            Self { least: -40, greatest: 50, scale: 76 }
        }
    }
}

/// Distances per plane.
pub const RADIUS_BLOCK: usize = 4096;
/// Most neighbors with a unit each.
pub(super) const EXCLUDE_SELF_UNIT_EACH: usize = 64;

/// Rows per tile.
pub(super) const HOST_LANES: usize = 32;
/// Most rows · entries per pair of entries.
pub(super) const HOST_DENSE_WORK: usize = 16;
/// L2 cache.
pub(super) const HOST_DENSE_BYTES: usize = 1 << 21;
/// Rows per batch.
pub(super) const HOST_STRIPE: usize = 512;
/// Rows per thread.
pub(super) const HOST_STRIPE_PART: usize = 64;
/// Per cube, and across its left rows.
pub(super) const TENSOR_CORE_PLANES: usize = 8;
pub(super) const TENSOR_CORE_LEFT_PLANES: usize = 4;
/// Of both matrices in f16, for tensor cores.
pub(super) const TENSOR_CORE_BYTES: usize = 256 << 20;
/// Per tile; by columns alone: parts take one routine.
pub(super) const COUNTER_BYTES: usize = 256 << 20;
