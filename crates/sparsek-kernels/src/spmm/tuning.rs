//! Measured on H200: `benches/records/`.

/// Most entries per item.
pub(super) const MAX_PART: usize = 1024;
pub(super) const MIN_PART: usize = 128;
/// Items that occupy a GPU.
pub(super) const BUSY_ITEMS: usize = 4096;
pub(super) const LENGTH_STEPS: u32 = 4;

pub(super) const GATHER_FLIGHT: usize = 8;
pub(super) const SLICE_BYTES: usize = 256;
/// Selected columns per slice.
pub(super) const SLICE_SELECTED: usize = 8;
pub(super) const COMBINE_UNITS: usize = 1 << 18;

pub(super) const PLANE_CUBE_UNITS: u32 = 128;
pub(super) const MAX_SUMS: usize = 1024;
/// [`MAX_SUMS`] for [short rows](SHORT_ROW).
pub(super) const MAX_SUMS_SHORT: usize = 512;
/// Below, clearing and collecting sums dominate.
pub(super) const SHORT_ROW: usize = 128;
/// [`MAX_SUMS`] below [`LARGE_MEMORY`].
pub(super) const MAX_SUMS_SMALL: usize = 256;
/// Bytes of shared memory.
pub(super) const LARGE_MEMORY: usize = 64 << 10;
pub(super) const PLANE_FLIGHT: usize = 4;
pub(super) const PLANE_TAIL: usize = 2;

/// Beyond the cache.
pub(super) const PACKED_MIN_BYTES: usize = 1 << 26;
pub(super) const PACKED_MIN_ENTRIES: usize = 8;

/// Dense gradient if 8 k ≥ width.
pub(super) const DENSE_GRADIENT_RATIO: usize = 8;
/// Two passes if 4 k < width.
pub(super) const TWO_PASS_RATIO: usize = 4;
/// Least bytes of `upstream`.
pub(super) const TWO_PASS_MIN_BYTES: usize = 1 << 27;
pub(super) const TWO_PASS_MEMORY_FRACTION: u64 = 16;
pub(super) const TWO_PASS_WRITE_FLIGHT: usize = 8;
pub(super) const TWO_PASS_ADD_FLIGHT: usize = 8;

/// Average, per row and block.
pub(super) const BLOCK_MIN_ENTRIES: usize = 24;
pub(super) const MAX_BLOCKS: usize = 24;
pub(super) const BLOCKS_MIN_NNZ: usize = 1 << 22;
pub(super) const LIST_UNITS: u32 = 128;
/// Units per cube; greatest width.
pub(super) const SHARED_UNITS: u32 = 1024;
pub(super) const CUBES_PER_BLOCK: usize = 128;
pub(super) const BLOCK_FLIGHT: u32 = 2;
pub(super) const CHUNK: usize = 16_384;

pub(super) const SDDMM_CUBE_UNITS: u32 = 256;
pub(super) const LOAD: usize = 64;
pub(super) const TEAM: u32 = 8;
pub(super) const TRANSPOSED_TILE: u32 = 32;
