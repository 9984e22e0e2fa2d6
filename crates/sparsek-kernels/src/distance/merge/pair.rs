//! [`RowPair::finish`] takes sums over common columns, and walks both rows only after cancellation
//! or overflow.

use cubecl::prelude::*;

use crate::distance::{
    prepare::{
        parts::part_bits,
        range::{BLOCK, huge, power, row_shift, shifted, tiny},
    },
    semiring::{CANCELLED, Parameter, Rescale, Semiring, Sums, combine, infinity},
};

const NONE: i32 = i32::MAX;

#[derive(CubeType, CubeLaunch)]
pub(in crate::distance) struct Sparse<S: Float> {
    indptr: Box<[i32]>,
    indices: Box<[i32]>,
    values: Box<[S]>,
    norms: Box<[S]>,
}

#[derive(CubeType, CubeLaunch)]
pub(in crate::distance) struct Matrices<S: Float> {
    x: Sparse<S>,
    y: Sparse<S>,
    cols: u32,
    parameter: Parameter,
    #[cube(comptime)]
    same: bool,
}

#[derive(CubeType)]
pub(in crate::distance) struct RowPair<'a, S: Float> {
    x: &'a Sparse<S>,
    y: &'a Sparse<S>,
    cols: u32,
    pub p: S,
    #[cube(comptime)]
    same: bool,
}

#[cube]
impl<S: Float> Sparse<S> {
    pub fn start(&self, row: usize) -> usize {
        self.indptr[row] as usize
    }

    pub fn column(&self, entry: usize) -> i32 {
        self.indices[entry]
    }

    pub fn value(&self, entry: usize) -> S {
        self.values[entry]
    }

    pub fn norm(&self, row: usize) -> S {
        self.norms[2 * row]
    }

    /// Counts columns below `limit`; plane-wide.
    pub fn entries_below(
        &self,
        begin: usize,
        count: usize,
        limit: u32,
        #[comptime] plane: u32,
    ) -> usize {
        let mut low = 0usize;
        let mut high = count + 0;
        while low < high {
            let step = (high - low - 1) / comptime!(plane as usize) + 1;
            let at = low + UNIT_POS_X as usize * step;
            let column = self.indices[begin + min(at, high - 1)] as u32;
            let below = select(at < high, column < limit, false);
            let found = plane_sum(u32::cast_from(below)) as usize;
            if found == 0 {
                high = low + 0;
            } else {
                high = min(high, low + found * step);
                low += (found - 1) * step + 1;
            }
        }
        low
    }

    fn parts(&self, row: usize, cols: u32) -> u32 {
        part_bits((self.indptr[row + 1] - self.indptr[row]) as u32, cols)
    }
}

#[cube]
impl<'a, S: Float> RowPair<'a, S> {
    pub fn new(matrices: &'a Matrices<S>) -> RowPair<'a, S> {
        RowPair::<'a, S> {
            x: &matrices.x,
            y: &matrices.y,
            cols: matrices.cols,
            p: matrices.parameter.value::<S>(),
            same: matrices.same,
        }
    }

    pub fn right(&self) -> &Sparse<S> {
        self.y
    }

    pub fn left(&self) -> &Sparse<S> {
        self.x
    }

    fn sums<M: Semiring>(&self, i: usize, j: usize, total: S, other: S) -> Sums<S> {
        let zero = S::new(0.0);
        let mut sums = Sums::<S> {
            total,
            other,
            x: zero,
            y: zero,
            second_x: zero,
            second_y: zero,
            cols: S::cast_from(self.cols),
            p: self.p,
        };
        if comptime!(M::ALGEBRA.norms) {
            sums.x = self.x.norms[2 * i];
            sums.second_x = self.x.norms[2 * i + 1];
            sums.y = self.y.norms[2 * j];
            sums.second_y = self.y.norms[2 * j + 1];
        }
        sums
    }

