//! Measured on x86-64: `benches/records/`.

/// Per thread.
pub(super) const MIN_FILL: usize = 1 << 14;

/// Before the fallback.
pub(super) const COUNT_ROUNDS: u32 = 16;
/// Every n-th round bisects, for uneven values.
pub(super) const BISECT_EVERY: u32 = 4;
/// Useless bisections that suggest equal elements.
pub(super) const STUCK_BISECTIONS: u32 = 4;
pub(super) const CLOSE_COUNT: usize = 8;
pub(super) const SPACING_WEIGHT: f64 = 0.25;

pub(super) const ROWS_AT_ONCE: usize = 4;

pub(super) const MAX_SHARES: usize = 64;
pub(super) const MIN_SHARE_ROWS: usize = 512;
pub(super) const ACCUMULATORS: usize = 16;
/// Fixed, so threads change no sum.
pub(super) const SUM_ROWS: usize = 128;

pub(super) const BATCH_BYTES: usize = 64 << 20;
/// Within one matrix; if all fit, half are mirrored.
pub(super) const MIRROR_BYTES: usize = 512 << 20;
