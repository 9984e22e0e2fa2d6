//! max |x−y|. Let Z = max(|x|,|y|) over all columns, w = max(|x|,|y|,|x−y|) over common ones.
//! If Z ≠ w, the distance is max(Z,w); else both rows are walked.

#[cfg(feature = "kernels")]
use cubecl::prelude::*;

use crate::{
    distance::semiring::{Algebra, Dense, Semiring, Strategy, Sums},
    semiring,
};

/// Chebyshev distance.
pub struct Chebyshev;

semiring! {
    #[cube]
    impl Semiring for Chebyshev {
        const ALGEBRA: Algebra = Algebra { maxima: true, ..Algebra::NORMS.symmetric() };
        const STRATEGY: Strategy = Strategy::UNION.dense(Some(Dense::Either));

        fn norm<S: Float>(a: S, _p: S) -> S {
            a.abs()
        }

        fn reduce<S: Float>(a: S, b: S) -> S {
            max(a, b)
        }

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            max(max(a.abs(), b.abs()), (a - b).abs())
        }

        fn core<S: Float>(sums: Sums<S>) -> S {
            let most = max(sums.x, sums.y);
            // Forces another evaluation.
            select(sums.total == most, S::new(-1.0), max(sums.total, most))
        }

        fn direct<S: Float>(a: S, b: S, _p: S) -> S {
            (a - b).abs()
        }
    }
}