    pub fn finish<M: Semiring>(&self, i: usize, j: usize, total: S, other: S) -> S {
        let sums = self.sums::<M>(i, j, total, other);
        let mut core = M::core::<S>(sums);
        if comptime!(M::STRATEGY.direct) {
            let mut decided = accurate::<M, S>(core, sums);
            if comptime!(self.same) {
                // Exactly 0.
                if i == j {
                    core = S::new(0.0);
                    decided = true;
                }
            }
            if !decided {
                core = self.merge::<M>(i, j, total).direct;
            }
        }
        self.finalize::<M>(i, j, core, sums)
    }

    fn finalize<M: Semiring>(&self, i: usize, j: usize, core: S, sums: Sums<S>) -> S {
        let mut distance = M::finalize::<S>(core, sums);
        if comptime!(M::STRATEGY.rescales_pairs()) {
            let mut sound = in_range::<M, S>(core, sums);
            if comptime!(self.same && M::STRATEGY.rescale != Some(Rescale::Careful)) {
                if i == j {
                    sound = true;
                }
            }
            if !sound {
                if comptime!(M::STRATEGY.rescale == Some(Rescale::Careful)) {
                    distance = self.careful::<M>(i, j, sums);
                } else {
                    distance = self.rescaled::<M>(i, j, sums);
                }
            }
        }
        distance
    }

    fn careful<M: Semiring>(&self, i: usize, j: usize, sums: Sums<S>) -> S {
        let far = self.merge_rescaled::<M>(i, j, 0i32, S::new(1.0), false);
        let again = Sums::<S> {
            total: far.core,
            other: sums.other,
            x: sums.x,
            y: sums.y,
            second_x: sums.second_x,
            second_y: sums.second_y,
            cols: sums.cols,
            p: sums.p,
        };
        M::finalize::<S>(M::core::<S>(again), again)
    }

    /// By a power of two first: extreme quotients are not exact everywhere.
    fn rescaled<M: Semiring>(&self, i: usize, j: usize, sums: Sums<S>) -> S {
        let greatest = self.merge_rescaled::<M>(i, j, 0i32, S::new(1.0), true).core;
        let mut distance = greatest;
        if greatest > S::new(0.0) && greatest < infinity::<S>() {
            let shift = row_shift::<S>(greatest);
            let rest = shifted::<S>(greatest, shift);
            let far = self.merge_rescaled::<M>(i, j, shift, rest, false);
            let within = Sums::<S> {
                total: sums.total,
                other: far.other,
                x: far.x,
                y: far.y,
                second_x: sums.second_x,
                second_y: sums.second_y,
                cols: sums.cols,
                p: sums.p,
            };
            distance = M::finalize::<S>(far.core, within);
            if comptime!(M::STRATEGY.degree() > 0) {
                distance = distance * rest * power::<S>(-shift);
            }
            if comptime!(M::STRATEGY.degree() > 1) {
                distance = distance * rest * power::<S>(-shift);
            }
        } else {
            if comptime!(M::STRATEGY.degree() == 0) {
                distance = M::finalize::<S>(greatest, sums);
            }
        }
        distance
    }

    fn merge_rescaled<M: Semiring>(
        &self,
        i: usize,
        j: usize,
        shift: i32,
        rest: S,
        #[comptime] greatest: bool,
    ) -> RescaledSums<S> {
        let mut a = self.x.indptr[i];
        let a_end = self.x.indptr[i + 1];
        let mut b = self.y.indptr[j];
        let b_end = self.y.indptr[j + 1];
        let mut before = RescaledSums::<S>::none();
        let mut part = RescaledSums::<S>::none();
        let mut count = 0u32;
        while a < a_end || b < b_end {
            let mut column_a = NONE.runtime();
            if a < a_end {
                column_a = self.x.indices[a as usize];
            }
            let mut column_b = NONE.runtime();
            if b < b_end {
                column_b = self.y.indices[b as usize];
            }
            let mut value_a = S::new(0.0);
            let mut value_b = S::new(0.0);
            let in_a = column_a <= column_b;
            let in_b = column_b <= column_a;
            if in_a {
                value_a = self.x.values[a as usize];
                a += 1;
            }
            if in_b {
                value_b = self.y.values[b as usize];
                b += 1;
            }
            if comptime!(greatest) {
                part.raise::<M>(value_a, value_b);
            } else {
                part.add::<M>(value_a, value_b, shift, rest, self.p);
                count += 1;
                if count == BLOCK {
                    before.add_part(&mut part);
                    count = 0u32;
                }
            }
        }
        before.add_part(&mut part);
        before
    }

