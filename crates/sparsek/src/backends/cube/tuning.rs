//! Sizes measured on an NVIDIA H200; records lie under `benches/records/`.

/// Fewest rows for tensor-core products.
pub(super) const TALL_ROWS: usize = 1 << 13;
/// Most rows per slice of tall products; Burn does not split them.
pub(super) const SLICE_ROWS: usize = 2048;
/// Least width / k for products of kept elements alone.
pub(super) const MIN_SPARSITY: usize = 64;

/// Most bytes of distances per batch; a search stays below 2 GiB.
pub(super) const BATCH_BYTES: usize = 512 << 20;
/// Most bytes of counters.
pub(super) const COUNTER_BYTES: usize = 256 << 20;
/// Bytes for batch and copies.
pub(super) const COPIES_BYTES: usize = 1600 << 20;
/// Bytes per copied f32 entry.
pub(super) const COPY_BYTES: usize = 12;
/// Distances and counters each take at most 1 / this of the free memory.
pub(super) const FREE_FRACTION: u64 = 8;
/// Outputs up to this size do not query free memory.
pub(super) const SMALL_BYTES: usize = 64 << 20;
