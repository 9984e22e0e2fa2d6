//! Chebyshev distance: max |x − y|, over the columns that either row has.
//!
//! Let Z be the greatest |x| and |y| of the two rows, and w the greatest |x|, |y| and |x − y| over the columns of both. Where w < Z,
//! what is as great as Z stands in a column of one row only, and the distance is Z. Where w > Z, it is a difference that no other
//! exceeds, and so the distance. Where w = Z, both rows are gone through: of 0.2% of the pairs of edgar-trigrams, of 18% of those of
//! kos-bow.

use cubecl::prelude::*;

use crate::{
    distance::semiring::{Dense, Needs, Semiring, Sums},
    semiring,
};

/// The distance.
pub struct Chebyshev;

semiring! {
    #[cube]
    impl Semiring for Chebyshev {
        const NEEDS: Needs = Needs { maxima: true, ..Needs::UNION.dense(Some(Dense::Either)).symmetric() };

        fn norm<S: Float>(a: S, _p: S) -> S {
            a.abs()
        }

        fn reduce<S: Float>(a: S, b: S) -> S {
            max(a, b)
        }

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            max(max(a.abs(), b.abs()), (a - b).abs())
        }

        fn core<S: Float>(sums: Sums<S>) -> S {
            let most = max(sums.x, sums.y);
            // Less than nothing where it is evaluated again.
            select(sums.total == most, S::new(-1.0), max(sums.total, most))
        }

        fn direct<S: Float>(a: S, b: S, _p: S) -> S {
            (a - b).abs()
        }
    }
}
