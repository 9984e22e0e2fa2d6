//! Σ x ln(x/y), not of shares. Infinite if y lacks a column of x, or for negative values; RAFT
//! halves it and ignores such columns.

#[cfg(feature = "kernels")]
use cubecl::prelude::*;

use crate::{
    distance::semiring::{Algebra, Dense, Gradient, Semiring, Strategy, Sums, infinity},
    semiring,
};

/// 2^±100: quotients stay in range.
const FAR: f32 = 1.267_650_6e30;
const NEAR: f32 = 7.888_609e-31;
const MOST: f32 = 1.329_228e36;

/// Kullback-Leibler divergence.
pub struct KullbackLeibler;

semiring! {
    #[cube]
    impl Semiring for KullbackLeibler {
        const ALGEBRA: Algebra =
            Algebra {
            other: true,
            covered: true,
            logarithms: true,
            ..Algebra::NORMS.gradient(Gradient::Kl)
        };
        const STRATEGY: Strategy = Strategy::PRODUCTS.dense(Some(Dense::Left));

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
            let above = select(missing, S::new(1.0), a);
            let below = select(missing, S::new(1.0), b);
            let share = above / below;
            let mut log = share.ln();
            if share > S::new(FAR) || share < S::new(NEAR) || below > S::new(MOST) {
                log = above.ln() - below.ln();
            }
            select(missing, S::new(0.0), a * log)
        }

        fn dense_value<S: Float>(b: S) -> S {
            let positive = select(b > S::new(0.0), b, S::new(1.0));
            select(b > S::new(0.0), positive.ln(), -infinity::<S>())
        }

        fn absent<S: Float>() -> S {
            -infinity::<S>()
        }

        fn left_value<S: Float>(a: S) -> S {
            select(a > S::new(0.0), a, S::new(1.0)).ln()
        }

        fn contribution<S: Float>(a: S, left_value: S, dense_value: S) -> S {
            a * (left_value - dense_value)
        }

        fn core<S: Float>(sums: Sums<S>) -> S {
            let negative = sums.second_x + sums.second_y > S::new(0.0);
            let covered = sums.other == sums.x && !negative;
            select(covered, sums.total, infinity::<S>())
        }
    }
}
