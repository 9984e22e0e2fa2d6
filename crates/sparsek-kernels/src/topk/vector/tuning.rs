//! Measured on H200: `benches/records/`.

pub(super) const MAX_FINISH_K: usize = 1 << 10;
pub(super) const MIN_LENGTH_PER_K: usize = 16;
pub(super) const CUBE_UNITS: u32 = 256;
pub(super) const HISTOGRAM_UNITS: u32 = 512;
pub(super) const MAX_CUBES: usize = 512;
pub(super) const LOADS_IN_FLIGHT: usize = 8;

pub(super) const MAX_STAGED_EXPONENT: u32 = 5;
pub(super) const STAGED_UNITS: u32 = 128;

pub(super) const FINISH_UNITS: u32 = 1024;
pub(super) const DELEGATE_BYTES_PER_UNIT: usize = 64;
pub(super) const CANDIDATE_ROOM: usize = 1 << 11;
pub(super) const FINISH_LOADS_IN_FLIGHT: usize = 4;
pub(super) const MAX_RANKED: u32 = 64;

pub(super) const LONG_ROW_MAX_K: usize = 1 << 10;
pub(super) const LONG_ROW_MIN_LENGTH_PER_K: usize = 16;
/// Columns per row.
pub(super) const LONG_ROW: usize = 1 << 20;

/// Bounds, and elements per k.
pub(super) const PIECE_BYTES: [usize; 2] = [1 << 26, 1 << 29];
pub(super) const PIECE_LENGTH_PER_K: usize = 64;
/// At least, and per k.
pub(super) const KEPT: usize = 1 << 20;
pub(super) const KEPT_PER_K: usize = 4;
pub(super) const MIN_PINNED_BYTES: usize = 1 << 20;
pub(super) const COPY_BYTES: usize = 1 << 20;

const CONSTANT: i32 = 0;
const MANY: i32 = 1;
const GROUPED: i32 = -6;
const ROW: usize = 1 << 15;
const FINISHED: usize = 1 << 18;
const LONG: usize = 1 << 25;
const EXPONENTS: [u32; 2] = [3, 16];

/// Thresholds of automatic choices; default: NVIDIA H200.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tuning {
    /// Rule 4: α = (log2(n/k) + constant)/2.
    pub constant: i32,
    /// `constant` beyond one cube.
    pub many: i32,
    /// For groups: α = log2(n/k)·3/4 + grouped.
    pub grouped: i32,
    /// Longest vector treated as a row.
    pub row: usize,
    /// Most elements that one cube scans.
    pub finished: usize,
    /// Least n for delegates beyond one cube.
    pub long: usize,
}

impl Tuning {
    /// α by Rule 4, for k ≥ 1 and 1 to 4 `delegates`.
    #[must_use]
    pub fn exponent(&self, length: usize, k: usize, delegates: usize) -> u32 {
        let constant = if k > MAX_FINISH_K { self.many } else { self.constant };
        let balanced = ((length / k).max(1).ilog2() as i32 + constant).max(0) as u32 / 2;
        (balanced + delegates.ilog2()).clamp(EXPONENTS[0], EXPONENTS[1])
    }

    pub(super) fn grouped(&self, share: usize) -> u32 {
        let exponent = 3 * share.ilog2() as i32 / 4 + self.grouped;
        exponent.clamp(EXPONENTS[0] as i32, EXPONENTS[1] as i32) as u32
    }
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            constant: CONSTANT,
            many: MANY,
            grouped: GROUPED,
            row: ROW,
            finished: FINISHED,
            long: LONG,
        }
    }
}
pub(crate) const HISTOGRAM_ITEMS: u32 = 16;
pub(crate) const BITONIC_TILE: usize = 1 << 11;
pub(crate) const CANDIDATE_LOAD: usize = 16;
