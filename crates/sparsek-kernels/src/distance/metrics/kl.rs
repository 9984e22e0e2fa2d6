//! Kullback-Leibler divergence: Σ x ln(x / y), where 0 ln 0 is 0; infinite where x has a column that y lacks, or a value is
//! negative. Not symmetric; rows are taken as they are. RAFT halves it and leaves out the columns that y lacks.

use cubecl::prelude::*;

use crate::{
    distance::{Needs, Semiring, Sums},
    semiring,
};

/// The distance.
pub struct KullbackLeibler;

semiring! {
    #[cube]
    impl Semiring for KullbackLeibler {
        const NEEDS: Needs = Needs { other: true, logarithms: true, ..Needs::NORMS };

        fn norm<S: Float>(a: S, _p: S) -> S {
            select(a == S::new(0.0), S::new(0.0), S::new(1.0))
        }

        fn second<S: Float>(a: S) -> S {
            select(a < S::new(0.0), S::new(1.0), S::new(0.0))
        }

        fn other<S: Float>(a: S, b: S) -> S {
            let lone = a <= S::new(0.0) || b <= S::new(0.0);
            select(lone, S::new(0.0), S::new(1.0))
        }

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            let lone = a <= S::new(0.0) || b <= S::new(0.0);
            let share = select(lone, S::new(1.0), a) / select(lone, S::new(1.0), b);
            select(lone, S::new(0.0), a * share.ln())
        }

        fn core<S: Float>(sums: Sums<S>) -> S {
            let there = sums.other == sums.x && sums.second_y == S::new(0.0);
            // − ln 0 is infinite.
            sums.total - select(there, S::new(1.0), S::new(0.0)).ln()
        }
    }
}
