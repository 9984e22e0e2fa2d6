//! Yule distance of patterns: 2 r s / (t f + r s) with r and s columns in one row only, t in both and f in neither; 0 where r s is.
//! Values count as true where they are not zero.

use cubecl::prelude::*;

use crate::{
    distance::{Inner, Needs, Semiring, Sums},
    semiring,
};

/// The distance.
pub struct Yule;

semiring! {
    #[cube]
    impl Semiring for Yule {
        const NEEDS: Needs = Needs::NORMS.symmetric().inner(Inner::Ones);

        fn norm<S: Float>(a: S, _p: S) -> S {
            select(a == S::new(0.0), S::new(0.0), S::new(1.0))
        }

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            let lone = a == S::new(0.0) || b == S::new(0.0);
            select(lone, S::new(0.0), S::new(1.0))
        }

        fn core<S: Float>(sums: Sums<S>) -> S {
            let only_x = sums.x - sums.total;
            let only_y = sums.y - sums.total;
            let neither = sums.cols - (sums.x + only_y);
            let half = only_x * only_y;
            let whole = sums.total * neither + half;
            S::new(2.0) * half / select(half == S::new(0.0), S::new(1.0), whole)
        }
    }
}
