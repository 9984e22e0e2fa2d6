//! 1 − Σxy of normalized rows; near 0, ½‖x−y‖². NaN for a zero row, unlike RAFT.

#[cfg(feature = "kernels")]
use cubecl::prelude::*;

use crate::{
    distance::semiring::{Algebra, Gradient, Inner, Rescale, Semiring, Strategy, Sums},
    semiring,
};

/// Cosine distance.
pub struct Cosine;

semiring! {
    #[cube]
    impl Semiring for Cosine {
        const ALGEBRA: Algebra =
            Algebra { prepared: true, ..Algebra::NORMS.symmetric().gradient(Gradient::Angle) };
        const STRATEGY: Strategy = Strategy::DIRECT.inner(Inner::Quotients).rescale(Rescale::Rows);

        fn norm<S: Float>(a: S, _p: S) -> S {
            a * a
        }

        fn prepare<S: Float>(a: S, norm: S) -> S {
            a / select(norm == S::new(0.0), S::new(1.0), norm.sqrt())
        }

        fn core<S: Float>(sums: Sums<S>) -> S {
            S::new(1.0) - sums.total
        }

        fn scale<S: Float>(_sums: Sums<S>) -> S {
            S::new(1.0)
        }

        fn direct<S: Float>(a: S, b: S, _p: S) -> S {
            S::new(0.5) * (a - b) * (a - b)
        }

        fn finalize<S: Float>(core: S, sums: Sums<S>) -> S {
            let zero = sums.x == S::new(0.0) || sums.y == S::new(0.0);
            // √−1 is NaN; compilers make x/x 1.
            core + select(zero, S::new(-1.0), S::new(0.0)).sqrt()
        }
    }
}
