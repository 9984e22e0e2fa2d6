//! Constants of the top-k of one vector, chosen by measurement on an NVIDIA H200. Records lie under
//! `benches/records/`; `docs/benchmarks.md` has the commands that measure another card.

/// Most k for which one cube runs the second top-k.
pub(super) const MAX_FINISH_K: usize = 1 << 10;
/// Least length per k for which delegates are constructed.
pub(super) const MIN_LENGTH_PER_K: usize = 16;
/// Units per cube of every kernel that has no constant of its own.
pub(super) const CUBE_UNITS: u32 = 256;
/// Units per cube of the histogram kernels.
pub(super) const HISTOGRAM_UNITS: u32 = 512;
/// Most cubes of the histogram and filter kernels.
pub(super) const MAX_CUBES: usize = 512;
/// Loads that a unit has in flight while it constructs delegates.
pub(super) const LOADS_IN_FLIGHT: usize = 8;

/// Longest subranges that are constructed through shared memory, as an exponent.
pub(super) const MAX_STAGED_EXPONENT: u32 = 5;
/// Units per cube of the construction through shared memory; each has one subrange.
pub(super) const STAGED_UNITS: u32 = 128;

/// Units of the cube that finishes.
pub(super) const FINISH_UNITS: u32 = 1024;
/// Bytes of delegates that each of its units holds in registers.
pub(super) const DELEGATE_BYTES_PER_UNIT: usize = 64;
/// Candidates that fit its shared memory.
pub(super) const CANDIDATE_ROOM: usize = 1 << 11;
/// Loads that each of its units has in flight.
pub(super) const FINISH_LOADS_IN_FLIGHT: usize = 4;
/// Most candidates that are ranked by comparing all pairs; more are counted in histograms.
pub(super) const MAX_RANKED: u32 = 64;

/// Most k, and least length per k, for which a single row that is slightly too long for the row
/// routines is a vector.
pub(super) const LONG_ROW_MAX_K: usize = 1 << 10;
pub(super) const LONG_ROW_MIN_LENGTH_PER_K: usize = 16;
/// Least length per row for which rows are vectors for any k. Rows run one after another.
pub(super) const LONG_ROW: usize = 1 << 20;

/// Least and most bytes of a piece of a stream.
pub(super) const PIECE_BYTES: [usize; 2] = [1 << 26, 1 << 29];
/// Elements of a piece per k.
pub(super) const PIECE_LENGTH_PER_K: usize = 64;
/// Values on the host at which a stream reduces them to k, at least and per k.
pub(super) const KEPT: usize = 1 << 20;
pub(super) const KEPT_PER_K: usize = 4;
/// Least bytes of a part that is copied through pinned memory.
pub(super) const MIN_PINNED_BYTES: usize = 1 << 20;
/// Bytes that a thread copies at a time.
pub(super) const COPY_BYTES: usize = 1 << 20;

const CONSTANT: i32 = 0;
const MANY: i32 = 1;
const GROUPED: i32 = -6;
const ROW: usize = 1 << 15;
const FINISHED: usize = 1 << 18;
const LONG: usize = 1 << 25;
/// Shortest and longest subrange that is chosen, as exponents.
const EXPONENTS: [u32; 2] = [3, 16];

/// Thresholds of the automatic choices for a vector. The defaults suit an NVIDIA H200.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Constant of Rule 4: α is half the sum of this and log2(n / k).
    pub constant: i32,
    /// Constant of Rule 4 where k is too large for one cube to finish.
    pub many: i32,
    /// Constant for delegates in groups: α is the sum of this and 3/4 of log2(n / k).
    pub grouped: i32,
    /// Length up to which one cube selects from a vector as from a row, in one launch.
    pub row: usize,
    /// Most elements of selected subranges that one cube scans.
    pub finished: usize,
    /// Least length for which delegates are constructed where k is too large for one cube.
    pub long: usize,
}

impl Tuning {
    /// Exponent α of the subranges by Rule 4, which balances the lengths of the delegate vector and
    /// the concatenated vector. `k` is at least 1; `delegates` is β, 1 to 4.
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

    /// Exponent of the subranges for delegates in groups, which cost less. `share` is n / k.
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
