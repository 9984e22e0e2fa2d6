//! The dtypes that can be selected from, and their order-preserving keys.
//!
//! Every routine compares unsigned integer keys, never floats, so that one search serves all dtypes
//! and NaN, ±inf and ±0 follow from the map: `-0` and `+0` share a key, all NaN share the greatest
//! key, and `-inf` of a float maps to key 0.

mod floats;
mod integers;

use cubecl::prelude::*;

/// The keys of infinity and of every NaN, and what is subtracted to make that of -inf 0, of floats of at most 32 bits.
pub(crate) const PLUS_INF: u32 = 0xff00_0001;
pub(crate) const NAN: u32 = PLUS_INF + 1;
pub(crate) const MINUS_INF: u32 = 0x007f_ffff;

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
