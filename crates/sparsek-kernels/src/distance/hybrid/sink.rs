//! Where the sums of a scan go.
#![allow(
    clippy::collapsible_else_if,
    reason = "outer conditions are decided when the kernel is compiled"
)]

use cubecl::prelude::*;

use super::{
    scan::{Blueprint, NONE, Shape, Stretch},
    sums::{Part, join},
};
use crate::distance::semiring::Semiring;

/// Where sums go; those of the rows in which the plane's stretch begins and ends wait for those of other planes.
#[derive(CubeType)]
pub(super) struct Sink<'a, S: Float> {
    totals: &'a mut [S],
    others: &'a mut [S],
    /// Total and second sum of each plane's head, then of each plane's tail.
    waiting: Shared<[S]>,
    /// The rows of the heads.
    heads: Shared<[i32]>,
    head: i32,
    tail: i32,
    /// Of the row that is held, and from one scanned row to the next.
    base: usize,
    step: usize,
    #[cube(comptime)]
    blueprint: Blueprint,
}

#[cube]
impl<'a, S: Float> Sink<'a, S> {
    pub fn new(
        totals: &'a mut [S],
        others: &'a mut [S],
        stretch: &Stretch,
        shape: &Shape,
        #[comptime] blueprint: Blueprint,
    ) -> Sink<'a, S> {
        let slots = comptime!(blueprint.slots());
        let mut heads = Shared::<[i32]>::new_slice(slots);
        if UNIT_POS_X == 0 {
            heads[UNIT_POS_Y as usize] = stretch.head;
        }
        Sink::<'a, S> {
            totals,
            others,
            waiting: Shared::<[S]>::new_slice(comptime!(4 * slots)),
            heads,
            head: stretch.head,
            tail: stretch.tail,
            base: CUBE_POS * shape.held_step,
            step: shape.scanned_step,
            blueprint,
        }
    }

    fn wait(&mut self, at: usize, part: &Part<S>) {
        let slots = comptime!(self.blueprint.slots());
        self.waiting[at + UNIT_POS_Y as usize] = part.total;
        self.waiting[at + slots + UNIT_POS_Y as usize] = part.other;
    }

    fn waited(&self, at: usize) -> Part<S> {
        Part::<S> {
            total: self.waiting[at],
            other: self.waiting[at + comptime!(self.blueprint.slots())],
        }
    }

    /// Adds the sums of a row, or of the plane's part of it.
    pub fn write<M: Semiring>(&mut self, row: i32, part: &Part<S>) {
        if row == self.head {
            self.wait(0usize, part);
        } else {
            if row == self.tail {
                self.wait(comptime!(2 * self.blueprint.slots()), part);
            } else {
                self.add::<M>(row, part);
            }
        }
    }

    /// Adds to the output; always by the same unit of the cube, whichever block of the row is held.
    fn add<M: Semiring>(&mut self, row: i32, part: &Part<S>) {
        let at = self.base + row as usize * self.step;
        let sum = join::<M, S>(self.totals[at], part.total);
        self.totals[at] = sum;
        if comptime!(M::NEEDS.other) {
            let sum = self.others[at] + part.other;
            self.others[at] = sum;
        }
    }

    /// Puts the rows together that lie in several stretches, each by the plane in whose stretch it begins. Every unit must
    /// call it.
    pub fn collect<M: Semiring>(&mut self) {
        sync_cube();
        let slots = comptime!(self.blueprint.slots());
        let planes = comptime!(self.blueprint.planes as usize);
        if UNIT_POS_X == 0 && self.tail != NONE && self.tail != self.head {
            let own = self.waited(comptime!(2 * slots) + UNIT_POS_Y as usize);
            let mut total = own.total;
            let mut other = own.other;
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
