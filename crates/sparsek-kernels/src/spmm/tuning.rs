//! Constants measured on an NVIDIA H200; records lie under `benches/records/`.

/// Most entries of an item, for many and for few entries.
pub(super) const MAX_PART: usize = 1024;
pub(super) const MIN_PART: usize = 128;
/// Items of the longest kind that occupy a GPU; fewer entries are cut into shorter items.
pub(super) const BUSY_ITEMS: usize = 4096;
/// Length classes of items per power of two.
pub(super) const LENGTH_STEPS: u32 = 4;

/// Entries loaded before any is added.
pub(super) const GATHER_FLIGHT: usize = 8;
/// Bytes of a dense row per gathered slice.
pub(super) const SLICE_BYTES: usize = 256;
/// [`SLICE_BYTES`] at selected columns, in elements.
pub(super) const SLICE_SELECTED: usize = 8;
/// Most units that combine partial sums.
pub(super) const COMBINE_UNITS: usize = 1 << 18;

/// Units of a cube of planes.
pub(super) const PLANE_CUBE_UNITS: u32 = 128;
/// Sums of a plane, over all teams.
pub(super) const MAX_SUMS: usize = 1024;
/// [`MAX_SUMS`] for [short rows](SHORT_ROW).
pub(super) const MAX_SUMS_SHORT: usize = 512;
/// Average entries below which clearing and collecting sums dominate.
pub(super) const SHORT_ROW: usize = 128;
/// [`MAX_SUMS`] below [`LARGE_MEMORY`], unless units idle.
pub(super) const MAX_SUMS_SMALL: usize = 256;
/// Shared memory that no longer limits planes.
pub(super) const LARGE_MEMORY: usize = 64 << 10;
/// Elements loaded before any is added.
pub(super) const PLANE_FLIGHT: usize = 4;
/// Entries of a team near the end of an item.
pub(super) const PLANE_TAIL: usize = 2;

/// Packed bytes that exceed the cache.
pub(super) const PACKED_MIN_BYTES: usize = 1 << 26;
/// Entries per row of `x` that pay for packing.
pub(super) const PACKED_MIN_ENTRIES: usize = 8;

/// Gathers from a dense gradient if k / width >= 1 / 8.
pub(super) const DENSE_GRADIENT_RATIO: usize = 8;
/// Two passes if k / width < 1 / 4.
pub(super) const TWO_PASS_RATIO: usize = 4;
/// Least bytes of `upstream` for two passes.
pub(super) const TWO_PASS_MIN_BYTES: usize = 1 << 27;
/// Fraction of device memory for products.
pub(super) const TWO_PASS_MEMORY_FRACTION: u64 = 16;
/// Elements loaded before any is written.
pub(super) const TWO_PASS_WRITE_FLIGHT: usize = 8;
/// Products loaded before any is added.
pub(super) const TWO_PASS_ADD_FLIGHT: usize = 8;

/// Least average entries of a row in a block.
pub(super) const BLOCK_MIN_ENTRIES: usize = 24;
/// Most column blocks.
pub(super) const MAX_BLOCKS: usize = 24;
/// Least entries of a matrix with blocks.
pub(super) const BLOCKS_MIN_NNZ: usize = 1 << 22;
/// Units of a cube that lists blocks.
pub(super) const LIST_UNITS: u32 = 128;
/// Units of a cube; greatest width.
pub(super) const SHARED_UNITS: u32 = 1024;
/// Cubes per block.
pub(super) const CUBES_PER_BLOCK: usize = 128;
/// Loads of a team in flight.
pub(super) const BLOCK_FLIGHT: u32 = 2;
/// Most elements of a chunk.
pub(super) const CHUNK: usize = 16_384;

/// Units of a cube of the sampled product.
pub(super) const SDDMM_CUBE_UNITS: u32 = 256;
