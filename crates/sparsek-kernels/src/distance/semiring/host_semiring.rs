use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

#[cfg(feature = "kernels")]
use cubecl::prelude::CubePrimitive;

#[cfg(not(feature = "kernels"))]
use super::sums::CubePrimitive;
use super::{algebra::Algebra, strategy::Strategy, sums::Sums};

/// Host floats, with kernels' method names.
pub trait Real:
    CubePrimitive
    + Copy
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + Send
    + Sync
{
    /// Converts.
    fn new(value: f32) -> Self;
    /// Absolute value.
    fn abs(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// ln(1 + self).
    fn log1p(self) -> Self;
    /// Power.
    fn powf(self, exponent: Self) -> Self;
}

macro_rules! real {
    ($($t:ty),*) => {$(
        impl Real for $t {
            fn new(value: f32) -> Self {
                value.into()
            }
            fn abs(self) -> Self {
                <$t>::abs(self)
            }
            fn sqrt(self) -> Self {
                <$t>::sqrt(self)
            }
            fn ln(self) -> Self {
                <$t>::ln(self)
            }
            fn log1p(self) -> Self {
                <$t>::ln_1p(self)
            }
            fn powf(self, exponent: Self) -> Self {
                <$t>::powf(self, exponent)
            }
        }
    )*};
}

real!(f32, f64);

/// [`Semiring`](crate::distance::Semiring) on the host.
pub trait HostSemiring: Send + Sync + 'static {
    /// [`Semiring::ALGEBRA`](crate::distance::Semiring::ALGEBRA).
    const ALGEBRA: Algebra;
    /// [`Semiring::STRATEGY`](crate::distance::Semiring::STRATEGY).
    const STRATEGY: Strategy = Strategy::PRODUCTS;
    /// [`Semiring::norm`](crate::distance::Semiring::norm).
    fn norm<S: Real>(_a: S, _p: S) -> S {
        S::new(0.0)
    }
    /// [`Semiring::prepare`](crate::distance::Semiring::prepare).
    fn prepare<S: Real>(a: S, _norm: S) -> S {
        a
    }
    /// [`Semiring::second`](crate::distance::Semiring::second).
    fn second<S: Real>(_a: S) -> S {
        S::new(0.0)
    }
    /// [`Semiring::identity`](crate::distance::Semiring::identity).
    fn identity<S: Real>() -> S {
        S::new(0.0)
    }
    /// [`Semiring::reduce`](crate::distance::Semiring::reduce).
    fn reduce<S: Real>(a: S, b: S) -> S {
        a + b
    }
    /// [`Semiring::product`](crate::distance::Semiring::product).
    fn product<S: Real>(a: S, b: S, _p: S) -> S {
        a * b
    }
    /// [`Semiring::other`](crate::distance::Semiring::other).
    fn other<S: Real>(_a: S, _b: S) -> S {
        S::new(0.0)
    }
    /// [`Semiring::direct`](crate::distance::Semiring::direct).
    fn direct<S: Real>(_a: S, _b: S, _p: S) -> S {
        S::new(0.0)
    }
    /// [`Semiring::dense_value`](crate::distance::Semiring::dense_value).
    fn dense_value<S: Real>(b: S) -> S {
        b
    }
    /// [`Semiring::absent`](crate::distance::Semiring::absent).
    fn absent<S: Real>() -> S {
        S::new(0.0)
    }
    /// [`Semiring::left_value`](crate::distance::Semiring::left_value).
    fn left_value<S: Real>(a: S) -> S {
        a
    }
    /// [`Semiring::contribution`](crate::distance::Semiring::contribution).
    fn contribution<S: Real>(_a: S, _left_value: S, _dense_value: S) -> S {
        S::new(0.0)
    }
    /// [`Semiring::core`](crate::distance::Semiring::core).
    fn core<S: Real>(sums: Sums<S>) -> S {
        sums.total
    }
    /// [`Semiring::scale`](crate::distance::Semiring::scale).
    fn scale<S: Real>(_sums: Sums<S>) -> S {
        S::new(0.0)
    }
    /// [`Semiring::finalize`](crate::distance::Semiring::finalize).
    fn finalize<S: Real>(core: S, _sums: Sums<S>) -> S {
        core
    }
}

/// Functions that formulas call.
pub mod host {
    pub use super::Real as Float;
    use super::Real;

    /// Selects a value.
    pub fn select<S>(condition: bool, then: S, otherwise: S) -> S {
        if condition { then } else { otherwise }
    }

    /// Divides; kernels err up to 3e-7.
    pub fn quotient<S: Real>(dividend: S, divisor: S) -> S {
        dividend / divisor
    }

    /// +∞.
    pub fn infinity<S: Real>() -> S {
        S::new(f32::INFINITY)
    }

    /// Greater.
    pub fn max<S: Real>(a: S, b: S) -> S {
        if a > b { a } else { b }
    }

    /// Lesser.
    pub fn min<S: Real>(a: S, b: S) -> S {
        if a < b { a } else { b }
    }
}
