use cubecl::prelude::*;

use super::slab::{RegisterTileConfig, Side, Slab};
use crate::distance::{
    semiring::{Dense, Semiring, Strategy, combine},
    tuning::REGISTER_TILE_STEP,
};

/// [`Semiring::direct`] adds to the core, not [`Semiring::product`] to the total.
pub(super) const fn sums_direct(strategy: &Strategy) -> bool {
    strategy.direct || strategy.union
}

const fn reduces(strategy: &Strategy) -> bool {
    !sums_direct(strategy) || (strategy.union && matches!(strategy.dense, Some(Dense::Either)))
}

#[derive(CubeType)]
pub(super) struct UnitSums<S: Float> {
    sums: Array<S>,
    others: Array<S>,
    #[cube(comptime)]
    config: RegisterTileConfig,
}

#[cube]
fn identity<M: Semiring, S: Float>() -> S {
    if comptime!(reduces(&M::STRATEGY)) { M::identity::<S>() } else { S::new(0.0) }
}

#[cube]
fn add<M: Semiring, S: Float>(sum: S, term: S) -> S {
    if comptime!(reduces(&M::STRATEGY)) {
        M::reduce::<S>(sum, term)
    } else {
        combine::<M, S>(sum, term)
    }
}

#[cube]
impl<S: Float> UnitSums<S> {
    pub fn new<M: Semiring>(#[comptime] config: RegisterTileConfig) -> UnitSums<S> {
        let mut sums = Array::<S>::new(comptime!(config.pairs_per_unit()));
        let mut others = Array::<S>::new(comptime!(config.pairs_per_unit()));
        #[unroll]
        for pair in 0..comptime!(config.pairs_per_unit()) {
            sums[pair] = identity::<M, S>();
            others[pair] = S::new(0.0);
        }
        UnitSums::<S> { sums, others, config }
    }

    pub fn sum(&self, #[comptime] pair: usize) -> S {
        self.sums[pair]
    }

    pub fn other(&self, #[comptime] pair: usize) -> S {
        self.others[pair]
    }

    /// Adds `columns` of a block.
    pub fn add_block<M: Semiring>(
        &mut self,
        left: &Slab<S>,
        right: &Slab<S>,
        columns: usize,
        p: S,
    ) {
        let down = comptime!(self.config.stride(Side::Left));
        let across = comptime!(self.config.stride(Side::Right));
        let mut part = UnitSums::<S>::new::<M>(self.config);
        let mut left_at = left.origin();
        let mut right_at = right.origin();
        let whole = columns / REGISTER_TILE_STEP;
        for _ in 0..whole {
            #[unroll]
            for column in 0..REGISTER_TILE_STEP {
                part.add_column::<M>(left, right, left_at, right_at, column, p);
            }
            left_at += comptime!(REGISTER_TILE_STEP * down);
            right_at += comptime!(REGISTER_TILE_STEP * across);
        }
        for _ in whole * REGISTER_TILE_STEP..columns {
            part.add_column::<M>(left, right, left_at, right_at, 0usize, p);
            left_at += down;
            right_at += across;
        }
        #[unroll]
        for pair in 0..comptime!(self.config.pairs_per_unit()) {
            self.sums[pair] = add::<M, S>(self.sums[pair], part.sums[pair]);
            self.others[pair] += part.others[pair];
        }
    }

    fn add_column<M: Semiring>(
        &mut self,
        left: &Slab<S>,
        right: &Slab<S>,
        left_at: usize,
        right_at: usize,
        #[comptime] column: usize,
        p: S,
    ) {
        let across = comptime!(self.config.pairs[0]);
        let mut values = Array::<S>::new(across);
        #[unroll]
        for j in 0..across {
            values[j] = right.value(right_at, column, j);
        }
        #[unroll]
        for i in 0..comptime!(self.config.pairs[1]) {
            let a = left.value(left_at, column, i);
            #[unroll]
            for j in 0..across {
                let pair = comptime!(i * across + j);
                let b = values[j];
                let term = if comptime!(sums_direct(&M::STRATEGY)) {
                    M::direct::<S>(a, b, p)
                } else {
                    M::product::<S>(a, b, p)
                };
                self.sums[pair] = add::<M, S>(self.sums[pair], term);
                if comptime!(M::ALGEBRA.other) {
                    self.others[pair] += M::other::<S>(a, b);
                }
            }
        }
    }
}
