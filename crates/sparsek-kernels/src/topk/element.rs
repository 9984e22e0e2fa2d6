//! The dtypes that can be selected from, and their order-preserving keys.
//!
//! Every routine compares unsigned integer keys, never floats, so that one search serves all dtypes
//! and NaN, ±inf and ±0 follow from the map: `-0` and `+0` share a key, all NaN share the greatest
//! key, and `-inf` of a float maps to key 0.

use cubecl::prelude::*;
use half::f16;

/// A dtype that can be selected from. Adding one is one implementation of this trait and one line
/// in [`crate::topk::with_element!`].
#[cube]
pub trait Element: Numeric {
    /// Unsigned key with the order of the values: `u32`, or `u64` for 64-bit dtypes.
    type Key: Int + PlaneNumeric;

    /// Key of a value.
    fn key(value: Self) -> Self::Key;

    /// What a key follows from: in its order, but for zeros and NaN, which it tells apart by their bits. Of many values the greatest takes
    /// fewer instructions.
    fn rough(value: Self) -> Self::Key;

    /// The key that follows from a rough one.
    fn refined(rough: Self::Key) -> Self::Key;

    /// A rough key in whose upper half a half is distinct; that of other dtypes.
    fn upper(value: Self) -> Self::Key;

    /// The key that follows from this, in whose upper half a half is distinct, but for NaN: [`short_key`].
    fn refined_upper(rough: Self::Key) -> Self::Key;

    /// The value as f32, exact for floats of at most 32 bits.
    fn single(value: Self) -> f32;

