//! Constants that measurement chose, on an NVIDIA H200; records lie under `benches/records/`.

/// Most entries of an item of a partition; longer rows are cut.
pub(super) const PART: usize = 1024;
/// Length classes of items within each power of two.
pub(super) const LENGTH_STEPS: u32 = 4;

/// Entries that a unit of a gathered product loads before it adds them.
pub(super) const GATHER_FLIGHT: usize = 8;
/// Bytes of a dense row that all rows gather before any gathers the next slice.
pub(super) const SLICE_BYTES: usize = 256;
/// [`SLICE_BYTES`] at selected columns, in elements.
pub(super) const SLICE_SELECTED: usize = 8;
/// Most units that combine partial sums.
pub(super) const COMBINE_UNITS: usize = 1 << 18;

/// Units of a cube whose planes share entries of compressed rows.
pub(super) const PLANE_CUBE_UNITS: u32 = 128;
/// Most partial sums of a plane, over all its teams.
pub(super) const MAX_SUMS: usize = 1024;
/// [`MAX_SUMS`] if rows have fewer than [`SHORT_ROW`] entries on average.
pub(super) const MAX_SUMS_SHORT: usize = 512;
/// Average entries of a row below which clearing and collecting sums dominate.
pub(super) const SHORT_ROW: usize = 128;
/// [`MAX_SUMS`] if cubes have less than [`LARGE_MEMORY`], unless that leaves units idle.
pub(super) const MAX_SUMS_SMALL: usize = 256;
/// Shared memory that no longer limits the number of planes.
pub(super) const LARGE_MEMORY: usize = 64 << 10;
/// Elements that a unit loads before it adds them.
pub(super) const PLANE_FLIGHT: usize = 4;
/// Entries that a team loads at a time near the end of an item.
pub(super) const PLANE_TAIL: usize = 2;

/// Packed rows exceed the cache from this many bytes on.
pub(super) const PACKED_MIN_BYTES: usize = 1 << 26;
/// Fewest entries for each row of `x` for which packing pays.
pub(super) const PACKED_MIN_ENTRIES: usize = 8;

/// The gathered gradient computes all columns if k / width >= 1 / 8.
pub(super) const DENSE_GRADIENT_RATIO: usize = 8;
/// The two-pass gradient runs if k / width < 1 / 4.
pub(super) const TWO_PASS_RATIO: usize = 4;
/// The two-pass gradient needs at least this many bytes of upstream gradient.
pub(super) const TWO_PASS_MIN_BYTES: usize = 1 << 27;
/// Fraction of device memory for products of the two-pass gradient.
pub(super) const TWO_PASS_MEMORY_FRACTION: u64 = 16;
/// Selected elements that a unit loads before it writes their products.
pub(super) const TWO_PASS_WRITE_FLIGHT: usize = 8;
/// Products that a unit loads before it adds them.
pub(super) const TWO_PASS_ADD_FLIGHT: usize = 8;

/// Column blocks need this many entries of a row in each, on average.
pub(super) const BLOCK_MIN_ENTRIES: usize = 24;
/// Most column blocks.
pub(super) const MAX_BLOCKS: usize = 24;
/// Column blocks need this many entries of the matrix.
pub(super) const BLOCKS_MIN_NNZ: usize = 1 << 22;
/// Units of a cube that lists entries by column block.
pub(super) const LIST_UNITS: u32 = 128;
/// Units of a cube of the shared-memory gradient, and its greatest width.
pub(super) const SHARED_UNITS: u32 = 1024;
/// Cubes for each column block.
pub(super) const CUBES_PER_BLOCK: usize = 128;
/// Loads that a team issues before it adds them.
pub(super) const BLOCK_FLIGHT: u32 = 2;
/// Most selected elements that a cube sorts by column.
pub(super) const CHUNK: usize = 16_384;
