//! Minkowski distance: (Σ |x − y|^p)^(1/p), p > 0.

use cubecl::prelude::*;

use crate::{
    distance::{Needs, Semiring, Sums},
    semiring,
};

/// The distance.
pub struct Minkowski;

semiring! {
    #[cube]
    impl Semiring for Minkowski {
        const NEEDS: Needs = Needs { logarithms: true, parameter: true, ..Needs::UNION };

        fn norm<S: Float>(a: S, p: S) -> S {
            a.abs().powf(p)
        }

        fn product<S: Float>(a: S, b: S, p: S) -> S {
            (a - b).abs().powf(p) - a.abs().powf(p) - b.abs().powf(p)
        }

        fn core<S: Float>(sums: Sums<S>) -> S {
            sums.x + sums.y + sums.total
        }

        fn scale<S: Float>(sums: Sums<S>) -> S {
            sums.x + sums.y
        }

        fn direct<S: Float>(a: S, b: S, p: S) -> S {
            (a - b).abs().powf(p)
        }

        fn finalise<S: Float>(core: S, sums: Sums<S>) -> S {
            select(core < S::new(0.0), S::new(0.0), core).powf(S::new(1.0) / sums.p)
        }
    }
}
