//! Σ|x−y|/Σ|x+y|; NaN for two zero rows.

#[cfg(feature = "kernels")]
use cubecl::prelude::*;

use crate::{
    distance::semiring::{Algebra, Gradient, Rescale, Semiring, Strategy, Sums},
    semiring,
};

/// Bray-Curtis distance.
pub struct BrayCurtis;

/// Σ|x+y|, the divisor of [`BrayCurtis`] slopes.
pub struct Divisor;

semiring! {
    #[cube]
    impl Semiring for Divisor {
        const ALGEBRA: Algebra = Algebra::NORMS.symmetric();
        const STRATEGY: Strategy = Strategy::UNION.dense(None);

        fn norm<S: Float>(a: S, _p: S) -> S {
            a.abs()
        }

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            (a + b).abs() - (a.abs() + b.abs())
        }

        fn core<S: Float>(sums: Sums<S>) -> S {
            sums.x + sums.y + sums.total
        }

        fn scale<S: Float>(sums: Sums<S>) -> S {
            sums.x + sums.y
        }

        fn direct<S: Float>(a: S, b: S, _p: S) -> S {
            (a + b).abs()
        }
    }
}

semiring! {
    #[cube]
    impl Semiring for BrayCurtis {
        const ALGEBRA: Algebra = Algebra {
            other: true,
            ..Algebra::NORMS.symmetric().gradient(Gradient::BrayCurtis)
        };
        const STRATEGY: Strategy = Strategy::UNION.dense(None).rescale(Rescale::Pair);

        fn norm<S: Float>(a: S, _p: S) -> S {
            a.abs()
        }

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            (a - b).abs() - (a.abs() + b.abs())
        }

        fn other<S: Float>(a: S, b: S) -> S {
            (a + b).abs() - (a.abs() + b.abs())
        }

        fn core<S: Float>(sums: Sums<S>) -> S {
            sums.x + sums.y + sums.total
        }

        fn scale<S: Float>(sums: Sums<S>) -> S {
            sums.x + sums.y
        }

        fn direct<S: Float>(a: S, b: S, _p: S) -> S {
            (a - b).abs()
        }

        fn finalize<S: Float>(core: S, sums: Sums<S>) -> S {
            core / (sums.x + sums.y + sums.other)
        }
    }
}
