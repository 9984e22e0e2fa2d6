//! Fast approximations, where no result depends on them.

use cubecl::prelude::*;

/// Square root. Monotone, and equal on every device.
#[cube]
pub fn approx_sqrt(x: f32) -> f32 {
    f32::reinterpret((u32::reinterpret(x) >> 1) + 0x1fbd_1df5)
}

/// Inverse of a positive number.
#[cube]
pub fn approx_inverse(x: f32) -> f32 {
    let guess = f32::reinterpret(0x7ef3_11c3u32 - u32::reinterpret(x));
    guess * (2.0 - x * guess)
}

/// Natural logarithm of a normal number, within 0.006.
#[cube]
pub(crate) fn approx_ln(x: f32) -> f32 {
    let bits = u32::reinterpret(x);
    let exponent = f32::cast_from(bits >> 23) - 127.0;
    let rest = f32::reinterpret((bits & 0x007f_ffffu32) | 0x3f80_0000u32) - 1.0;
    (exponent + rest * (1.34 - 0.34 * rest)) * comptime!(std::f32::consts::LN_2)
}
