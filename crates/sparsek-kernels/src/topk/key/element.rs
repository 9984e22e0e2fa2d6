//! Selectable dtypes.

use cubecl::prelude::*;

/// Keys of infinity and NaN, and the offset that gives -inf key 0.
pub(crate) const PLUS_INF: u32 = 0xff00_0001;
pub(crate) const NAN: u32 = PLUS_INF + 1;
pub(crate) const MINUS_INF: u32 = 0x007f_ffff;

/// A dtype to select from; also listed in [`with_element!`](crate::topk::key::with_element).
#[cube]
pub trait Element: Numeric {
    /// `u32`, or `u64` for 64-bit dtypes.
    type Key: Int + PlaneNumeric;

    /// In the order of the values.
    fn key(value: Self) -> Self::Key;

    /// Cheaper, but -0 and +0, and all NaN, differ.
    fn rough(value: Self) -> Self::Key;

    fn refined(rough: Self::Key) -> Self::Key;

    /// A rough key whose upper 16 bits identify a 16-bit float.
    fn upper(value: Self) -> Self::Key;

    /// Still identified by 16 bits, except NaN: see [`short_key`].
    fn refined_upper(rough: Self::Key) -> Self::Key;

    /// Exact for floats of at most 32 bits.
    fn single(value: Self) -> f32;

    /// From ordered keys of finite values, in the arithmetic of the dtype (f32 for 16-bit floats);
    /// integers round to the less wanted end.
    fn midpoint(low: Self::Key, high: Self::Key, #[comptime] largest: bool) -> Self::Key;

    /// About `ratio` between ordered keys of finite values.
    fn interpolate(
        low: Self::Key,
        high: Self::Key,
        ratio: f32,
        #[comptime] largest: bool,
    ) -> Self::Key;

    fn is_finite(key: Self::Key) -> bool;

    fn zero_key() -> Self::Key;

    /// `high - low <= eps * max(|least|, |greatest|)`, from unordered keys.
    fn within(
        low: Self::Key,
        high: Self::Key,
        least: Self::Key,
        greatest: Self::Key,
        eps: f32,
    ) -> bool;
}

/// Inverted if the least are wanted.
#[cube]
pub fn ordered_key<E: Element>(value: E, #[comptime] largest: bool) -> E::Key {
    let key = E::key(value);
    if largest { key } else { !key }
}

#[cube]
pub fn ordered_rough<E: Element>(
    value: E,
    #[comptime] short: bool,
    #[comptime] largest: bool,
) -> E::Key {
    let rough = if short { E::upper(value) } else { E::rough(value) };
    if largest { rough } else { !rough }
}

#[cube]
pub fn ordered_refined<E: Element>(
    rough: E::Key,
    #[comptime] short: bool,
    #[comptime] largest: bool,
) -> E::Key {
    let rough = if largest { rough } else { !rough };
    let key = if short { E::refined_upper(rough) } else { E::refined(rough) };
    if largest { key } else { !key }
}

/// 16 bits of an upper key, whose lower half is 0, 1 or, for NaN, 2.
#[cube]
pub fn short_word<K: Int>(upper: K, #[comptime] largest: bool) -> u32 {
    let key = u32::cast_from(upper);
    let key = if largest { key } else { !key };
    let short = (key + 0xfffe) >> 16;
    if largest { short } else { 0xffff - short }
}

#[cube]
pub fn short_key<K: Int>(upper: K, #[comptime] largest: bool) -> i16 {
    i16::reinterpret(u16::cast_from(short_word::<K>(upper, largest)))
}

#[cube]
pub fn ordered_is_finite<E: Element>(key: E::Key, #[comptime] largest: bool) -> bool {
    if largest { E::is_finite(key) } else { E::is_finite(!key) }
}

#[cube]
pub fn ordered_zero<E: Element>(#[comptime] largest: bool) -> E::Key {
    if largest { E::zero_key() } else { !E::zero_key() }
}

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
