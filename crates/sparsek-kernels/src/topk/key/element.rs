use cubecl::prelude::*;

/// `MINUS_INF` gives -inf key 0.
pub(crate) const PLUS_INF: u32 = 0xff00_0001;
pub(crate) const NAN: u32 = PLUS_INF + 1;
pub(crate) const MINUS_INF: u32 = 0x007f_ffff;

/// Selectable dtype, listed in [`with_element!`](crate::topk::key::with_element).
#[cube]
pub trait Element: Numeric {
    type Key: Int + PlaneNumeric;

    fn key(value: Self) -> Self::Key;

    /// Cheaper; zeros and NaN differ by bits.
    fn rough(value: Self) -> Self::Key;

    fn refined(rough: Self::Key) -> Self::Key;

    /// Rough key; its upper 16 bits identify a 16-bit float.
    fn upper(value: Self) -> Self::Key;

    fn refined_upper(rough: Self::Key) -> Self::Key;

    fn single(value: Self) -> f32;

    /// 16-bit floats compute in f32; integers round to the less wanted end.
    fn midpoint(low: Self::Key, high: Self::Key, #[comptime] largest: bool) -> Self::Key;

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

/// Inverted for the least.
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

/// 16 bits of an upper key; its lower half is 0, 1 or, for NaN, 2.
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
