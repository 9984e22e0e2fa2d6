use cubecl::prelude::*;

use super::element::Element;

macro_rules! integer_element {
    ($int:ident, $key:ident, $sign:literal) => {
        integer_element!(
            $int, $key, $sign, value => $key::reinterpret(value), key => $int::reinterpret(key)
        );
    };
    ($int:ident, $key:ident, $sign:literal,
     $value:ident => $bits:expr, $bare:ident => $number:expr) => {
        #[cube]
        impl Element for $int {
            type Key = $key;

            fn key($value: Self) -> $key {
                $bits ^ $sign
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
                let $bare = least ^ $sign;
                let least = f32::cast_from($number);
                let $bare = greatest ^ $sign;
                let greatest = f32::cast_from($number);
                width <= eps * max(least.abs(), greatest.abs())
            }
        }
    };
}

integer_element!(i32, u32, 0x8000_0000u32);
integer_element!(u32, u32, 0u32);
integer_element!(u64, u64, 0u64);
integer_element!(i64, u64, 0x8000_0000_0000_0000u64);

integer_element!(i16, u32, 0u32, value => u32::cast_from(u16::reinterpret(value)), key => key);
