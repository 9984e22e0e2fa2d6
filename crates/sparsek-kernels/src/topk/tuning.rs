//! Constants chosen by measurement on an NVIDIA H200 (`benches/records/`); they affect speed only.

// Routines.

pub(crate) const REGISTER_ITEMS: usize = 32;
/// As few where rows leave units idle.
pub(crate) const SPREAD_ITEMS: usize = 4;
/// Units of a multiprocessor that hide latency.
pub(crate) const BUSY_UNITS: usize = 512;
/// From here `sampled` precedes `block`.
pub(crate) const SAMPLED_COLS: usize = 1 << 13;
/// From here `filter` does, for as many rows.
pub(crate) const FILTER_COLS: usize = 1 << 16;
pub(crate) const FILTER_ROWS: usize = 256;
/// From here for any number of rows.
pub(crate) const FILTER_LONG_COLS: usize = 1 << 19;
/// `delegate` precedes all for shorter rows.
pub(crate) const DELEGATE_COLS: usize = 1 << 14;
pub(crate) const DELEGATE_SELECTED: usize = 32;
/// Longest row of `unit` on GPUs.
pub(crate) const MAX_UNIT_COLS: usize = 64;

// Cubes.

pub(crate) const PLANE_CUBE_UNITS: u32 = 64;
/// More would spill registers.
pub(crate) const BLOCK_CUBE_UNITS: u32 = 512;
/// For `cube` and gradients.
pub(crate) const CUBE_UNITS: u32 = 256;
pub(crate) const LONG_CUBE_UNITS: u32 = 1024;
/// For [`LONG_CUBE_UNITS`].
pub(crate) const LONG_ROW: usize = 1 << 14;

pub(crate) const SAMPLED_COLS_PER_UNIT: usize = 64;
pub(crate) const SAMPLED_MIN_UNITS: usize = 64;
pub(crate) const SAMPLED_MAX_UNITS: usize = 256;
pub(crate) const LONG_SAMPLED_UNITS: u32 = 512;
/// From here as many take each of few rows.
pub(crate) const FEW_ROWS_COLS: usize = 1 << 15;

/// Candidates that a unit draws from at a time.
pub(crate) const DRAW_ITEMS: usize = 4;
/// Most candidates that a draw ranks itself, each against all.
pub(crate) const DRAW_RANKED: usize = 256;

// Rows in registers.

/// Per cube.
pub(crate) const MAX_LISTED: usize = 1 << 12;
/// Per unit.
pub(crate) const SORTED_ITEMS: usize = 16;
/// Sorts floats by bits where `k * BITWISE_SHARE <= cols`: they span few powers of two.
pub(crate) const BITWISE_SHARE: usize = 3;
/// Of more midpoints, the first are quantized.
pub(crate) const COUNTED_MIDPOINTS: u32 = 4;
/// Above, digits or a bitonic network sort.
pub(crate) const MAX_RANKED: usize = 512;
/// A unit per digit of 8 bits.
pub(crate) const RADIX_UNITS: u32 = 1 << 8;
/// Keys and places of a cube.
pub(crate) const RADIX_TILE_BYTES: usize = 1 << 15;

// Rows in memory.

/// Neighbors that a unit of `cube` places at a time.
pub(crate) const CUBE_ITEMS: u32 = 8;
/// Elements that `unit` reads between jumps.
pub(crate) const UNIT_BLOCK: u32 = 8;
/// For rows of a gradient.
pub(crate) const ASSEMBLED_BYTES: usize = 1 << 14;

// Sampled and delegate.

/// Per unit.
pub(crate) const SAMPLE_ITEMS: usize = 8;
pub(crate) const LONG_SAMPLE_ITEMS: usize = 16;
/// Row length for larger samples.
pub(crate) const LONG_SAMPLE: usize = 1 << 18;
/// In standard deviations.
pub(crate) const SAMPLE_MARGIN: f64 = 4.0;
/// The rank in the sample may miss by `rank / SAMPLE_SLACK`.
pub(crate) const SAMPLE_SLACK: f64 = 6.0;
/// Of the cubes that sample a row and filter a tile.
pub(crate) const FILTER_UNITS: u32 = 256;
/// Where the list would exceed [`FILTER_SHORT_LIST`]: a larger sample shortens it.
pub(crate) const LONG_FILTER_UNITS: u32 = 512;
pub(crate) const FILTER_SHORT_LIST: usize = 1 << 13;
pub(crate) const FILTER_SAMPLE_ITEMS: usize = 16;
/// Loads of a sample that are neighbors, for whole sectors.
pub(crate) const FILTER_TOGETHER: u32 = 4;
/// Most loads of a whole cube in a tile.
pub(crate) const TILE_STEPS: usize = 4;
/// Tiles that keep a multiprocessor busy.
pub(crate) const BUSY_TILES: usize = 8;
/// Loads of a list in flight.
pub(crate) const LIST_AHEAD: usize = 4;
/// Longest list of a row.
pub(crate) const FILTER_LIST: usize = 1 << 14;
/// Per unit of `sampled`.
pub(crate) const LIST_ITEMS: [usize; 4] = [4, 8, 16, 32];
/// Per unit, a bit each.
pub(crate) const TILE_ITEMS: usize = 32;
/// Per unit.
pub(crate) const DELEGATE_SUBRANGES: usize = 8;
/// Per unit.
pub(crate) const DELEGATE_LIST_ITEMS: usize = 8;
/// Loads in flight.
pub(crate) const DELEGATE_AHEAD: usize = 4;

// Exact search.

/// Steps before halving and snapping.
pub(crate) const INTERPOLATIONS: u32 = 5;

// Gaussian guess.

/// A guess off by these deviations or elements is lost.
pub(crate) const GUESS_FAR: [f32; 2] = [3.5, 20.0];
/// For too few elements, while no value had enough.
pub(crate) const GUESS_NEAR: [f32; 2] = [2.0, 10.0];
/// Most counts before refining.
pub(crate) const GUESS_COUNTS: u32 = 6;
/// Counts after which `far` elements in the bracket end the guess.
pub(crate) const GUESS_CLOSE: u32 = 2;
/// Elements in the bracket that suggest ties or outliers.
pub(crate) const REFINE_SUSPICIOUS: f32 = 16.0;
/// Steps that suggest them.
pub(crate) const REFINE_LATE: u32 = 6;
/// Steps between looks for the ends.
pub(crate) const REFINE_PAUSE: u32 = 3;
pub(crate) const REFINE_STEPS: u32 = 16;
/// Corrects the least deviation of a unit.
pub(crate) const REFINE_BIAS: f32 = 1.2;
/// Most counts for a sample.
pub(crate) const APPROXIMATE_COUNTS: u32 = 6;
pub(crate) const PACKED_COUNTS: u32 = 10;
/// Counts before a check for ties.
pub(crate) const PACKED_TIES: u32 = 3;
