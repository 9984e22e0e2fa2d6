//! Hellinger distance of rows divided by their sums: √(1 − Σ √x √y). Two zero rows are at distance 0, a zero row at 1 from
//! every other; NaN where a value is negative. RAFT takes rows as they are.

use cubecl::prelude::*;

use crate::{
    distance::{Needs, Semiring, Sums},
    semiring,
};

/// The distance.
pub struct Hellinger;

semiring! {
    #[cube]
    impl Semiring for Hellinger {
        const NEEDS: Needs = Needs { prepared: true, ..Needs::DIRECT };

        fn norm<S: Float>(a: S, _p: S) -> S {
            a
        }

        fn prepare<S: Float>(a: S, norm: S) -> S {
            (a / norm).sqrt()
        }

        fn core<S: Float>(sums: Sums<S>) -> S {
            let zeros = sums.x == S::new(0.0) && sums.y == S::new(0.0);
            select(zeros, S::new(0.0), S::new(1.0) - sums.total)
        }

        fn scale<S: Float>(_sums: Sums<S>) -> S {
            S::new(1.0)
        }

        fn direct<S: Float>(a: S, b: S, _p: S) -> S {
            S::new(0.5) * (a - b) * (a - b)
        }

        fn finalise<S: Float>(core: S, _sums: Sums<S>) -> S {
            select(core < S::new(0.0), S::new(0.0), core).sqrt()
        }
    }
}