    /// Key of the value halfway between two finite values given by ordered keys, in the arithmetic of
    /// the dtype (f32 for 16-bit floats; exact for integers, rounded to the less wanted end).
    fn midpoint(low: Self::Key, high: Self::Key, #[comptime] largest: bool) -> Self::Key;

    /// A key at about `ratio` of the way from one value to another, both given by ordered keys: a
    /// guess, for finite values between them, and anything at all for others.
    fn interpolate(
        low: Self::Key,
        high: Self::Key,
        ratio: f32,
        #[comptime] largest: bool,
    ) -> Self::Key;

    /// Whether the key belongs to a finite value.
    fn is_finite(key: Self::Key) -> bool;

    /// Key of zero.
    fn zero_key() -> Self::Key;

    /// Whether `high - low <= eps * max(|least|, |greatest|)`, all given by unordered keys.
    fn within(
        low: Self::Key,
        high: Self::Key,
        least: Self::Key,
        greatest: Self::Key,
        eps: f32,
    ) -> bool;
}

/// Whether the dtype orders in the direction asked for; a key is inverted when the least are wanted.
#[cube]
pub fn ordered_key<E: Element>(value: E, #[comptime] largest: bool) -> E::Key {
    let key = E::key(value);
    if largest { key } else { !key }
}

/// The rough key of a value, for which a short key may be told, ordered as asked for.
#[cube]
pub fn ordered_rough<E: Element>(
    value: E,
    #[comptime] short: bool,
    #[comptime] largest: bool,
) -> E::Key {
    let rough = if short {
        E::upper(value)
    } else {
        E::rough(value)
    };
    if largest { rough } else { !rough }
}

/// The ordered key that follows from an ordered rough one, for which a short key may be told.
#[cube]
pub fn ordered_refined<E: Element>(
    rough: E::Key,
    #[comptime] short: bool,
    #[comptime] largest: bool,
) -> E::Key {
    let rough = if largest { rough } else { !rough };
    let key = if short {
        E::refined_upper(rough)
    } else {
        E::refined(rough)
    };
    if largest { key } else { !key }
}

/// A half's ordered key of 16 bits from its upper one, whose lower half is 1 or 0, or 2 for NaN.
#[cube]
pub fn short_key<K: Int>(upper: K, #[comptime] largest: bool) -> i16 {
    let key = u32::cast_from(upper);
    let key = if largest { key } else { !key };
    let short = (key + 0xfffe) >> 16;
    let short = if largest { short } else { 0xffff - short };
    i16::reinterpret(u16::cast_from(short))
}

/// [`Element::is_finite`] of an ordered key.
#[cube]
pub fn ordered_is_finite<E: Element>(key: E::Key, #[comptime] largest: bool) -> bool {
    if largest {
        E::is_finite(key)
    } else {
        E::is_finite(!key)
    }
}

/// Ordered key of zero.
#[cube]
pub fn ordered_zero<E: Element>(#[comptime] largest: bool) -> E::Key {
    if largest {
        E::zero_key()
    } else {
        !E::zero_key()
    }
}

/// [`Element::within`] of ordered keys.
#[cube]
pub fn ordered_within<E: Element>(
    low: E::Key,
    high: E::Key,
    least: E::Key,
    greatest: E::Key,
    eps: f32,
    #[comptime] largest: bool,
) -> bool {
    if largest {
        E::within(low, high, least, greatest, eps)
    } else {
        E::within(!high, !low, !greatest, !least, eps)
    }
}

macro_rules! float_element {
    ($float:ident, $bits:ident, $signed:ident, shift: $shift:literal, sign: $sign:literal,
     minus_inf: $minus_inf:literal, plus_inf: $plus_inf:literal, nan: $nan:literal,
     zero: $zero:literal, normal: $normal:literal, large: $large:literal, exponent: $exponent:literal) => {
        #[cube]
        impl Element for $float {
            type Key = $bits;

            fn key(value: Self) -> $bits {
                $float::refined($float::rough(value))
            }

            fn rough(value: Self) -> $bits {
                let bits = $bits::reinterpret(value);
                let fill = $bits::reinterpret($signed::reinterpret(bits) >> $shift);
                // Of NaN with a sign it turns from the least to the greatest.
                (bits ^ (fill | $sign)) - $minus_inf
            }

            fn refined(rough: $bits) -> $bits {
                min(select(rough == $zero - 1, $zero, rough), $nan)
            }

            fn upper(value: Self) -> $bits {
                $float::rough(value)
            }

            fn refined_upper(rough: $bits) -> $bits {
                $float::refined(rough)
            }

            fn single(value: Self) -> f32 {
                f32::cast_from(value)
            }

            fn midpoint(low: $bits, high: $bits, #[comptime] largest: bool) -> $bits {
                let low = normal_of(if largest { low } else { !low });
                let high = normal_of(if largest { high } else { !high });
                // Where the sum may overflow the ends are halved first, to the same result; on their
                // bits, because shader compilers turn a/2 + b/2 into (a + b)/2.
                let large = max(low.abs(), high.abs()) >= $large;
                let middle = select(large, halved(low) + halved(high), (low + high) * 0.5);
                let key = $float::key(flushed(middle));
                if largest { key } else { !key }
            }

            fn interpolate(
                low: $bits,
                high: $bits,
                ratio: f32,
                #[comptime] largest: bool,
            ) -> $bits {
                let low = float_of(if largest { low } else { !low });
                let high = float_of(if largest { high } else { !high });
                let guess = low + (high - low) * $float::cast_from(ratio);
                let key = $float::rough(guess);
                if largest { key } else { !key }
            }

            fn is_finite(key: $bits) -> bool {
                key > 0 && key < $plus_inf
            }

            fn zero_key() -> $bits {
                $zero.runtime()
            }

            fn within(low: $bits, high: $bits, least: $bits, greatest: $bits, eps: f32) -> bool {
                let scale = max(normal_of(least).abs(), normal_of(greatest).abs());
                let bound = flushed($float::cast_from(eps) * scale);
                flushed(normal_of(high) - normal_of(low)) <= bound
            }
        }

        /// Zero for a subnormal: runtimes that flush them agree with those that do not.
        #[cube]
        fn flushed(value: $float) -> $float {
            select(value.abs() < $normal, 0.0, value)
        }

        #[cube]
        fn normal_of(key: $bits) -> $float {
            flushed(float_of(key))
        }

        /// Half of a float, or zero where that would be subnormal.
        #[cube]
        fn halved(value: $float) -> $float {
            let bits = $bits::reinterpret(value);
            let normal = value.abs() * 0.5 >= $normal;
            $float::reinterpret(select(normal, bits - $exponent, 0))
        }

        #[cube]
        fn float_of(key: $bits) -> $float {
            let key = key + $minus_inf;
            let positive = key & $sign;
            $float::reinterpret(select(positive != 0, key ^ $sign, !key))
        }
    };
}

mod single {
    use super::*;
    float_element!(
        f32, u32, i32, shift: 31, sign: 0x8000_0000, minus_inf: 0x007f_ffff,
        plus_inf: 0xff00_0001, nan: 0xff00_0002, zero: 0x7f80_0001u32,
        normal: 1.175_494_4e-38, large: 8.507_059e37, exponent: 0x0080_0000
    );
}

mod double {
    use super::*;
    float_element!(
        f64, u64, i64, shift: 63, sign: 0x8000_0000_0000_0000, minus_inf: 0x000f_ffff_ffff_ffff,
        plus_inf: 0xffe0_0000_0000_0001, nan: 0xffe0_0000_0000_0002, zero: 0x7ff0_0000_0000_0001u64,
        normal: 2.225_073_858_507_201_4e-308, large: 4.494_232_837_155_79e307, exponent: 0x0010_0000_0000_0000
    );
}

macro_rules! half_element {
    ($half:ident, $value:ident => $single:expr) => {
        #[cube]
        impl Element for $half {
            type Key = u32;

            fn key($value: Self) -> u32 {
                <f32 as Element>::key($single)
            }

            fn rough($value: Self) -> u32 {
                <f32 as Element>::rough($single)
            }

            fn refined(rough: u32) -> u32 {
                <f32 as Element>::refined(rough)
            }

            fn upper(value: Self) -> u32 {
                half_rough(value)
            }

            fn refined_upper(rough: u32) -> u32 {
                half_refined(rough)
            }

            fn single($value: Self) -> f32 {
                $single
            }

            fn midpoint(low: u32, high: u32, #[comptime] largest: bool) -> u32 {
                <f32 as Element>::midpoint(low, high, largest)
            }

            fn interpolate(low: u32, high: u32, ratio: f32, #[comptime] largest: bool) -> u32 {
                <f32 as Element>::interpolate(low, high, ratio, largest)
            }

            fn is_finite(key: u32) -> bool {
                <f32 as Element>::is_finite(key)
            }

            fn zero_key() -> u32 {
                <f32 as Element>::zero_key()
            }

            fn within(low: u32, high: u32, least: u32, greatest: u32, eps: f32) -> bool {
                <f32 as Element>::within(low, high, least, greatest, eps)
            }
        }
    };
}

mod half16 {
    use super::*;

