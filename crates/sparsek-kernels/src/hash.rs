#![allow(missing_docs, reason = "the macro writes a module of its own beside the function")]

#[cfg(feature = "kernels")]
use cubecl::prelude::*;

/// `lowbias32` (Wellons, 2018).
const FACTORS: [u32; 2] = [0x7feb_352d, 0x846c_a68b];

pub(crate) fn mixed(x: u32) -> u32 {
    let x = (x ^ (x >> 16)).wrapping_mul(FACTORS[0]);
    let x = (x ^ (x >> 15)).wrapping_mul(FACTORS[1]);
    x ^ (x >> 16)
}

/// [`mixed`] on the device.
#[cfg(feature = "kernels")]
#[cube]
pub(crate) fn mix(state: u32) -> u32 {
    let state = (state ^ (state >> 16)) * comptime!(FACTORS[0]);
    let state = (state ^ (state >> 15)) * comptime!(FACTORS[1]);
    state ^ (state >> 16)
}
