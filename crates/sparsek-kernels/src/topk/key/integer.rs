//! Integers, and the keys `u64` and `i16` as elements.

use cubecl::prelude::*;

use super::element::Element;

macro_rules! integer_element {
    ($int:ident, $key:ident, $sign:literal) => {
        #[cube]
        impl Element for $int {
            type Key = $key;

            fn key(value: Self) -> $key {
                $key::reinterpret(value) ^ $sign
            }

            fn rough(value: Self) -> $key {
                $int::key(value)
            }

            fn refined(rough: $key) -> $key {
                rough
            }

            fn upper(value: Self) -> $key {
                $int::key(value)
            }

            fn refined_upper(rough: $key) -> $key {
                rough
            }

            fn single(value: Self) -> f32 {
                f32::cast_from(value)
            }

            fn midpoint(low: $key, high: $key, #[comptime] _largest: bool) -> $key {
                low + ((high - low) >> 1)
            }

            fn interpolate(low: $key, high: $key, ratio: f32, #[comptime] _largest: bool) -> $key {
                low + $key::cast_from(f32::cast_from(high - low) * ratio)
            }

            fn is_finite(_key: $key) -> bool {
                true.runtime()
            }

            fn zero_key() -> $key {
                $sign.runtime()
            }

            fn within(low: $key, high: $key, least: $key, greatest: $key, eps: f32) -> bool {
                let width = f32::cast_from(high - low);
                let least = f32::cast_from($int::reinterpret(least ^ $sign));
                let greatest = f32::cast_from($int::reinterpret(greatest ^ $sign));
                width <= eps * max(least.abs(), greatest.abs())
            }
        }
    };
}

integer_element!(i32, u32, 0x8000_0000u32);
integer_element!(u32, u32, 0u32);
// A key, not a dtype.
integer_element!(u64, u64, 0u64);
integer_element!(i64, u64, 0x8000_0000_0000_0000u64);

/// A short key.
#[cube]
impl Element for i16 {
    type Key = u32;

    fn key(value: Self) -> u32 {
        u32::cast_from(u16::reinterpret(value))
    }

    fn rough(value: Self) -> u32 {
        i16::key(value)
    }

    fn refined(rough: u32) -> u32 {
        rough
    }

    fn upper(value: Self) -> u32 {
        i16::key(value)
    }

    fn refined_upper(rough: u32) -> u32 {
        rough
    }

    fn single(value: Self) -> f32 {
        f32::cast_from(i16::key(value))
    }

    fn midpoint(low: u32, high: u32, #[comptime] _largest: bool) -> u32 {
        low + ((high - low) >> 1)
    }

    fn interpolate(low: u32, high: u32, ratio: f32, #[comptime] _largest: bool) -> u32 {
        low + u32::cast_from(f32::cast_from(high - low) * ratio)
    }

    fn is_finite(_key: u32) -> bool {
        true.runtime()
    }

    fn zero_key() -> u32 {
        0u32.runtime()
    }

    fn within(low: u32, high: u32, _least: u32, greatest: u32, eps: f32) -> bool {
        f32::cast_from(high - low) <= eps * f32::cast_from(greatest)
    }
}