    /// The rough key of an f32 with the bits of an f16 as its upper half, if infinity and NaN were where they are in f16.
    #[cube]
    fn half_rough(value: f16) -> u32 {
        let bits = u32::cast_from(u16::reinterpret(value)) << 16;
        let fill = u32::reinterpret(i32::reinterpret(bits) >> 31);
        (bits ^ (fill | 0x8000_0000)) - 0x03ff_ffff
    }

    #[cube]
    fn half_refined(rough: u32) -> u32 {
        min(
            select(rough == 0x7c00_0000, 0x7c00_0001, rough),
            0xf800_0002,
        )
    }

    half_element!(f16, value => f32::cast_from(value));
}

mod brain16 {
    use super::*;

    #[cube]
    fn half_rough(value: u16) -> u32 {
        <u16 as Element>::rough(value)
    }

    #[cube]
    fn half_refined(rough: u32) -> u32 {
        <u16 as Element>::refined(rough)
    }

    // bfloat16 by its bits, the upper half of an f32: some runtimes convert it with flushed subnormals.
    half_element!(u16, value => f32::reinterpret(u32::cast_from(value) << 16));
}

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
// Keys themselves, not a dtype of the operation.
integer_element!(u64, u64, 0u64);
integer_element!(i64, u64, 0x8000_0000_0000_0000u64);

/// Short keys themselves, not a dtype of the operation.
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
