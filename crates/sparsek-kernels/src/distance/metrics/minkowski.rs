#[cfg(feature = "kernels")]
use cubecl::prelude::*;

use crate::{
    distance::semiring::{Algebra, Dense, Gradient, Rescale, Semiring, Strategy, Sums},
    semiring,
};

/// Minkowski distance.
pub struct Minkowski;

/// [`Minkowski`] for p = 3.
pub struct MinkowskiCubed;

semiring! {
    #[cube]
    impl Semiring for MinkowskiCubed {
        const ALGEBRA: Algebra = <Minkowski as Semiring>::ALGEBRA;
        const STRATEGY: Strategy = <Minkowski as Semiring>::STRATEGY;

        fn norm<S: Float>(a: S, _p: S) -> S {
            (a * a * a).abs()
        }

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            let difference = (a - b).abs();
            difference * difference * difference - ((a * a * a).abs() + (b * b * b).abs())
        }

        fn core<S: Float>(sums: Sums<S>) -> S {
            sums.x + sums.y + sums.total
        }

        fn scale<S: Float>(sums: Sums<S>) -> S {
            sums.x + sums.y
        }

        fn direct<S: Float>(a: S, b: S, _p: S) -> S {
            let difference = (a - b).abs();
            difference * difference * difference
        }

        fn finalize<S: Float>(core: S, _sums: Sums<S>) -> S {
            select(core < S::new(0.0), S::new(0.0), core).powf(S::new(1.0) / S::new(3.0))
        }
    }
}

semiring! {
    #[cube]
    impl Semiring for Minkowski {
        const ALGEBRA: Algebra =
            Algebra {
            logarithms: true,
            parameter: true,
            ..Algebra::NORMS.symmetric().gradient(Gradient::Minkowski)
        };
        const STRATEGY: Strategy =
            Strategy::UNION.dense(Some(Dense::Halves)).rescale(Rescale::Differences(1));

        fn norm<S: Float>(a: S, p: S) -> S {
            a.abs().powf(p)
        }

        fn product<S: Float>(a: S, b: S, p: S) -> S {
            (a - b).abs().powf(p) - (a.abs().powf(p) + b.abs().powf(p))
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

        fn finalize<S: Float>(core: S, sums: Sums<S>) -> S {
            select(core < S::new(0.0), S::new(0.0), core).powf(S::new(1.0) / sums.p)
        }
    }
}
