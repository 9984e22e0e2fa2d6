//! Σ(x−y)² = ‖x‖²+‖y‖²−2Σxy.

#[cfg(feature = "kernels")]
use cubecl::prelude::*;

use crate::{
    distance::semiring::{Algebra, Gradient, Inner, Rescale, Semiring, Strategy, Sums},
    semiring,
};

/// Squared Euclidean distance.
pub struct SqEuclidean;

semiring! {
    #[cube]
    impl Semiring for SqEuclidean {
        const ALGEBRA: Algebra = Algebra::NORMS.symmetric().gradient(Gradient::Square);
        const STRATEGY: Strategy =
            Strategy::DIRECT.inner(Inner::Values).rescale(Rescale::Differences(2));

        fn norm<S: Float>(a: S, _p: S) -> S {
            a * a
        }

        fn core<S: Float>(sums: Sums<S>) -> S {
            sums.x + sums.y - S::new(2.0) * sums.total
        }

        fn scale<S: Float>(sums: Sums<S>) -> S {
            sums.x + sums.y
        }

        fn direct<S: Float>(a: S, b: S, _p: S) -> S {
            (a - b) * (a - b)
        }

        fn finalize<S: Float>(core: S, _sums: Sums<S>) -> S {
            select(core < S::new(0.0), S::new(0.0), core)
        }
    }
}
