//! Σ |x−y|/(|x|+|y|), where 0/0 is 0.

#[cfg(feature = "kernels")]
use cubecl::prelude::*;

use crate::{
    distance::semiring::{Algebra, Gradient, Semiring, Strategy, Sums, quotient},
    semiring,
};

/// 2^120: shader compilers treat divisors above 2^126 as infinite.
const MOST: f32 = 1.329_228e36;
const PART: f32 = 1.0 / 1024.0;

/// Canberra distance.
pub struct Canberra;

semiring! {
    #[cube]
    impl Semiring for Canberra {
        const ALGEBRA: Algebra = Algebra::NORMS.symmetric().gradient(Gradient::Canberra);
        const STRATEGY: Strategy = Strategy::UNION.dense(None);

        fn norm<S: Float>(a: S, _p: S) -> S {
            select(a == S::new(0.0), S::new(0.0), S::new(1.0))
        }

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            let missing = a == S::new(0.0) || b == S::new(0.0);
            let whole = max(a.abs(), b.abs()) < S::new(MOST);
            let size = select(whole, S::new(1.0), S::new(PART));
            let a = a * size;
            let b = b * size;
            let share = quotient::<S>((a - b).abs(), a.abs() + b.abs());
            select(missing, S::new(0.0), share - S::new(2.0))
        }

        fn core<S: Float>(sums: Sums<S>) -> S {
            sums.x + sums.y + sums.total
        }

        fn scale<S: Float>(sums: Sums<S>) -> S {
            sums.x + sums.y
        }

        fn direct<S: Float>(a: S, b: S, _p: S) -> S {
            let whole = max(a.abs(), b.abs()) < S::new(MOST);
            let part = select(whole, S::new(1.0), S::new(PART));
            let a = a * part;
            let b = b * part;
            let size = a.abs() + b.abs();
            (a - b).abs() / select(size == S::new(0.0), S::new(1.0), size)
        }
    }
}
