//! Jensen-Shannon distance of rows divided by their sums: √(½ Σ x ln(x / m) + ½ Σ y ln(y / m)) with m = (x + y) / 2. Infinite
//! where a row is zero or has a negative value. RAFT takes rows as they are.

use cubecl::prelude::*;

use crate::{
    distance::{Needs, Semiring, Sums},
    semiring,
};

/// The distance.
pub struct JensenShannon;

semiring! {
    #[cube]
    impl Semiring for JensenShannon {
        const NEEDS: Needs = Needs { prepared: true, logarithms: true, ..Needs::UNION.dense(None).symmetric() };

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
            let lone = a <= S::new(0.0) || b <= S::new(0.0);
            let both = select(lone, S::new(1.0), a + b);
            // In order, so that rounding is the same both ways.
            let high = max(a, b);
            let low = min(a, b);
            let first = high * (select(lone, S::new(1.0), high) / both).ln();
            let last = low * (select(lone, S::new(1.0), low) / both).ln();
            select(lone, S::new(0.0), first + last)
        }

        fn core<S: Float>(sums: Sums<S>) -> S {
            // 2 ln 2, what two rows without a common column have.
            S::new(2.0) * S::new(2.0).ln() + sums.total
        }

        fn scale<S: Float>(_sums: Sums<S>) -> S {
            S::new(2.0) * S::new(2.0).ln()
        }

        fn direct<S: Float>(a: S, b: S, _p: S) -> S {
            let both = a + b;
            let high = max(a, b);
            let low = min(a, b);
            let apart = (high - low) / select(both == S::new(0.0), S::new(1.0), both);
            // 0 ln 0 is 0.
            let first = high * select(high == S::new(0.0), S::new(0.0), apart).log1p();
            let last = low * select(low == S::new(0.0), S::new(0.0), -apart).log1p();
            first + last
        }

        fn finalise<S: Float>(core: S, sums: Sums<S>) -> S {
            let lacking = sums.x <= S::new(0.0) || sums.y <= S::new(0.0);
            let refused = lacking || sums.second_x + sums.second_y > S::new(0.0);
            let none = refused || core < S::new(0.0);
            let distance = (S::new(0.5) * select(none, S::new(0.0), core)).sqrt();
            // − ln 0 is infinite.
            distance - select(refused, S::new(0.0), S::new(1.0)).ln()
        }
    }
}
