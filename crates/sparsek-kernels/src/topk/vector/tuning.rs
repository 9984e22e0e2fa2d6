//! What was measured, and chosen by it.

/// What automatic choices of a selection from a vector go by. The default was measured on an NVIDIA H200; the command
/// `sparsek-bench delegate` with its methods `alpha:N` measures any other card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Of Rule 4: the exponent of subranges is half the sum of this constant and log2(n / k).
    pub constant: i32,
    /// Elements up to which one cube selects from a vector as from a row, in one launch.
    pub row: usize,
    /// Most elements of chosen subranges that one cube goes through.
    pub finished: usize,
    /// Elements from which on delegates are found for more members than one cube finds.
    pub long: usize,
}

/// 32 of 2^14 take 0.013 ms as a row and 0.028 by delegates, of 2^15 0.011 and 0.017, of 2^16 0.021 and 0.017.
const ROW: usize = 1 << 15;
/// 128 of 2^28 take 0.272 ms with 2^16 elements in chosen subranges, 0.278 with 2^17, 0.288 with 2^19, 0.298 with 2^20.
const FINISHED: usize = 1 << 18;
/// 4096 of 2^24 take 0.154 ms without and 0.176 with delegates; of 2^28 1.39 without, 0.33 with.
const LONG: usize = 1 << 25;

impl Default for Tuning {
    fn default() -> Self {
        Self {
            constant: 0,
            row: ROW,
            finished: FINISHED,
            long: LONG,
        }
    }
}
