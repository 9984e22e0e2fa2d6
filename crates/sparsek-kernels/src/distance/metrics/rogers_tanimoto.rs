//! Rogers-Tanimoto distance of patterns: 2 d / (N + d) where d columns are in one row only, of N.
//! Values count as true where they are not zero.

use cubecl::prelude::*;

use crate::{
    distance::{Inner, Needs, Semiring, Sums},
    semiring,
};

/// The distance.
pub struct RogersTanimoto;

semiring! {
    #[cube]
    impl Semiring for RogersTanimoto {
        const NEEDS: Needs = Needs::NORMS.symmetric().inner(Inner::Ones);

        fn norm<S: Float>(a: S, _p: S) -> S {
            select(a == S::new(0.0), S::new(0.0), S::new(1.0))
        }

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            let lone = a == S::new(0.0) || b == S::new(0.0);
            select(lone, S::new(0.0), S::new(1.0))
        }

        fn core<S: Float>(sums: Sums<S>) -> S {
            let differing = sums.x + sums.y - S::new(2.0) * sums.total;
            S::new(2.0) * differing / (sums.cols + differing)
        }
    }
}
