//! √(1 − Σ√x√y) of rows over their sums (unlike RAFT). NaN for zero rows and negative
//! values.

#[cfg(feature = "kernels")]
use cubecl::prelude::*;

use crate::{
    distance::semiring::{Algebra, Gradient, Rescale, Semiring, Strategy, Sums},
    semiring,
};

/// Hellinger distance.
pub struct Hellinger;

semiring! {
    #[cube]
    impl Semiring for Hellinger {
        const ALGEBRA: Algebra = Algebra {
            prepared: true,
            ..Algebra::NORMS.symmetric().gradient(Gradient::Hellinger)
        };
        const STRATEGY: Strategy = Strategy::DIRECT.rescale(Rescale::Rows);

        fn norm<S: Float>(a: S, _p: S) -> S {
            a
        }

        fn prepare<S: Float>(a: S, norm: S) -> S {
            (a / norm).sqrt()
        }

        fn second<S: Float>(a: S) -> S {
            // Counts NaN: roots of negative shares.
            select(a >= S::new(0.0), S::new(0.0), S::new(1.0))
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
            let lacking = sums.x <= S::new(0.0) || sums.y <= S::new(0.0);
            let refused = lacking || sums.second_x + sums.second_y > S::new(0.0);
            let root = select(core < S::new(0.0), S::new(0.0), core);
            let root = select(refused, S::new(-1.0), root);
            root.sqrt()
        }
    }
}
