#[cfg(feature = "kernels")]
use cubecl::prelude::*;

use crate::{
    distance::semiring::{Algebra, Semiring, Strategy, Sums},
    semiring,
};

/// Hamming distance.
pub struct Hamming;

semiring! {
    #[cube]
    impl Semiring for Hamming {
        const ALGEBRA: Algebra = Algebra::NORMS.symmetric();
        const STRATEGY: Strategy = Strategy { union: true, ..Strategy::SUMS };

        fn norm<S: Float>(a: S, _p: S) -> S {
            select(a == S::new(0.0), S::new(0.0), S::new(1.0))
        }

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            // Norms count common columns twice.
            let missing = a == S::new(0.0) || b == S::new(0.0);
            let both = select(a == b, S::new(-2.0), S::new(-1.0));
            select(missing, S::new(0.0), both)
        }

        fn core<S: Float>(sums: Sums<S>) -> S {
            sums.x + sums.y + sums.total
        }

        fn direct<S: Float>(a: S, b: S, _p: S) -> S {
            select(a == b, S::new(0.0), S::new(1.0))
        }

        fn finalize<S: Float>(core: S, sums: Sums<S>) -> S {
            core / sums.cols
        }
    }
}
