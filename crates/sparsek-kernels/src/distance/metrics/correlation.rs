//! 1 − cov(x,y)/(σ(x)σ(y)), by N Σxy − Σx Σy, in `[0, 2]`. NaN for constant rows with
//! exact sums.

#[cfg(feature = "kernels")]
use cubecl::prelude::*;

use crate::{
    distance::semiring::{Algebra, Gradient, Inner, Rescale, Semiring, Strategy, Sums},
    semiring,
};

/// Correlation distance.
pub struct Correlation;

semiring! {
    #[cube]
    impl Semiring for Correlation {
        const ALGEBRA: Algebra = Algebra::NORMS.symmetric().gradient(Gradient::Correlation);
        const STRATEGY: Strategy = Strategy::SUMS.inner(Inner::Values).rescale(Rescale::Rows);

        fn norm<S: Float>(a: S, _p: S) -> S {
            a
        }

        fn second<S: Float>(a: S) -> S {
            a * a
        }

        fn core<S: Float>(sums: Sums<S>) -> S {
            let covariance = sums.cols * sums.total - sums.x * sums.y;
            let x = sums.cols * sums.second_x - sums.x * sums.x;
            let y = sums.cols * sums.second_y - sums.y * sums.y;
            S::new(1.0) - covariance / (x.sqrt() * y.sqrt())
        }

        fn finalize<S: Float>(core: S, sums: Sums<S>) -> S {
            // Comparisons keep NaN.
            let floor = select(core < S::new(0.0), S::new(0.0), core);
            let within = select(floor > S::new(2.0), S::new(2.0), floor);
            let zero = sums.second_x == S::new(0.0) || sums.second_y == S::new(0.0);
            // √−1 is NaN everywhere; 0/0 is not.
            within + select(zero, S::new(-1.0), S::new(0.0)).sqrt()
        }
    }
}
