//! Measured on an NVIDIA H200; records: `benches/records/`. Density is entries / (rows · columns)
//! of the index.

// Choice of the routine.

/// Least density, one pass.
pub(super) const DENSE_ONE_PASS: f64 = 1.0 / 32.0;
/// With [`Strategy::union`](super::Strategy::union).
pub(super) const DENSE_UNION: f64 = 1.0 / 18.0;
/// For [`Dense::Halves`](super::Dense::Halves).
pub(super) const DENSE_HALVES: f64 = 1.0 / 128.0;
/// For [`Dense::Either`](super::Dense::Either).
pub(super) const DENSE_EITHER: f64 = 1.0 / 256.0;
/// For register tiles, of distances that take dense tiles twice or not at all.
pub(super) const DENSE_REGISTER_TILE: f64 = 0.8;
/// For register tiles, of others: full rows, which need no look at columns.
pub(super) const FULL_REGISTER_TILE: f64 = 1.0;
/// Least density of the other matrix, for register tiles of a full one.
pub(super) const LEFT_REGISTER_TILE: f64 = 1.0 / 8.0;
/// For tensor cores.
pub(super) const DENSE_TENSOR_CORE: f64 = 1.0 / 32.0;

/// Units per cube, one plane per item.
pub(super) const ROW_UNITS: u32 = 256;
/// Units per cube that transposes results.
pub(super) const JOIN_UNITS: u32 = 256;

// Inverted index.

/// Shared bytes for a plane's sums.
pub(super) const TILE_BYTES: usize = 4 << 10;
/// Units per cube: one plane, no waiting.
pub(super) const INVERTED_UNITS: u32 = 32;
/// Planes that split a row's columns.
pub(super) const PLANES_PER_ROW: u32 = 4;
/// Longest indexed row from which they do; by the index alone, for equal sums in every batch.
pub(super) const PLANES_PER_ROW_FROM: u32 = 256;
/// Entries of a column a unit reads together.
pub(super) const COLUMN_READS: u32 = 4;
/// At a column's end.
pub(super) const SHORT_COLUMN_READS: u32 = 2;
/// Entries between checks for finite distances.
pub(super) const FINITE_CHECK_ENTRIES: u32 = 8;
/// Sums a unit flushes together.
pub(super) const FLUSHED_TOGETHER: usize = 8;
/// Distances a unit finishes together.
pub(super) const FINISHED_TOGETHER: usize = 4;

// Dense tiles.

/// Units per cube.
pub(super) const TILE_UNITS: u32 = 1024;
/// Rows per lane, two passes.
pub(super) const TILE_ROWS: usize = 2;
/// Rows per lane, one pass.
pub(super) const TILE_ROWS_ONE_PASS: usize = 4;
/// Columns that must fit; else one row per lane.
pub(super) const TILE_COLUMNS: usize = 256;
/// Approximate most cubes.
pub(super) const TILE_CUBES: usize = 1024;
/// Left rows as costly as filling.
pub(super) const TILE_FILL_ROWS: usize = 16;
/// Entries a plane multiplies together.
pub(super) const TILE_STEP: u32 = 4;

// Register tiles.

/// Units per cube.
pub(super) const REGISTER_TILE_UNITS: u32 = 256;
/// Pairs of a unit across a tile.
pub(super) const REGISTER_TILE_ACROSS: usize = 4;
/// Most pairs of a unit down a tile; half as many of f64.
pub(super) const REGISTER_TILE_DOWN: usize = 8;
/// Columns that a unit adds together.
pub(super) const REGISTER_TILE_STEP: usize = 4;
/// Columns of a block, the first that fits shared memory.
pub(super) const REGISTER_TILE_DEPTHS: [usize; 3] = [32, 16, 8];
/// Units that read a row together.
pub(super) const REGISTER_TILE_READERS: usize = 8;

// Tensor cores.

/// Steps in flight.
pub(super) const STEPS_AHEAD: usize = 2;
/// Planes that pack a row.
pub(super) const PACK_PLANES: usize = 8;
/// Cubes per multiprocessor that find the greatest.
pub(super) const SCAN_CUBES: usize = 4;

// Hybrid: the paper's values.

/// Units per cube: 32 planes of 32.
pub(super) const HYBRID_UNITS: u32 = 1024;
/// Units per cube without planes.
pub(super) const HYBRID_LONE_UNITS: u32 = 256;
/// Shared bytes per cube.
pub(super) const HYBRID_SHARED_BYTES: usize = 48 << 10;
/// Least shared bytes.
pub(super) const HYBRID_LEAST_BYTES: usize = 16 << 10;

// Expand, sort, contract.

/// Most units per cube.
pub(super) const EXPAND_SORT_UNITS: u32 = 256;

// Dense rows.

/// Exponents of two: squares of magnitudes from `least` to `greatest` are accurate, others are
/// scaled by `scale`.
#[derive(Clone, Copy, Debug)]
pub struct SquareRange {
    /// Least magnitude.
    pub least: i32,
    /// Greatest magnitude.
    pub greatest: i32,
    /// Scale of lesser magnitudes; its inverse is that of greater ones.
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

// Neighbors.

/// Distances a plane counts and lists.
pub const RADIUS_BLOCK: usize = 4096;
/// Most neighbors written by a unit each; beyond, a unit per row.
pub(super) const EXCLUDE_SELF_UNIT_EACH: usize = 64;

// Host.

/// Rows of a dense tile.
pub(super) const HOST_LANES: usize = 32;
/// Most rows · entries per pair of entries in one column.
pub(super) const HOST_DENSE_WORK: usize = 16;
/// Most bytes of a dense tile: an L2 cache.
pub(super) const HOST_DENSE_BYTES: usize = 1 << 21;
/// Rows handed out together, within one matrix.
pub(super) const HOST_STRIPE: usize = 512;
/// Rows a thread fills.
pub(super) const HOST_STRIPE_PART: usize = 64;
