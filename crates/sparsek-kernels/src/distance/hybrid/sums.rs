use cubecl::prelude::*;

use super::types::{HybridConfig, HybridShape, NONE, PlaneRange};
use crate::distance::semiring::{Semiring, combine};

#[cube]
pub(super) fn identity<M: Semiring, S: Float>() -> S {
    if comptime!(M::STRATEGY.union) { S::new(0.0) } else { M::identity::<S>() }
}

#[cube]
pub(super) fn join<M: Semiring, S: Float>(a: S, b: S) -> S {
    if comptime!(M::STRATEGY.union) { combine::<M, S>(a, b) } else { M::reduce::<S>(a, b) }
}

#[cube]
pub(super) fn term<M: Semiring, S: Float>(a: S, b: S, p: S) -> S {
    if comptime!(M::STRATEGY.union) { M::direct::<S>(a, b, p) } else { M::product::<S>(a, b, p) }
}

#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Part<S: Float> {
    pub total: S,
    pub other: S,
}

#[cube]
impl<S: Float> Part<S> {
    pub fn with<M: Semiring>(&self, next: &Part<S>) -> Part<S> {
        Part::<S> { total: join::<M, S>(self.total, next.total), other: self.other + next.other }
    }

    pub fn of_plane<M: Semiring>(&self, #[comptime] plane: u32) -> Part<S> {
        let mut total = self.total;
        let mut other = self.other;
        #[unroll]
        for step in 0..comptime!(plane.ilog2()) {
            let distance = comptime!(1u32 << step);
            total = join::<M, S>(total, plane_shuffle_xor(total, distance));
            if comptime!(M::ALGEBRA.other) {
                other += plane_shuffle_xor(other, distance);
            }
        }
        Part::<S> { total, other }
    }

    pub fn running<M: Semiring>(&self, row: i32, #[comptime] plane: u32) -> Part<S> {
        let mut total = self.total;
        let mut other = self.other;
        #[unroll]
        for step in 0..comptime!(plane.ilog2()) {
            let distance = comptime!(1u32 << step);
            let before = plane_shuffle_up(row, distance);
            // Lanes without predecessor compare with another row.
            let same = select(UNIT_POS_X >= distance, before, row - 1) == row;
            let sum = plane_shuffle_up(total, distance);
            total = select(same, join::<M, S>(sum, total), total);
            if comptime!(M::ALGEBRA.other) {
                let sum = plane_shuffle_up(other, distance);
                other += select(same, sum, S::new(0.0));
            }
        }
        Part::<S> { total, other }
    }
}

/// First and last rows wait for other planes.
#[derive(CubeType)]
pub(super) struct Sink<'a, S: Float> {
    totals: &'a mut [S],
    others: &'a mut [S],
    /// Totals and others: heads, then tails.
    waiting: Shared<[S]>,
    heads: Shared<[i32]>,
    head: i32,
    tail: i32,
    base: usize,
    step: usize,
    #[cube(comptime)]
    config: HybridConfig,
}

#[cube]
impl<'a, S: Float> Sink<'a, S> {
    pub fn new(
        totals: &'a mut [S],
        others: &'a mut [S],
        range: &PlaneRange,
        shape: &HybridShape,
        #[comptime] config: HybridConfig,
    ) -> Sink<'a, S> {
        let slots = comptime!(config.slots());
        let mut heads = Shared::<[i32]>::new_slice(slots);
        if UNIT_POS_X == 0 {
            heads[UNIT_POS_Y as usize] = range.head;
        }
        Sink::<'a, S> {
            totals,
            others,
            waiting: Shared::<[S]>::new_slice(comptime!(4 * slots)),
            heads,
            head: range.head,
            tail: range.tail,
            base: CUBE_POS * shape.held_step,
            step: shape.scanned_step,
            config,
        }
    }

    fn wait(&mut self, at: usize, part: &Part<S>) {
        let slots = comptime!(self.config.slots());
        self.waiting[at + UNIT_POS_Y as usize] = part.total;
        self.waiting[at + slots + UNIT_POS_Y as usize] = part.other;
    }

    fn waited(&self, at: usize) -> Part<S> {
        Part::<S> {
            total: self.waiting[at],
            other: self.waiting[at + comptime!(self.config.slots())],
        }
    }

    pub fn write<M: Semiring>(&mut self, row: i32, part: &Part<S>) {
        if row == self.head {
            self.wait(0usize, part);
        } else {
            if row == self.tail {
                self.wait(comptime!(2 * self.config.slots()), part);
            } else {
                self.add::<M>(row, part);
            }
        }
    }

    /// No atomics: a row keeps its unit.
    fn add<M: Semiring>(&mut self, row: i32, part: &Part<S>) {
        let at = self.base + row as usize * self.step;
        let sum = join::<M, S>(self.totals[at], part.total);
        self.totals[at] = sum;
        if comptime!(M::ALGEBRA.other) {
            let sum = self.others[at] + part.other;
            self.others[at] = sum;
        }
    }

    /// Every unit must call it.
    pub fn collect<M: Semiring>(&mut self) {
        sync_cube();
        let slots = comptime!(self.config.slots());
        let planes = comptime!(self.config.planes as usize);
        if UNIT_POS_X == 0 && self.tail != NONE && self.tail != self.head {
            let tail = self.waited(comptime!(2 * slots) + UNIT_POS_Y as usize);
            let mut total = tail.total;
            let mut other = tail.other;
            let mut plane = UNIT_POS_Y as usize + 1;
            let mut open = plane < planes;
            while open {
                if self.heads[plane] == self.tail {
                    let part = self.waited(plane);
                    total = join::<M, S>(total, part.total);
                    other += part.other;
                    plane += 1;
                    open = plane < planes;
                } else {
                    open = false;
                }
            }
            self.add::<M>(self.tail, &Part::<S> { total, other });
        }
    }
}
