//! [`Element`]: a dtype that can be selected from.

use cubecl::prelude::*;

/// Keys of infinity and of every NaN, for floats of at most 32 bits. `MINUS_INF` is subtracted so
/// that the key of -inf is 0.
pub(crate) const PLUS_INF: u32 = 0xff00_0001;
pub(crate) const NAN: u32 = PLUS_INF + 1;
pub(crate) const MINUS_INF: u32 = 0x007f_ffff;

/// A dtype that can be selected from.
///
/// To add one, implement this trait and add a line to
/// [`with_element!`](crate::topk::key::with_element).
#[cube]
pub trait Element: Numeric {
    /// Unsigned key in the order of the values: `u32`, or `u64` for 64-bit dtypes.
    type Key: Int + PlaneNumeric;

    /// Key of a value.
    fn key(value: Self) -> Self::Key;

    /// A cheaper key in the same order, except that it tells apart -0 from +0 and one NaN from
    /// another. A maximum over many values takes fewer instructions on rough keys.
    fn rough(value: Self) -> Self::Key;

    /// Key of a rough key.
    fn refined(rough: Self::Key) -> Self::Key;

    /// A rough key whose upper 16 bits alone identify a 16-bit float. For other dtypes, the rough
    /// key.
    fn upper(value: Self) -> Self::Key;

    /// Key of a [`upper`](Element::upper) key. Its upper half identifies a 16-bit float, except
    /// NaN: see [`short_key`].
    fn refined_upper(rough: Self::Key) -> Self::Key;

    /// The value as f32, exact for floats of at most 32 bits.
    fn single(value: Self) -> f32;

    /// Key of the midpoint of two finite values given by ordered keys, in the arithmetic of the
    /// dtype. That is f32 for 16-bit floats, and exact for integers, rounded to the less wanted
    /// end.
    fn midpoint(low: Self::Key, high: Self::Key, #[comptime] largest: bool) -> Self::Key;

    /// A key at about `ratio` of the way between two finite values given by ordered keys. Any key
    /// for values that are not finite.
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

    /// Whether `high - low <= eps * max(|least|, |greatest|)`, for values given by unordered keys.
    fn within(
        low: Self::Key,
        high: Self::Key,
        least: Self::Key,
        greatest: Self::Key,
        eps: f32,
    ) -> bool;
}

/// Key in the order wanted: inverted if the least elements are wanted.
#[cube]
pub fn ordered_key<E: Element>(value: E, #[comptime] largest: bool) -> E::Key {
    let key = E::key(value);
    if largest { key } else { !key }
}

/// Rough key in the order wanted; `short` takes the upper key instead.
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

/// Ordered key of an ordered rough key; `short` if that is an upper key.
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

/// Ordered 16-bit key of a 16-bit float from its upper key, whose lower half is 0 or 1, or 2 for
/// NaN.
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
