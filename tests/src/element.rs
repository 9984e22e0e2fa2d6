//! Element types under test, and threshold arithmetic.

use std::cmp::Ordering;
use std::fmt::Debug;

use burn::tensor::kind::Ordered;
use burn::tensor::{Float, Int};
use cubecl::ir::{ElemType, FloatKind, IntKind, UIntKind};
use half::{bf16, f16};

/// An element type that operations select from.
pub trait Element: bytemuck::Pod + Debug + Send + Sync + burn::tensor::Element {
    /// Threshold type: f32 for f32, f16 and bf16; f64 for f64; i128 for integers.
    type Wide: Wide;
    type Kind: Ordered;
    /// Name in case names.
    const NAME: &'static str;
    const FLOAT: bool;
    fn elem_type() -> ElemType;
    /// Exact conversion to the threshold type.
    fn wide(self) -> Self::Wide;
    /// Nearest value, saturating.
    fn of(x: f64) -> Self;
    /// Value of the low bits of `bits`.
    fn of_bits(bits: u64) -> Self;
    /// Bits, zero-extended.
    fn bits(self) -> u64;
    /// Bits of 1.
    const ONE: u64;
    /// Mask of the mantissa (floats) or the value bits (integers).
    const MANTISSA: u64;
    /// Mask of the sign bit.
    const SIGN: u64;

    /// IEEE order with −0 = +0; all NaN are equal and greatest.
    fn order(self, other: Self) -> Ordering {
        self.wide().order(other.wide())
    }

    fn wide_f64(self) -> f64 {
        self.wide().to_f64()
    }

    /// Equal bits, or both NaN: payloads are unspecified.
    fn same(self, other: Self) -> bool {
        self.bits() == other.bits() || (self.wide().is_nan() && other.wide().is_nan())
    }
}

pub trait Wide: Copy + Debug {
    /// IEEE order with −0 = +0; all NaN are equal and greatest.
    fn order(self, other: Self) -> Ordering;
    fn is_nan(self) -> bool;
    fn is_finite(self) -> bool;
    fn zero() -> Self;
    /// Subnormals become zero.
    fn flushed(self) -> Self {
        self
    }
    /// Midpoint; integers round toward `self`, the worse end.
    fn middle(self, better: Self) -> Self;
    /// Whether the interval's width is at most `eps` times the greater magnitude of `extremes`.
    fn is_narrow(self, other: Self, eps: f32, extremes: (Self, Self)) -> bool;
    fn to_f64(self) -> f64;
}

macro_rules! float_wide {
    ($type:ty) => {
        impl Wide for $type {
            fn flushed(self) -> Self {
                if self.abs() < <$type>::MIN_POSITIVE { 0.0 } else { self }
            }
            fn order(self, other: Self) -> Ordering {
                match (self.is_nan(), other.is_nan()) {
                    (false, false) => self.partial_cmp(&other).expect("neither is NaN"),
                    (left, right) => left.cmp(&right),
                }
            }
            fn is_nan(self) -> bool {
                <$type>::is_nan(self)
            }
            fn is_finite(self) -> bool {
                <$type>::is_finite(self)
            }
            fn zero() -> Self {
                0.0
            }
            fn middle(self, better: Self) -> Self {
                let (a, b) = (Wide::flushed(self), Wide::flushed(better));
                let sum = a + b;
                Wide::flushed(if sum.is_infinite() { a * 0.5 + b * 0.5 } else { sum * 0.5 })
            }
            fn is_narrow(self, other: Self, eps: f32, extremes: (Self, Self)) -> bool {
                let scale = Wide::flushed(extremes.0).abs().max(Wide::flushed(extremes.1).abs());
                Wide::flushed((Wide::flushed(other) - Wide::flushed(self)).abs())
                    <= Wide::flushed(eps as $type * scale)
            }
            fn to_f64(self) -> f64 {
                self as f64
            }
        }
    };
}
float_wide!(f32);
float_wide!(f64);

