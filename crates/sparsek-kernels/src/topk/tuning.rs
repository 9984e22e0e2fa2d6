//! Measured on H200: `benches/records/`. Affects only speed.

// Routines.

pub(crate) const REGISTER_ITEMS: usize = 32;
pub(crate) const SPREAD_ITEMS: usize = 4;
pub(crate) const BUSY_UNITS: usize = 512;
/// From here `sampled` precedes `block`, except for few rows or k from [`HISTOGRAM_K`].
pub(crate) const SAMPLED_COLS: usize = 1 << 13;
/// From here `block` counts keys in histograms.
pub(crate) const HISTOGRAM_COLS: usize = SAMPLED_COLS;
/// From here whole ones precede `sampled`.
pub(crate) const HISTOGRAM_K: usize = 1 << 10;
/// From here `filter` precedes both.
pub(crate) const FILTER_COLS: usize = 1 << 17;
/// From here with [`FILTER_ROWS`].
pub(crate) const FILTER_MANY_COLS: usize = 1 << 16;
pub(crate) const FILTER_ROWS: usize = 256;
/// From here with [`FILTER_ROWS`] and [`FILTER_LARGE_K`].
pub(crate) const FILTER_LARGE_K_COLS: usize = 1 << 15;
pub(crate) const FILTER_LARGE_K: usize = 1 << 10;
/// From here also for a vector.
pub(crate) const FILTER_LONG_COLS: usize = 1 << 19;
/// Below, `delegate` precedes `block`.
pub(crate) const DELEGATE_COLS: usize = 1 << 14;
pub(crate) const DELEGATE_SELECTED: usize = 32;
/// Longest row of `unit` on GPUs.
pub(crate) const MAX_UNIT_COLS: usize = 64;

// Cubes.

pub(crate) const PLANE_CUBE_UNITS: u32 = 64;
/// More would spill registers.
pub(crate) const BLOCK_CUBE_UNITS: u32 = 512;
pub(crate) const CUBE_UNITS: u32 = 256;
pub(crate) const LONG_CUBE_UNITS: u32 = 1024;
/// For [`LONG_CUBE_UNITS`].
pub(crate) const LONG_ROW: usize = 1 << 14;

pub(crate) const SAMPLED_COLS_PER_UNIT: usize = 64;
pub(crate) const SAMPLED_MIN_UNITS: usize = 64;
pub(crate) const SAMPLED_MAX_UNITS: usize = 256;
pub(crate) const LONG_SAMPLED_UNITS: u32 = 512;
/// Few rows this long take [`LONG_SAMPLED_UNITS`].
pub(crate) const FEW_ROWS_COLS: usize = 1 << 15;

/// Per unit.
pub(crate) const DRAW_ITEMS: usize = 4;
pub(crate) const DRAW_RANKED: usize = 256;

// Rows in registers.

/// Per cube.
pub(crate) const MAX_LISTED: usize = 1 << 12;
/// Per unit.
pub(crate) const SORTED_ITEMS: usize = 16;
/// By bits where `k * BITWISE_SHARE <= cols`.
pub(crate) const BITWISE_SHARE: usize = 3;
pub(crate) const COUNTED_MIDPOINTS: u32 = 4;
pub(crate) const MAX_RANKED: usize = 512;
/// A unit per digit.
pub(crate) const RADIX_UNITS: u32 = 1 << 8;
pub(crate) const RADIX_TILE_BYTES: usize = 1 << 15;

// Rows in memory.

/// Per unit.
pub(crate) const CUBE_ITEMS: u32 = 8;
pub(crate) const UNIT_BLOCK: u32 = 8;
pub(crate) const ASSEMBLED_BYTES: usize = 1 << 14;

// Sampled and delegate.

/// Per unit.
pub(crate) const SAMPLE_ITEMS: usize = 8;
pub(crate) const LONG_SAMPLE_ITEMS: usize = 16;
pub(crate) const LONG_SAMPLE: usize = 1 << 18;
/// In standard deviations.
pub(crate) const SAMPLE_MARGIN: f64 = 4.0;
/// Rank over slack.
pub(crate) const SAMPLE_SLACK: f64 = 6.0;
pub(crate) const FILTER_UNITS: u32 = 256;
/// For lists above [`FILTER_SHORT_LIST`], and to select from lists of many rows.
pub(crate) const LONG_FILTER_UNITS: u32 = 512;
pub(crate) const FILTER_SHORT_LIST: usize = 1 << 12;
pub(crate) const FILTER_SAMPLE_ITEMS: usize = 16;
/// Neighboring loads, for whole sectors.
pub(crate) const FILTER_TOGETHER: u32 = 4;
/// Loads in flight.
pub(crate) const LIST_AHEAD: usize = 4;
/// Per unit.
pub(crate) const LIST_ITEMS: [usize; 4] = [4, 8, 16, 32];
/// A bit each.
pub(crate) const TILE_ITEMS: usize = 32;
/// Per unit.
pub(crate) const DELEGATE_SUBRANGES: usize = 8;
/// Per unit.
pub(crate) const DELEGATE_LIST_ITEMS: usize = 8;
/// Loads in flight.
pub(crate) const DELEGATE_AHEAD: usize = 4;

// Exact search.

pub(crate) const INTERPOLATIONS: u32 = 5;

// Gaussian guess.

/// Deviations, elements: further guesses are lost.
pub(crate) const GUESS_FAR: [f32; 2] = [3.5, 20.0];
/// Too few, while no value had enough.
pub(crate) const GUESS_NEAR: [f32; 2] = [2.0, 10.0];
/// Before refining.
pub(crate) const GUESS_COUNTS: u32 = 6;
pub(crate) const GUESS_CLOSE: u32 = 2;
/// Suggests ties or outliers.
pub(crate) const REFINE_SUSPICIOUS: f32 = 16.0;
pub(crate) const REFINE_LATE: u32 = 6;
pub(crate) const REFINE_PAUSE: u32 = 3;
pub(crate) const REFINE_STEPS: u32 = 16;
pub(crate) const REFINE_BIAS: f32 = 1.2;
pub(crate) const APPROXIMATE_COUNTS: u32 = 6;
pub(crate) const PACKED_COUNTS: u32 = 10;
pub(crate) const PACKED_TIES: u32 = 3;
pub(crate) const RANKED_FLIGHT: u32 = 4;
