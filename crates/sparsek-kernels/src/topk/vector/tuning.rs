//! What was measured, and chosen by it.

use super::plan::MEMBERS;

/// What automatic choices of a selection from a vector go by. The default was measured on an NVIDIA H200; the
/// commands of docs/benchmarks.md measure any other card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Of Rule 4: the exponent of subranges is half the sum of this constant and log2(n / k).
    pub constant: i32,
    /// The same where no single cube finds all members.
    pub many: i32,
    /// Where delegates are chosen by groups of subranges, the exponent of these is three quarters of log2(n / k) and this constant.
    pub grouped: i32,
    /// Elements up to which one cube selects from a vector as from a row, in one launch.
    pub row: usize,
    /// Most elements of chosen subranges that one cube goes through.
    pub finished: usize,
    /// Elements from which on delegates are found for more members than one cube finds.
    pub long: usize,
}

/// 16, 128, 1024, 4096, 2^15 and 2^18 of 2^28 take 1.009, 1.028, 1, 1, 1 and 1 times as long with the exponents that it leads
/// to as with the best of 3 to 12, on average 1.006; with 1 1.016, with 2 1.048, with -1 1.068, with -2 1.074
/// (benches/records/nvidia-h200/2026-11-22-delegate-3.jsonl; docs/benchmarks.md has the commands).
const CONSTANT: i32 = 0;
/// 2^11, 2^13, 2^15 and 2^17 of 2^28 of f32 take 0.294, 0.303, 0.328 and 0.380 ms, with 0 0.297, 0.306, 0.331 and 0.382; of f16 0.161, 0.168,
/// 0.196 and 0.225, with 0 0.164, 0.183, 0.195 and 0.220; 2^15 of 2^30 of f16 0.564 and 0.623.
const MANY: i32 = 1;
/// 128 of 2^24 of f16 take 19.4, 20.0, 20.7 and 21.7 µs with subranges of 2^6 to 2^9, 128 of 2^28 169, 161, 149 and 152 with 2^7 to 2^10, of
/// f32 287, 285, 268 and 272.
const GROUPED: i32 = -6;
/// 32 of 2^14 take 0.013 ms as a row and 0.028 by delegates, of 2^15 0.011 and 0.017, of 2^16 0.021 and 0.017.
const ROW: usize = 1 << 15;
/// 128 of 2^28 take 0.272 ms with 2^16 elements in chosen subranges, 0.278 with 2^17, 0.288 with 2^19, 0.298 with 2^20.
const FINISHED: usize = 1 << 18;
/// 4096 of 2^24 take 0.154 ms without and 0.176 with delegates; of 2^28 1.39 without, 0.33 with.
const LONG: usize = 1 << 25;

/// The shortest and the longest subrange that is chosen, as exponents.
const EXPONENTS: [u32; 2] = [3, 16];

impl Tuning {
    /// The exponent of subranges by Rule 4, for which delegates and the elements of chosen subranges are about as many: of a vector of
    /// `length` elements, k of which are members, 1 or more, with so many delegates of each subrange, 1 to 4.
    #[must_use]
    pub fn exponent(&self, length: usize, k: usize, delegates: usize) -> u32 {
        let constant = if k > MEMBERS {
            self.many
        } else {
            self.constant
        };
        let balanced = ((length / k).max(1).ilog2() as i32 + constant).max(0) as u32 / 2;
        (balanced + delegates.ilog2()).clamp(EXPONENTS[0], EXPONENTS[1])
    }

    /// The same of subranges in groups, whose delegates cost less: it grows by three quarters.
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