    /// Branchless [`finish`](Self::finish), valid if `decided`.
    pub fn draft<M: Semiring>(&self, i: usize, j: usize, total: S, other: S) -> Draft<S> {
        let sums = self.sums::<M>(i, j, total, other);
        let mut core = M::core::<S>(sums);
        let mut decided = true.runtime();
        if comptime!(M::STRATEGY.direct) {
            decided = accurate::<M, S>(core, sums);
            if comptime!(self.same) {
                core = select(i == j, S::new(0.0), core);
                decided = select(i == j, true, decided);
            }
        }
        if comptime!(M::STRATEGY.rescales_pairs()) {
            let mut sound = in_range::<M, S>(core, sums);
            if comptime!(self.same && M::STRATEGY.rescale != Some(Rescale::Careful)) {
                sound = select(i == j, true, sound);
            }
            decided = select(sound, decided, false);
        }
        Draft::<S> { distance: M::finalize::<S>(core, sums), decided }
    }

    pub fn finish_core<M: Semiring>(&self, i: usize, j: usize, core: S, other: S) -> S {
        let sums = self.sums::<M>(i, j, S::new(0.0), other);
        self.finalize::<M>(i, j, core, sums)
    }

    pub fn distance<M: Semiring>(&self, i: usize, j: usize) -> S {
        let merged = self.merge::<M>(i, j, infinity::<S>());
        self.finish_merged::<M>(i, j, merged)
    }

    pub fn finish_merged<M: Semiring>(&self, i: usize, j: usize, merged: MergedSums<S>) -> S {
        let sums = self.sums::<M>(i, j, merged.total, merged.other);
        let mut core = M::core::<S>(sums);
        if comptime!(M::STRATEGY.direct) {
            core = merged.direct;
        }
        self.finalize::<M>(i, j, core, sums)
    }

    pub fn left_parts(&self, row: usize) -> u32 {
        self.x.parts(row, self.cols)
    }

    pub fn right_parts(&self, row: usize) -> u32 {
        self.y.parts(row, self.cols)
    }

    fn merge<M: Semiring>(&self, i: usize, j: usize, most: S) -> MergedSums<S> {
        let mut a = self.x.indptr[i];
        let a_end = self.x.indptr[i + 1];
        let mut b = self.y.indptr[j];
        let b_end = self.y.indptr[j + 1];
        let bits = min(self.left_parts(i), self.right_parts(j));
        let mut current = 0u32;
        let mut before = MergedSums::<S>::none::<M>();
        let mut merged = MergedSums::<S>::none::<M>();
        while a < a_end || b < b_end {
            let mut column_a = NONE.runtime();
            if a < a_end {
                column_a = self.x.indices[a as usize];
            }
            let mut column_b = NONE.runtime();
            if b < b_end {
                column_b = self.y.indices[b as usize];
            }
            let part = (min(column_a, column_b) as u32) >> bits;
            if part != current {
                before.add_part::<M>(&mut merged);
                current = part;
            }
            let mut value_a = S::new(0.0);
            let mut value_b = S::new(0.0);
            let in_a = column_a <= column_b;
            let in_b = column_b <= column_a;
            if in_a {
                value_a = self.x.values[a as usize];
                a += 1;
            }
            if in_b {
                value_b = self.y.values[b as usize];
                b += 1;
            }
            merged.column::<M>(value_a, value_b, in_a && in_b, self.p);
            if comptime!(M::STRATEGY.direct && M::ALGEBRA.maxima) {
                if merged.direct >= most {
                    a = a_end;
                    b = b_end;
                }
            }
        }
        before.add_part::<M>(&mut merged);
        before
    }
}

#[derive(CubeType)]
pub(in crate::distance) struct Draft<S: Float> {
    pub distance: S,
    pub decided: bool,
}

/// False for NaN.
#[cube]
fn accurate<M: Semiring, S: Float>(core: S, sums: Sums<S>) -> bool {
    core >= S::new(CANCELLED) * M::scale::<S>(sums)
}

