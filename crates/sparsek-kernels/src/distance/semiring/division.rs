//! Quotients without a division.
#![allow(
    missing_docs,
    reason = "the macro writes a module of its own beside the function"
)]

use cubecl::prelude::*;

/// 2^64 and 2^-64, which bring divisors between 2^-85 and 2^64: no inverse is subnormal or
/// infinite.
const LARGER: f32 = 1.844_674_4e19;
const SMALLER: f32 = 5.421_011e-20;

/// Returns `dividend / divisor` to within a relative 3e-7 and 2^-60, for a finite positive divisor
/// of at least the dividend.
///
/// For a divisor of 0 or infinity it is any number or NaN. f64 is divided exactly. The f32 inverse
/// takes a cubic and a square Newton step from a guess by the bits, off by at most 0.051. NVIDIA's
/// division is longer and branches.
#[cube]
pub fn quotient<S: Float>(dividend: S, divisor: S) -> S {
    let bits = S::size_bits().comptime();
    if comptime!(bits == 32) {
        let one = S::new(1.0);
        let scale = select(divisor < one, S::new(LARGER), S::new(SMALLER));
        let x = divisor * scale;
        let guess = S::reinterpret(0x7ef3_11c3u32 - u32::reinterpret(x));
        let error = fma(-x, guess, one);
        let near = fma(guess, fma(error, error, error), guess);
        let inverse = fma(near, fma(-x, near, one), near);
        dividend * scale * inverse
    } else {
        dividend / divisor
    }
}
