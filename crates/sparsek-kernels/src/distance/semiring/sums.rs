#![allow(missing_docs, reason = "the derives write types of their own beside these")]

#[cfg(feature = "kernels")]
use cubecl::prelude::*;

/// Replaces CubeCL's trait.
#[cfg(not(feature = "kernels"))]
pub trait CubePrimitive: Copy {}
#[cfg(not(feature = "kernels"))]
impl CubePrimitive for f32 {}
#[cfg(not(feature = "kernels"))]
impl CubePrimitive for f64 {}

/// Sums of x and y.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "kernels", derive(CubeType), expand(derive(Clone, Copy)))]
pub struct Sums<S: CubePrimitive> {
    /// [`Semiring::product`](crate::distance::Semiring::product), common columns.
    pub total: S,
    /// [`Semiring::other`](crate::distance::Semiring::other), common columns.
    pub other: S,
    /// [`Semiring::norm`](crate::distance::Semiring::norm) of x.
    pub x: S,
    /// [`Semiring::norm`](crate::distance::Semiring::norm) of y.
    pub y: S,
    /// [`Semiring::second`](crate::distance::Semiring::second) of x.
    pub second_x: S,
    /// [`Semiring::second`](crate::distance::Semiring::second) of y.
    pub second_y: S,
    /// Column count.
    pub cols: S,
    /// Parameter.
    pub p: S,
}

/// Two f32: ≥ 48 bits.
#[cfg(feature = "kernels")]
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub struct Parameter {
    high: f32,
    low: f32,
}

#[cfg(feature = "kernels")]
#[cube]
impl Parameter {
    pub(crate) fn value<S: Float>(&self) -> S {
        S::cast_from(self.high) + S::cast_from(self.low)
    }
}

#[cfg(feature = "kernels")]
impl Parameter {
    /// Splits a parameter.
    pub fn of(p: f64) -> Self {
        let high = p as f32;
        let low = (p - f64::from(high)) as f32;
        Self { high, low }
    }

    pub(in crate::distance) fn launch(self) -> ParameterLaunch {
        ParameterLaunch::new(self.high, self.low)
    }
}
