//! Sums of a row's entries, and those of a plane's units in one.

use cubecl::prelude::*;

use crate::distance::{pair::joined, semiring::Semiring};

/// Where sums begin.
#[cube]
pub(super) fn identity<M: Semiring, S: Float>() -> S {
    if comptime!(M::NEEDS.union) {
        S::new(0.0)
    } else {
        M::identity::<S>()
    }
}

/// Two sums in one.
#[cube]
pub(super) fn join<M: Semiring, S: Float>(a: S, b: S) -> S {
    if comptime!(M::NEEDS.union) {
        joined::<M, S>(a, b)
    } else {
        M::reduce::<S>(a, b)
    }
}

/// What a column adds.
#[cube]
pub(super) fn term<M: Semiring, S: Float>(a: S, b: S, p: S) -> S {
    if comptime!(M::NEEDS.union) {
        M::direct::<S>(a, b, p)
    } else {
        M::product::<S>(a, b, p)
    }
}

/// The sums of some entries of one row.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Part<S: Float> {
    pub total: S,
    pub other: S,
}

#[cube]
impl<S: Float> Part<S> {
    /// With what comes after.
    pub fn joined<M: Semiring>(&self, with: &Part<S>) -> Part<S> {
        Part::<S> {
            total: join::<M, S>(self.total, with.total),
            other: self.other + with.other,
        }
    }

    /// The sums of all units of the plane.
    pub fn of_plane<M: Semiring>(&self, #[comptime] plane: u32) -> Part<S> {
        let mut total = self.total;
        let mut other = self.other;
        #[unroll]
        for step in 0..comptime!(plane.ilog2()) {
            let distance = comptime!(1u32 << step);
            total = join::<M, S>(total, plane_shuffle_xor(total, distance));
            if comptime!(M::NEEDS.other) {
                other += plane_shuffle_xor(other, distance);
            }
        }
        Part::<S> { total, other }
    }

    /// The sums of the units of the same row, up to this one.
    pub fn running<M: Semiring>(&self, row: i32, #[comptime] plane: u32) -> Part<S> {
        let mut total = self.total;
        let mut other = self.other;
        #[unroll]
        for step in 0..comptime!(plane.ilog2()) {
            let distance = comptime!(1u32 << step);
            let before = plane_shuffle_up(row, distance);
            // No row where no unit is so far before.
            let same = select(UNIT_POS_X >= distance, before, row - 1) == row;
            let sum = plane_shuffle_up(total, distance);
            total = select(same, join::<M, S>(sum, total), total);
            if comptime!(M::NEEDS.other) {
                let sum = plane_shuffle_up(other, distance);
                other += select(same, sum, S::new(0.0));
            }
        }
        Part::<S> { total, other }
    }
}
