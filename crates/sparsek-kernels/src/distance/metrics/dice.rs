//! Dice distance of patterns: 1 − 2 |x ∩ y| / (|x| + |y|); NaN for two zero rows, as SciPy has it.
//! Values count as true where they are not zero.

use cubecl::prelude::*;

use crate::{
    distance::{Inner, Needs, Semiring, Sums},
    semiring,
};

/// The distance.
pub struct Dice;

semiring! {
    #[cube]
    impl Semiring for Dice {
        const NEEDS: Needs = Needs::NORMS.symmetric().inner(Inner::Ones);

        fn norm<S: Float>(a: S, _p: S) -> S {
            select(a == S::new(0.0), S::new(0.0), S::new(1.0))
        }

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            let lone = a == S::new(0.0) || b == S::new(0.0);
            select(lone, S::new(0.0), S::new(1.0))
        }

        fn core<S: Float>(sums: Sums<S>) -> S {
            let both = sums.x + sums.y;
            (both - S::new(2.0) * sums.total) / both
        }
    }
}
