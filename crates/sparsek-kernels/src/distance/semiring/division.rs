#![allow(missing_docs, reason = "the macro writes a module of its own beside the function")]

use cubecl::prelude::*;

/// 2^±64 give divisors normal inverses.
const LARGER: f32 = 1.844_674_4e19;
const SMALLER: f32 = 5.421_011e-20;

/// Divides within 3e-7 relative and 2^-60, for a finite positive divisor ≥ `dividend`; exact in
/// f64. Anything for divisor 0 or infinity.
///
/// Two Newton steps from a bit guess within 0.051.
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
