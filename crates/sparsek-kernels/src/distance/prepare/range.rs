//! [`row_shift`] brings a row within 2^±30, exactly. Pairs with sums below [`tiny`] or above
//! [`huge`] are evaluated again ([`Rescale`](crate::distance::Rescale)).

#![allow(missing_docs, reason = "the macro writes modules of its own beside the functions")]

#[cfg(feature = "kernels")]
use cubecl::prelude::*;

/// 2^±30, 2^±100.
pub(in crate::distance) const STEP_UP: f32 = 1_073_741_824.0;
pub(in crate::distance) const STEP_DOWN: f32 = 1.0 / STEP_UP;
const HUGE: f32 = 1.267_650_6e30;
const TINY: f32 = 7.888_609e-31;
/// Cover f64's exponents.
pub(in crate::distance) const STEPS: u32 = 34;
/// Columns per sum, against rounding.
pub(in crate::distance) const BLOCK: u32 = 256;

/// 0 for zero, subnormal, nonfinite.
#[cfg(feature = "kernels")]
#[cube]
pub(in crate::distance) fn row_shift<S: Float>(greatest: S) -> i32 {
    let bits = S::size_bits().comptime();
    let bias = comptime!(if bits == 64 { 1023 } else { 127 });
    let exponent = field::<S>(greatest) - bias;
    let above = max(exponent, 0) / 30;
    let below = max(-exponent, 0) / 30;
    let number = exponent > -bias && exponent <= bias;
    select(number, (below - above) * 30, 0)
}

/// By bits, as compilers would cancel factors. Subnormals become 0.
#[cfg(feature = "kernels")]
#[cube]
pub(in crate::distance) fn shifted<S: Float>(value: S, shift: i32) -> S {
    let bits = S::size_bits().comptime();
    let last = comptime!(if bits == 64 { 2047 } else { 255 });
    let before = field::<S>(value);
    let after = min(before + shift, last - 1);
    let moved = if comptime!(bits == 64) {
        let rest = u64::reinterpret(value) & 0x800f_ffff_ffff_ffffu64;
        S::reinterpret(rest | (u64::cast_from(max(after, 0)) << 52u64))
    } else {
        let rest = u32::reinterpret(value) & 0x807f_ffffu32;
        S::reinterpret(rest | (u32::cast_from(max(after, 0)) << 23u32))
    };
    let moved = select(before > 0 && after > 0, moved, S::new(0.0));
    select(before == last, value, moved)
}

#[cfg(feature = "kernels")]
#[cube]
pub(in crate::distance) fn power<S: Float>(shift: i32) -> S {
    let bits = S::size_bits().comptime();
    if comptime!(bits == 64) {
        S::reinterpret(u64::cast_from(shift + 1023) << 52u64)
    } else {
        S::reinterpret(u32::cast_from(shift + 127) << 23u32)
    }
}

#[cfg(feature = "kernels")]
#[cube]
fn field<S: Float>(value: S) -> i32 {
    let bits = S::size_bits().comptime();
    if comptime!(bits == 64) {
        i32::cast_from((u64::reinterpret(value) >> 52u64) & 2047u64)
    } else {
        i32::cast_from((u32::reinterpret(value) >> 23u32) & 255u32)
    }
}

/// 2^-100, f64 2^-800: less may lack terms.
#[cfg(feature = "kernels")]
#[cube]
pub(in crate::distance) fn tiny<S: Float>() -> S {
    let bits = S::size_bits().comptime();
    let one = S::new(TINY);
    if comptime!(bits == 64) {
        let two = one * one;
        let four = two * two;
        four * four
    } else {
        one
    }
}

/// 2^100, f64 2^800: more may hide terms.
#[cfg(feature = "kernels")]
#[cube]
pub(in crate::distance) fn huge<S: Float>() -> S {
    let bits = S::size_bits().comptime();
    let one = S::new(HUGE);
    if comptime!(bits == 64) {
        let two = one * one;
        let four = two * two;
        four * four
    } else {
        one
    }
}

pub(in crate::distance) mod host {
    use super::{HUGE, STEP_DOWN, STEP_UP, STEPS, TINY};
    use crate::distance::semiring::Real;

    pub fn row_factor<S: Real>(greatest: S) -> S {
        let mut factor = S::new(1.0);
        let mut steps = 0;
        while greatest * factor > S::new(STEP_UP) && steps < STEPS {
            factor = factor * S::new(STEP_DOWN);
            steps += 1;
        }
        let zero = S::new(0.0);
        while greatest > zero && greatest * factor < S::new(STEP_DOWN) && steps < STEPS {
            factor = factor * S::new(STEP_UP);
            steps += 1;
        }
        factor
    }

    pub fn limits<S: Real>() -> [S; 2] {
        [TINY, HUGE].map(|limit| {
            let one = S::new(limit);
            if size_of::<S>() == 8 {
                let two = one * one;
                let four = two * two;
                four * four
            } else {
                one
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::host::{limits, row_factor};

    #[test]
    fn factors_are_powers_of_two_that_bring_magnitudes_into_range() {
        for exponent in -149..=127 {
            let greatest = 1.5 * 2f64.powi(exponent);
            let greatest = greatest as f32;
            let factor = row_factor(greatest);
            assert!(factor.is_normal() && factor.to_bits() << 9 == 0, "{factor}");
            let scaled = greatest * factor;
            assert!((9e-10..=1.1e9).contains(&scaled), "{greatest}: {scaled}");
            if (-29..29).contains(&exponent) {
                assert_eq!(factor, 1.0);
            }
        }
        for exponent in (-1074..=1023).step_by(7) {
            // `powi` inverts an overflowing power.
            let half = exponent / 2;
            let greatest = 2f64.powi(half) * 2f64.powi(exponent - half);
            let scaled = greatest * row_factor(greatest);
            assert!((1e-18..=1.1e9).contains(&scaled), "2^{exponent}: {scaled}");
        }
        assert_eq!([row_factor(0.0f32), row_factor(1.0)], [1.0; 2]);
        assert!(row_factor(f32::INFINITY) >= 0.0);
    }

    #[test]
    fn limits_are_powers_of_two() {
        assert_eq!(limits::<f32>(), [2f32.powi(-100), 2f32.powi(100)]);
        assert_eq!(limits::<f64>(), [2f64.powi(-800), 2f64.powi(800)]);
    }
}
