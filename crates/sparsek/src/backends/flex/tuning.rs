//! Sizes measured on x86-64; records lie under `benches/records/`.

/// Fewest elements per thread.
pub(super) const MIN_FILL: usize = 1 << 14;

/// Counting rounds before the fallback.
pub(super) const COUNT_ROUNDS: u32 = 16;
/// Every n-th round bisects, since values may be unevenly spread.
pub(super) const BISECT_EVERY: u32 = 4;
/// Useless bisections, with over `CLOSE_COUNT` elements between the bounds, that suggest equal
/// ones.
pub(super) const STUCK_BISECTIONS: u32 = 4;
/// Elements between close bounds.
pub(super) const CLOSE_COUNT: usize = 8;
/// Weight of a row in the spacing.
pub(super) const SPACING_WEIGHT: f64 = 0.25;

/// Rows added at once.
pub(super) const ROWS_AT_ONCE: usize = 4;

/// Most shares of rows with own sums.
pub(super) const MAX_SHARES: usize = 64;
/// Fewest rows per share.
pub(super) const MIN_SHARE_ROWS: usize = 512;
/// Accumulators per dot product.
pub(super) const ACCUMULATORS: usize = 16;
/// Rows per partial sum. Fixed, so that sums do not depend on threads.
pub(super) const SUM_ROWS: usize = 128;

/// Bytes of distances per batch.
pub(super) const BATCH_BYTES: usize = 64 << 20;
/// Bytes of distances of a matrix to itself; if all fit, half are mirrored.
pub(super) const MIRROR_BYTES: usize = 512 << 20;
