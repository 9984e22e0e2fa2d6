//! Sizes chosen by measurement on x86-64 hosts; records lie under `benches/records/`.

/// Fewest elements that a thread fills.
pub(super) const MIN_FILL: usize = 1 << 14;

/// Counting rounds of a selection before the fallback.
pub(super) const COUNT_ROUNDS: u32 = 16;
/// Every `BISECT_EVERY`-th round bisects, since values may be unevenly spread.
pub(super) const BISECT_EVERY: u32 = 4;
/// After this many useless bisections with over `CLOSE_COUNT` elements in between, many are
/// probably equal.
pub(super) const STUCK_BISECTIONS: u32 = 4;
/// Elements between two bounds that count as close.
pub(super) const CLOSE_COUNT: usize = 8;
/// Weight of one row in the running spacing.
pub(super) const SPACING_WEIGHT: f64 = 0.25;

/// Rows added to the sums in one pass.
pub(super) const ROWS_AT_ONCE: usize = 4;

/// Most shares of the rows, each with its own sums.
pub(super) const MAX_SHARES: usize = 64;
/// Fewest rows per share.
pub(super) const MIN_SHARE_ROWS: usize = 512;
/// Accumulators of a dot product.
pub(super) const ACCUMULATORS: usize = 16;
/// Rows per partial sum of parameter gradients. Fixed, so that sums do not depend on the threads.
pub(super) const SUM_ROWS: usize = 128;

/// Bytes of distances per batch.
pub(super) const BATCH_BYTES: usize = 64 << 20;
/// Bytes of distances of a matrix to itself. If all fit, half of them are mirrored.
pub(super) const MIRROR_BYTES: usize = 512 << 20;