impl Wide for i128 {
    fn order(self, other: Self) -> Ordering {
        self.cmp(&other)
    }
    fn is_nan(self) -> bool {
        false
    }
    fn is_finite(self) -> bool {
        true
    }
    fn zero() -> Self {
        0
    }
    fn middle(self, better: Self) -> Self {
        let sum = self + better;
        let floor = sum.div_euclid(2);
        if self <= better { floor } else { sum - floor }
    }
    fn is_narrow(self, other: Self, eps: f32, extremes: (Self, Self)) -> bool {
        // In f32, as the method documents.
        let magnitude = (extremes.0.abs() as f32).max(extremes.1.abs() as f32);
        (other - self).abs() as f32 <= eps * magnitude
    }
    fn to_f64(self) -> f64 {
        self as f64
    }
}

macro_rules! element {
    (
        $type:ty, $kind:ty, $wide:ty, $bits:ty, $float:expr, $elem:expr, $of:expr, $one:expr,
        $mantissa:expr
    ) => {
        impl Element for $type {
            type Wide = $wide;
            type Kind = $kind;
            const NAME: &'static str = stringify!($type);
            const FLOAT: bool = $float;
            const ONE: u64 = $one;
            const MANTISSA: u64 = $mantissa;
            const SIGN: u64 = 1 << (<$bits>::BITS - 1);
            fn elem_type() -> ElemType {
                $elem
            }
            fn wide(self) -> $wide {
                <$wide>::from(self)
            }
            fn of(x: f64) -> Self {
                $of(x)
            }
            fn of_bits(bits: u64) -> Self {
                bytemuck::cast(bits as $bits)
            }
            fn bits(self) -> u64 {
                u64::from(bytemuck::cast::<Self, $bits>(self))
            }
        }
    };
}
element!(
    f32,
    Float,
    f32,
    u32,
    true,
    ElemType::Float(FloatKind::F32),
    |x| x as f32,
    0x3F80_0000,
    0x7F_FFFF
);
element!(
    f64,
    Float,
    f64,
    u64,
    true,
    ElemType::Float(FloatKind::F64),
    |x| x,
    0x3FF0_0000_0000_0000,
    0xF_FFFF_FFFF_FFFF
);
element!(f16, Float, f32, u16, true, ElemType::Float(FloatKind::F16), f16::from_f64, 0x3C00, 0x3FF);
element!(
    bf16,
    Float,
    f32,
    u16,
    true,
    ElemType::Float(FloatKind::BF16),
    bf16::from_f64,
    0x3F80,
    0x7F
);
element!(i32, Int, i128, u32, false, ElemType::Int(IntKind::I32), |x| x as i32, 1, 0x7FFF_FFFF);
element!(u32, Int, i128, u32, false, ElemType::UInt(UIntKind::U32), |x| x as u32, 1, 0x7FFF_FFFF);
element!(i64, Int, i128, u64, false, ElemType::Int(IntKind::I64), |x| x as i64, 1, i64::MAX as u64);

/// The element types as values, for random requests and command lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Dtype {
    F32,
    F16,
    Bf16,
    F64,
    I32,
    U32,
    I64,
}

impl Dtype {
    pub const ALL: [Self; 7] =
        [Self::F32, Self::F16, Self::Bf16, Self::F64, Self::I32, Self::U32, Self::I64];
}

/// Evaluates an expression with `$element` as the type of a [`Dtype`](crate::element::Dtype).
#[macro_export]
macro_rules! with_dtype {
    ($dtype:expr, $element:ident => $body:expr) => {{
        use $crate::element::Dtype;
        match $dtype {
            Dtype::F32 => {
                type $element = f32;
                $body
            }
            Dtype::F16 => {
                type $element = half::f16;
                $body
            }
            Dtype::Bf16 => {
                type $element = half::bf16;
                $body
            }
            Dtype::F64 => {
                type $element = f64;
                $body
            }
            Dtype::I32 => {
                type $element = i32;
                $body
            }
            Dtype::U32 => {
                type $element = u32;
                $body
            }
            Dtype::I64 => {
                type $element = i64;
                $body
            }
        }
    }};
}
