//! Quotients by multiplication.
#![allow(
    missing_docs,
    reason = "the macro writes a module of its own beside the function"
)]

use cubecl::prelude::*;

/// 2^64 and 2^-64, by which divisors are brought between 2^-85 and 2^64: inverses are neither subnormal nor infinite there.
const LARGER: f32 = 1.844_674_4e19;
const SMALLER: f32 = 5.421_011e-20;

/// `dividend / divisor` to within 3e-7 of it and 2^-60, where the divisor is finite, above 0 and not less than the dividend; where it is
/// infinite or 0, any number or NaN. f64 is divided.
///
/// Of f32, an inverse by Newton's method, a cubic step and a square one, from a guess by the bits that is off by 0.051 at most.
/// NVIDIA's division is longer, and has a branch for rare cases that keeps others from going on beside it.
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
