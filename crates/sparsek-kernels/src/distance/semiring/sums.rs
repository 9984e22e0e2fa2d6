//! HEAD
#![allow(
    missing_docs,
    reason = "the derives write types of their own beside these"
)]

use cubecl::prelude::*;

/// What two rows add up to.
#[derive(CubeType, Clone, Copy, Debug)]
#[expand(derive(Clone, Copy))]
pub struct Sums<S: CubePrimitive> {
    /// [`Semiring::product`](crate::distance::Semiring::product) over the columns of both.
    pub total: S,
    /// [`Semiring::other`](crate::distance::Semiring::other) over the columns of both.
    pub other: S,
    /// [`Semiring::norm`](crate::distance::Semiring::norm) of the one row.
    pub x: S,
    /// [`Semiring::norm`](crate::distance::Semiring::norm) of the other.
    pub y: S,
    /// [`Semiring::second`](crate::distance::Semiring::second) of the one row.
    pub second_x: S,
    /// [`Semiring::second`](crate::distance::Semiring::second) of the other.
    pub second_y: S,
    /// Columns of the matrices.
    pub cols: S,
    /// The parameter of the distance, if it has one.
    pub p: S,
}

/// The parameter of a distance as the sum of two numbers, so that f64 has at least 48 bits of it.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub struct Parameter {
    high: f32,
    low: f32,
}

#[cube]
impl Parameter {
    pub(crate) fn value<S: Float>(&self) -> S {
        S::cast_from(self.high) + S::cast_from(self.low)
    }
}

impl Parameter {
    /// That of a distance.
    pub fn of(p: f64) -> Self {
        let high = p as f32;
        let low = (p - f64::from(high)) as f32;
        Self { high, low }
    }

    pub(in crate::distance) fn launch(self) -> ParameterLaunch {
        ParameterLaunch::new(self.high, self.low)
    }
}
