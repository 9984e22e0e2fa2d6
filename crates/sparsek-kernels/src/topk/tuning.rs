//! Constants of row-wise top-k that measurement chose.
//!
//! Chosen on an NVIDIA H200; records lie under `benches/records/`. No result depends on them:
//! they decide which routine runs, how it is shaped, and when a guess is given up.

// Which routine runs.

/// Elements that a unit holds in registers before the row is spread over more units; the most it
/// can hold.
pub(crate) const REGISTER_ITEMS: usize = 32;
/// Row length from which `sampled` is preferred to `block`.
pub(crate) const SAMPLED_COLS: usize = 1 << 13;
/// Row length below which `delegate` is preferred, for k up to [`DELEGATE_SELECTED`].
pub(crate) const DELEGATE_COLS: usize = 1 << 14;
/// Greatest k for which `delegate` is preferred.
pub(crate) const DELEGATE_SELECTED: usize = 32;
/// Longest row that one unit takes on a GPU without planes.
pub(crate) const MAX_UNIT_COLS: usize = 64;

// Sizes of cubes.

/// Most units in a cube of `plane`.
pub(crate) const PLANE_CUBE_UNITS: u32 = 64;
/// Most units in a cube of `block`. More would spill registers.
pub(crate) const BLOCK_CUBE_UNITS: u32 = 512;
/// Units of `cube`, and of the scatter of a gradient.
pub(crate) const CUBE_UNITS: u32 = 256;
/// Units of `cube` for rows from [`LONG_ROW`] on.
pub(crate) const LONG_CUBE_UNITS: u32 = 1024;
/// Row length from which `cube` takes [`LONG_CUBE_UNITS`].
pub(crate) const LONG_ROW: usize = 1 << 14;

/// Elements of a row for each unit of `sampled`, between the following two numbers of units.
pub(crate) const SAMPLED_COLS_PER_UNIT: usize = 64;
/// Least units of `sampled`.
pub(crate) const SAMPLED_MIN_UNITS: usize = 64;
/// Most units of `sampled`.
pub(crate) const SAMPLED_MAX_UNITS: usize = 256;
/// Units of `sampled` for rows from [`LONG_SAMPLE`] on.
pub(crate) const LONG_SAMPLED_UNITS: u32 = 512;

// Rows in registers.

/// Most selected elements that a cube lists in shared memory, 4 bytes each. The list never takes
/// more than half of that memory.
pub(crate) const MAX_LISTED: usize = 1 << 12;
/// Most selected elements that a unit sorts in its registers.
pub(crate) const SORTED_ITEMS: usize = 16;
/// Floats are sorted by their bits where `k * BITWISE_SHARE <= cols`: the k greatest of a normal
/// row then span few powers of two.
pub(crate) const BITWISE_SHARE: usize = 3;
/// Early stop counts all midpoints up to this many; of more, the first are compared quantized.
pub(crate) const COUNTED_MIDPOINTS: u32 = 4;
/// Greatest k that the second kernel sorts by ranks, k² comparisons a row; above, it runs a bitonic
/// network of log² k launches.
pub(crate) const MAX_RANKED: usize = 512;

// Rows in memory.

/// Neighboring elements that a unit of `cube` places at a time.
pub(crate) const CUBE_ITEMS: u32 = 8;
/// Elements that a unit of `unit` reads between two jumps.
pub(crate) const UNIT_BLOCK: u32 = 8;
/// Bytes of shared memory in which a cube assembles rows of a gradient.
pub(crate) const ASSEMBLED_BYTES: usize = 1 << 14;

// Sampled and delegate.

/// Elements that a unit of `sampled` samples.
pub(crate) const SAMPLE_ITEMS: usize = 8;
/// Elements that it samples of rows from [`LONG_SAMPLE`] on.
pub(crate) const LONG_SAMPLE_ITEMS: usize = 16;
/// Row length from which `sampled` takes more units and larger samples.
pub(crate) const LONG_SAMPLE: usize = 1 << 18;
/// Standard deviations by which sample and list exceed their expected size.
pub(crate) const SAMPLE_MARGIN: f64 = 4.0;
/// The threshold may miss its rank in the sample by `rank / SAMPLE_SLACK`.
pub(crate) const SAMPLE_SLACK: f64 = 6.0;
/// Columns that a unit of `sampled` lists: the least of these that suffices.
pub(crate) const LIST_ITEMS: [usize; 4] = [4, 8, 16, 32];
/// Elements of a tile that a unit of `sampled` reads, and neighboring columns that it lists: one
/// bit each, hence 32.
pub(crate) const TILE_ITEMS: usize = 32;
/// Subranges of each unit of `delegate`.
pub(crate) const DELEGATE_SUBRANGES: usize = 8;
/// Columns that a unit of `delegate` lists.
pub(crate) const DELEGATE_LIST_ITEMS: usize = 8;
/// Loads of a unit that the second pass of `delegate` waits for together.
pub(crate) const DELEGATE_AHEAD: usize = 4;

// The exact search on keys.

/// Steps that only interpolate. Later, interpolation, halving of the key range and steps to the
/// next key present take turns.
pub(crate) const INTERPOLATIONS: u32 = 5;

// The Gaussian guess.

/// The guess is given up where it is off by more elements than this many standard deviations of the
/// count, and more than this many elements.
pub(crate) const GUESS_FAR: [f32; 2] = [3.5, 20.0];
/// As [`GUESS_FAR`], for guesses with too few elements before any had enough.
pub(crate) const GUESS_NEAR: [f32; 2] = [2.0, 10.0];
/// Most counts by the normal model before the row is refined.
pub(crate) const GUESS_COUNTS: u32 = 6;
/// Counts after which more than the `far` limit of elements inside the bracket ends the guess.
pub(crate) const GUESS_CLOSE: u32 = 2;
/// Elements inside the bracket above which ties or outliers are suspected.
pub(crate) const REFINE_SUSPICIOUS: f32 = 16.0;
/// Steps after which they are suspected anyway.
pub(crate) const REFINE_LATE: u32 = 6;
/// Steps between two looks for the values next to the ends of the bracket.
pub(crate) const REFINE_PAUSE: u32 = 3;
/// Most steps before the row is left to the search on keys.
pub(crate) const REFINE_STEPS: u32 = 16;
/// Corrects the least standard deviation among the units, which is biased towards zero.
pub(crate) const REFINE_BIAS: f32 = 1.2;
/// Most counts for the threshold of a sample before it is left to the search on keys.
pub(crate) const APPROXIMATE_COUNTS: u32 = 6;
/// Most counts of a packed row before it is left to the search on single elements.
pub(crate) const PACKED_COUNTS: u32 = 10;
/// Counts after which a packed row is checked for equal values.
pub(crate) const PACKED_TIES: u32 = 3;
