//! Constants of the top-k of one vector, chosen on an NVIDIA H200. Records lie under
//! `benches/records/`; `docs/benchmarks.md` has the commands.

/// Most k for which one cube runs the second top-k.
pub(super) const MAX_FINISH_K: usize = 1 << 10;
/// Least length per k for which delegates are constructed.
pub(super) const MIN_LENGTH_PER_K: usize = 16;
/// Units per cube of all other kernels.
pub(super) const CUBE_UNITS: u32 = 256;
/// Units per cube of the histogram kernels.
pub(super) const HISTOGRAM_UNITS: u32 = 512;
/// Most cubes of the histogram and filter kernels.
pub(super) const MAX_CUBES: usize = 512;
/// Loads in flight per unit during the construction.
pub(super) const LOADS_IN_FLIGHT: usize = 8;

/// Longest subranges that are staged in shared memory, as an exponent.
pub(super) const MAX_STAGED_EXPONENT: u32 = 5;
/// Units per cube of that construction.
pub(super) const STAGED_UNITS: u32 = 128;

/// Units of the cube that finishes.
pub(super) const FINISH_UNITS: u32 = 1024;
/// Bytes of delegates in the registers of each of its units.
pub(super) const DELEGATE_BYTES_PER_UNIT: usize = 64;
/// Candidates that fit its shared memory.
pub(super) const CANDIDATE_ROOM: usize = 1 << 11;
/// Loads in flight per unit.
pub(super) const FINISH_LOADS_IN_FLIGHT: usize = 4;
/// Most candidates that are ranked by comparing all pairs.
pub(super) const MAX_RANKED: u32 = 64;

/// Most k, and least length per k, for which a single row above `Tuning::row` is a vector.
pub(super) const LONG_ROW_MAX_K: usize = 1 << 10;
pub(super) const LONG_ROW_MIN_LENGTH_PER_K: usize = 16;
/// Least length per row for which rows are vectors for any k.
pub(super) const LONG_ROW: usize = 1 << 20;

/// Bounds of the bytes of a stream's piece, and its elements per k.
pub(super) const PIECE_BYTES: [usize; 2] = [1 << 26, 1 << 29];
pub(super) const PIECE_LENGTH_PER_K: usize = 64;
/// Values on the host that a stream reduces to k: at least, and per k.
pub(super) const KEPT: usize = 1 << 20;
pub(super) const KEPT_PER_K: usize = 4;
/// Least bytes for pinned memory, and bytes that a thread copies at a time.
pub(super) const MIN_PINNED_BYTES: usize = 1 << 20;
pub(super) const COPY_BYTES: usize = 1 << 20;

const CONSTANT: i32 = 0;
const MANY: i32 = 1;
const GROUPED: i32 = -6;
const ROW: usize = 1 << 15;
const FINISHED: usize = 1 << 18;
const LONG: usize = 1 << 25;
/// Shortest and longest subrange, as exponents.
const EXPONENTS: [u32; 2] = [3, 16];

/// Thresholds of the automatic choices for a vector, by default those of an NVIDIA H200.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Constant of Rule 4: α is half the sum of this and log2(n / k).
    pub constant: i32,
    /// The same where k is too large for one cube to finish.
    pub many: i32,
    /// Constant for delegates in groups: α is the sum of this and 3/4 of log2(n / k).
    pub grouped: i32,
    /// Most elements of a vector that one cube selects from as from a row.
    pub row: usize,
    /// Most elements of selected subranges that one cube scans.
    pub finished: usize,
    /// Least length for delegates where k is too large for one cube.
    pub long: usize,
}

impl Tuning {
    /// Exponent α of the subranges by Rule 4, which balances both selections. `k` is at least 1;
    /// `delegates` is β, 1 to 4.
    #[must_use]
    pub fn exponent(&self, length: usize, k: usize, delegates: usize) -> u32 {
        let constant = if k > MAX_FINISH_K {
            self.many
        } else {
            self.constant
        };
        let balanced = ((length / k).max(1).ilog2() as i32 + constant).max(0) as u32 / 2;
        (balanced + delegates.ilog2()).clamp(EXPONENTS[0], EXPONENTS[1])
    }

    /// Exponent for delegates in groups; `share` is n / k.
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
