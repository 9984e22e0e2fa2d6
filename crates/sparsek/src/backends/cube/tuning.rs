//! Measured on H200: `benches/records/`.

/// Fewest rows for this crate's kernels.
pub(super) const TALL_ROWS: usize = 1 << 13;
/// Most rows per slice.
pub(super) const SLICE_ROWS: usize = 2048;
/// Least width / k for sparse products.
pub(super) const MIN_SPARSITY: usize = 64;

/// A search stays below 2 GiB.
pub(super) const BATCH_BYTES: usize = 512 << 20;
pub(super) const COUNTER_BYTES: usize = 256 << 20;
/// Bytes for batch and copies.
pub(super) const COPIES_BYTES: usize = 1600 << 20;
/// Per copied f32 entry.
pub(super) const COPY_BYTES: usize = 12;
/// Distances and counters each get free memory / this.
pub(super) const FREE_FRACTION: u64 = 8;
/// Larger outputs query free memory.
pub(super) const SMALL_BYTES: usize = 64 << 20;
