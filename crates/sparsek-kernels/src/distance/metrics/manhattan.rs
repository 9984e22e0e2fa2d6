//! Σ|x|+Σ|y|+Σ(|x−y|−|x|−|y|), the last over common columns.

#[cfg(feature = "kernels")]
use cubecl::prelude::*;

use crate::{
    distance::semiring::{Algebra, Gradient, Rescale, Semiring, Strategy, Sums},
    semiring,
};

/// Manhattan distance.
pub struct Manhattan;

semiring! {
    #[cube]
    impl Semiring for Manhattan {
        const ALGEBRA: Algebra = Algebra::NORMS.symmetric().gradient(Gradient::Sign);
        const STRATEGY: Strategy = Strategy::UNION.rescale(Rescale::Sum);

        fn norm<S: Float>(a: S, _p: S) -> S {
            a.abs()
        }

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            (a - b).abs() - (a.abs() + b.abs())
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
    }
}
