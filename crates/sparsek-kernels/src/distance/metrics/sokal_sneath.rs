//! Sokal-Sneath distance of patterns: 2 d / (|x ∩ y| + 2 d) where d columns are in one row only; NaN for two zero rows.
//! Values count as true where they are not zero.

use cubecl::prelude::*;

use crate::{
    distance::{Inner, Needs, Semiring, Sums},
    semiring,
};

/// The distance.
pub struct SokalSneath;

semiring! {
    #[cube]
    impl Semiring for SokalSneath {
        const NEEDS: Needs = Needs::NORMS.symmetric().inner(Inner::Ones);

        fn norm<S: Float>(a: S, _p: S) -> S {
            select(a == S::new(0.0), S::new(0.0), S::new(1.0))
        }

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            let lone = a == S::new(0.0) || b == S::new(0.0);
            select(lone, S::new(0.0), S::new(1.0))
        }

        fn core<S: Float>(sums: Sums<S>) -> S {
            let twice = S::new(2.0) * (sums.x + sums.y - S::new(2.0) * sums.total);
            twice / (sums.total + twice)
        }
    }
}