/// False for NaN.
#[cube]
fn in_range<M: Semiring, S: Float>(core: S, sums: Sums<S>) -> bool {
    let size = if comptime!(M::STRATEGY.rescale == Some(Rescale::Pair)) {
        M::scale::<S>(sums)
    } else if comptime!(M::STRATEGY.rescale == Some(Rescale::Careful)) {
        sums.total.abs()
    } else {
        core
    };
    let mut sound = size <= huge::<S>();
    if comptime!(matches!(M::STRATEGY.rescale, Some(Rescale::Pair | Rescale::Differences(_)))) {
        sound = select(size >= tiny::<S>(), sound, false);
    }
    sound
}

#[derive(CubeType)]
struct RescaledSums<S: Float> {
    core: S,
    x: S,
    y: S,
    other: S,
}

#[cube]
impl<S: Float> RescaledSums<S> {
    fn none() -> RescaledSums<S> {
        RescaledSums::<S> { core: S::new(0.0), x: S::new(0.0), y: S::new(0.0), other: S::new(0.0) }
    }

    fn raise<M: Semiring>(&mut self, a: S, b: S) {
        if comptime!(M::STRATEGY.rescale == Some(Rescale::Pair)) {
            self.core = max(self.core, max(a.abs(), b.abs()));
        } else {
            self.core = max(self.core, (a - b).abs());
        }
    }

    fn add<M: Semiring>(&mut self, a: S, b: S, shift: i32, rest: S, p: S) {
        if comptime!(M::STRATEGY.rescale == Some(Rescale::Pair)) {
            let a = shifted::<S>(a, shift) / rest;
            let b = shifted::<S>(b, shift) / rest;
            self.core += M::direct::<S>(a, b, p);
            self.x += M::norm::<S>(a, p);
            self.y += M::norm::<S>(b, p);
            self.other += M::other::<S>(a, b);
        } else if comptime!(M::STRATEGY.rescale == Some(Rescale::Careful)) {
            self.core += M::direct::<S>(a, b, p);
        } else {
            let difference = shifted::<S>(a - b, shift) / rest;
            self.core += M::direct::<S>(difference, S::new(0.0), p);
        }
    }

    fn add_part(&mut self, part: &mut RescaledSums<S>) {
        self.core += part.core;
        self.x += part.x;
        self.y += part.y;
        self.other += part.other;
        part.core = S::new(0.0);
        part.x = S::new(0.0);
        part.y = S::new(0.0);
        part.other = S::new(0.0);
    }
}

#[derive(CubeType)]
pub(in crate::distance) struct MergedSums<S: Float> {
    pub total: S,
    pub other: S,
    pub direct: S,
}

#[cube]
impl<S: Float> MergedSums<S> {
    pub fn none<M: Semiring>() -> MergedSums<S> {
        MergedSums::<S> { total: M::identity::<S>(), other: S::new(0.0), direct: S::new(0.0) }
    }

    pub fn column<M: Semiring>(&mut self, a: S, b: S, both: bool, p: S) {
        if comptime!(M::ALGEBRA.annihilates) {
            if both {
                self.add::<M>(a, b, p);
            }
        } else {
            self.add::<M>(a, b, p);
        }
        if comptime!(M::STRATEGY.direct) {
            let direct = M::direct::<S>(a, b, p);
            self.direct = combine::<M, S>(self.direct, direct);
        }
    }

    fn add<M: Semiring>(&mut self, a: S, b: S, p: S) {
        self.total = M::reduce::<S>(self.total, M::product::<S>(a, b, p));
        if comptime!(M::ALGEBRA.other && M::ALGEBRA.annihilates) {
            self.other += M::other::<S>(a, b);
        }
    }

    pub fn add_part<M: Semiring>(&mut self, part: &mut MergedSums<S>) {
        self.total = M::reduce::<S>(self.total, part.total);
        self.other += part.other;
        self.direct = combine::<M, S>(self.direct, part.direct);
        part.total = M::identity::<S>();
        part.other = S::new(0.0);
        part.direct = S::new(0.0);
    }
}
