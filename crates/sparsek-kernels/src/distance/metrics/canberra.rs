//! Canberra distance: Σ |x − y| / (|x| + |y|), where 0 / 0 is 0. A column of one row only adds 1.

use cubecl::prelude::*;

use crate::{
    distance::{Needs, Semiring, Sums, quotient},
    semiring,
};

/// The distance.
pub struct Canberra;

semiring! {
    #[cube]
    impl Semiring for Canberra {
        const NEEDS: Needs = Needs::UNION.dense(None).symmetric();

        fn norm<S: Float>(a: S, _p: S) -> S {
            select(a == S::new(0.0), S::new(0.0), S::new(1.0))
        }

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            let lone = a == S::new(0.0) || b == S::new(0.0);
            let share = quotient::<S>((a - b).abs(), a.abs() + b.abs());
            select(lone, S::new(0.0), share - S::new(2.0))
        }

        fn core<S: Float>(sums: Sums<S>) -> S {
            sums.x + sums.y + sums.total
        }

        fn scale<S: Float>(sums: Sums<S>) -> S {
            sums.x + sums.y
        }

        fn direct<S: Float>(a: S, b: S, _p: S) -> S {
            let size = a.abs() + b.abs();
            (a - b).abs() / select(size == S::new(0.0), S::new(1.0), size)
        }
    }
}
