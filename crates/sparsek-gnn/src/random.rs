//! SplitMix64, counter-based random numbers.

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

pub(crate) fn mix(seed: u64) -> u64 {
    nth(seed.wrapping_mul(STEP), 0)
}

pub(crate) fn nth(state: u64, n: u64) -> u64 {
    let mut z = state.wrapping_add(n.wrapping_add(1).wrapping_mul(STEP));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// In `[0, 1)`.
pub(crate) fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}
