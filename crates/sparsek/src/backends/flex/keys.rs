//! Order-preserving keys of the dtypes that can be selected from, as in the kernels: `-0 = +0`, all
//! NaN equal and greatest.

use burn::tensor::{bf16, f16};

use super::count::{Guess, Ordered, all_ordered};

/// A dtype that can be selected from.
pub(super) trait Key: Copy + Send + Sync + Sized {
    /// Unsigned, in the order of the values.
    type Bits: Bits;

    /// What compares without a key.
    type Direct: Ordered;

    /// Zero.
    const ZERO: Self;

    /// The row without keys, where it has no NaN.
    fn direct(_row: &[Self]) -> Option<&[Self::Direct]> {
        None
    }

    /// A guess without keys.
    fn direct_guess(_guess: &Guess<Self::Bits>) -> Option<Guess<Self::Direct>> {
        None
    }

    /// Key of a value.
    fn key(self) -> Self::Bits;

    /// Ordered key of the value halfway between two finite ones given by ordered keys, rounded as the
    /// dtype rounds (f32 for 16-bit floats; to the less wanted end for integers). Subnormals count as
    /// zero.
    fn midpoint(low: Self::Bits, high: Self::Bits, largest: bool) -> Self::Bits;

    /// Whether the key belongs to a finite value.
    fn is_finite(key: Self::Bits) -> bool;

    /// Whether `|high - low| <= eps * max(|ends|)`, all given by unordered keys.
    fn within(low: Self::Bits, high: Self::Bits, ends: (Self::Bits, Self::Bits), eps: f32) -> bool;
}

/// An unsigned key.
pub(super) trait Bits: Ordered + Ord + Send + Sync + std::ops::Not<Output = Self> {}

impl Bits for u32 {}
impl Bits for u64 {}

macro_rules! float_key {
    ($float:ident, $bits:ident, $signed:ident) => {
        impl Key for $float {
            type Bits = $bits;
            type Direct = Self;
            const ZERO: Self = 0.0;

            fn direct(row: &[Self]) -> Option<&[Self]> {
                all_ordered(row).then_some(row)
            }

            fn direct_guess(guess: &Guess<$bits>) -> Option<Guess<Self>> {
                let found = value(guess.value);
                let spacing = value(guess.value.moved(guess.spacing)).above(found);
                (spacing > 0.0 && spacing.is_finite()).then_some(Guess {
                    value: found,
                    spacing,
                })
            }

            fn key(self) -> $bits {
                const SIGN: $bits = 1 << ($bits::BITS - 1);
                // Signed, and choices without branches: so it runs on several values at once.
                let bits = self.to_bits();
                let magnitude = (bits & !SIGN) as $signed;
                let fill = ((bits as $signed) >> ($bits::BITS - 1)) as $bits | SIGN;
                let key = if magnitude == 0 { SIGN } else { bits ^ fill };
                if magnitude > $float::INFINITY.to_bits() as $signed {
                    $bits::MAX
                } else {
                    key
                }
            }

            fn midpoint(low: $bits, high: $bits, largest: bool) -> $bits {
                let flush = |x: $float| {
                    if x.abs() < $float::MIN_POSITIVE {
                        0.0
                    } else {
                        x
                    }
                };
                let ordered = |key: $bits| if largest { key } else { !key };
                let (low, high) = (flush(value(ordered(low))), flush(value(ordered(high))));
                let sum = low + high;
                let middle = if sum.is_finite() {
                    sum * 0.5
                } else {
                    low * 0.5 + high * 0.5
                };
                ordered(flush(middle).key())
            }

            fn is_finite(key: $bits) -> bool {
                key > $float::NEG_INFINITY.key() && key < $float::INFINITY.key()
            }

            fn within(low: $bits, high: $bits, ends: ($bits, $bits), eps: f32) -> bool {
                let scale = flush(value(ends.0)).abs().max(flush(value(ends.1)).abs());
                let width = (flush(value(high)) - flush(value(low))).abs();
                flush(width) <= flush($float::from(eps) * scale)
            }
        }

        /// Zero for a subnormal.
        fn flush(x: $float) -> $float {
            if x.abs() < $float::MIN_POSITIVE {
                0.0
            } else {
                x
            }
        }

        fn value(key: $bits) -> $float {
            const SIGN: $bits = 1 << ($bits::BITS - 1);
            $float::from_bits(if key & SIGN == 0 { !key } else { key ^ SIGN })
        }
    };
}

mod single {
    use super::{Guess, Key, Ordered, all_ordered};
    float_key!(f32, u32, i32);
}

mod double {
    use super::{Guess, Key, Ordered, all_ordered};
    float_key!(f64, u64, i64);
}

macro_rules! half_key {
    ($half:ident) => {
        impl Key for $half {
            type Bits = u32;
            type Direct = u32;
            const ZERO: Self = $half::from_bits(0);

            fn key(self) -> u32 {
                self.to_f32().key()
            }
            fn midpoint(low: u32, high: u32, largest: bool) -> u32 {
                <f32 as Key>::midpoint(low, high, largest)
            }
            fn is_finite(key: u32) -> bool {
                <f32 as Key>::is_finite(key)
            }
            fn within(low: u32, high: u32, ends: (u32, u32), eps: f32) -> bool {
                <f32 as Key>::within(low, high, ends, eps)
            }
        }
    };
}

half_key!(f16);
half_key!(bf16);

macro_rules! integer_key {
    ($int:ident, $bits:ident, $sign:expr) => {
        impl Key for $int {
            type Bits = $bits;
            type Direct = $bits;
            const ZERO: Self = 0;

            fn key(self) -> $bits {
                self as $bits ^ $sign
            }
            fn midpoint(low: $bits, high: $bits, _: bool) -> $bits {
                low + (high - low) / 2
            }
            fn is_finite(_: $bits) -> bool {
                true
            }
            fn within(low: $bits, high: $bits, ends: ($bits, $bits), eps: f32) -> bool {
                let size = |key: $bits| ((key ^ $sign) as $int as f32).abs();
                high.abs_diff(low) as f32 <= eps * size(ends.0).max(size(ends.1))
            }
        }
    };
}

integer_key!(i32, u32, 1 << 31);
integer_key!(u32, u32, 0);
integer_key!(i64, u64, 1 << 63);
