//! √(½Σ x ln(x/m) + ½Σ y ln(y/m)), m = (x+y)/2, of rows over their sums (unlike RAFT).
//! Infinite for zero rows and negative values.

#[cfg(feature = "kernels")]
use cubecl::prelude::*;

use crate::{
    distance::semiring::{Algebra, Gradient, Rescale, Semiring, Strategy, Sums, infinity},
    semiring,
};

/// 2^-100.
const LEAST: f32 = 7.888_609e-31;

/// Jensen-Shannon distance.
pub struct JensenShannon;

semiring! {
    #[cube]
    impl Semiring for JensenShannon {
        const ALGEBRA: Algebra =
            Algebra {
            prepared: true,
            logarithms: true,
            ..Algebra::NORMS.symmetric().gradient(Gradient::JensenShannon)
        };
        const STRATEGY: Strategy = Strategy::UNION.dense(None).rescale(Rescale::Rows);

        fn norm<S: Float>(a: S, _p: S) -> S {
            a
        }

        fn prepare<S: Float>(a: S, norm: S) -> S {
            a / norm
        }

        fn second<S: Float>(a: S) -> S {
            select(a >= S::new(0.0), S::new(0.0), S::new(1.0))
        }

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            // Smaller quotients leave the range.
            let missing = a <= S::new(LEAST) || b <= S::new(LEAST);
            let both = select(missing, S::new(1.0), a + b);
            // Greater first: symmetric rounding.
            let high = max(a, b);
            let low = min(a, b);
            let first = high * (select(missing, S::new(1.0), high) / both).ln();
            let last = low * (select(missing, S::new(1.0), low) / both).ln();
            select(missing, S::new(0.0), first + last)
        }

        fn core<S: Float>(sums: Sums<S>) -> S {
            // 2 ln 2 without common columns.
            S::new(2.0) * S::new(2.0).ln() + sums.total
        }

        fn scale<S: Float>(_sums: Sums<S>) -> S {
            S::new(2.0) * S::new(2.0).ln()
        }

        fn direct<S: Float>(a: S, b: S, _p: S) -> S {
            let both = a + b;
            let high = max(a, b);
            let low = min(a, b);
            let whole = select(both == S::new(0.0), S::new(1.0), both);
            let ratio = (high - low) / whole;
            // (1+t)ln(1+t) + (1−t)ln(1−t) = Σ t^(2n)/(n(2n−1)), t = ratio.
            let square = ratio * ratio;
            let one = S::new(1.0);
            let tail = one / S::new(45.0) + square * (one / S::new(66.0) + square / S::new(91.0));
            let tail = one / S::new(15.0) + square * (one / S::new(28.0) + square * tail);
            let series = square * (one + square * (one / S::new(6.0) + square * tail));
            let first = high * select(high == S::new(0.0), S::new(0.0), ratio).log1p();
            let last = low * select(low == S::new(0.0), S::new(0.0), -ratio).log1p();
            // 1 − ratio lost its digits.
            let share = low / whole;
            let share = select(share == S::new(0.0), S::new(1.0), share);
            let last = select(ratio > S::new(0.5), low * (S::new(2.0) * share).ln(), last);
            select(ratio < S::new(0.125), S::new(0.5) * both * series, first + last)
        }

        fn finalize<S: Float>(core: S, sums: Sums<S>) -> S {
            let lacking = sums.x <= S::new(0.0) || sums.y <= S::new(0.0);
            let refused = lacking || sums.second_x + sums.second_y > S::new(0.0);
            let none = refused || core < S::new(0.0);
            let distance = (S::new(0.5) * select(none, S::new(0.0), core)).sqrt();
            select(refused, infinity::<S>(), distance)
        }
    }
}
