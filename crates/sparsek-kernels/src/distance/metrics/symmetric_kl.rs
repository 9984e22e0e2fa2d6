//! Jeffreys' Σ(x−y) ln(x/y). Infinite if either row lacks a column, or for negative values.

#[cfg(feature = "kernels")]
use cubecl::prelude::*;

use crate::{
    distance::semiring::{Algebra, Gradient, Rescale, Semiring, Strategy, Sums, infinity},
    semiring,
};

const DOWN: f32 = 1.0 / 1_073_741_824.0;

/// Symmetric Kullback-Leibler divergence.
pub struct SymmetricKl;

semiring! {
    #[cube]
    impl Semiring for SymmetricKl {
        const ALGEBRA: Algebra = Algebra {
            other: true,
            covered: true,
            logarithms: true,
            ..Algebra::NORMS.symmetric().gradient(Gradient::SymmetricKl)
        };
        const STRATEGY: Strategy = Strategy::PRODUCTS.rescale(Rescale::Careful);

        fn norm<S: Float>(a: S, _p: S) -> S {
            select(a == S::new(0.0), S::new(0.0), S::new(1.0))
        }

        fn second<S: Float>(a: S) -> S {
            select(a < S::new(0.0), S::new(1.0), S::new(0.0))
        }

        fn other<S: Float>(a: S, b: S) -> S {
            let missing = a <= S::new(0.0) || b <= S::new(0.0);
            select(missing, S::new(0.0), S::new(1.0))
        }

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            let missing = a <= S::new(0.0) || b <= S::new(0.0);
            // Greater first: symmetric rounding.
            let high = max(a, b);
            let low = min(a, b);
            let above = select(missing, S::new(1.0), high);
            let below = select(missing, S::new(1.0), low);
            // Out of range: infinite or NaN, evaluated again.
            select(missing, S::new(0.0), (high - low) * (above / below).ln())
        }

        fn direct<S: Float>(a: S, b: S, _p: S) -> S {
            let missing = a <= S::new(0.0) || b <= S::new(0.0);
            let high = max(a, b);
            let low = min(a, b);
            let above = select(missing, S::new(1.0), high);
            let below = select(missing, S::new(1.0), low);
            let far = above * S::new(DOWN) > below;
            // Keeps divisors below 2^126.
            let size = select(above > S::new(1.0), S::new(DOWN), S::new(1.0));
            let near = select(far, S::new(1.0), (above * size) / (below * size)).ln();
            let log = select(far, above.ln() - below.ln(), near);
            select(missing, S::new(0.0), (high - low) * log)
        }

        fn core<S: Float>(sums: Sums<S>) -> S {
            let covered = sums.other == sums.x && sums.other == sums.y;
            select(covered, sums.total, infinity::<S>())
        }
    }
}
