//! Russell-Rao distance of patterns: (N − |x ∩ y|) / N over N columns. A row is not at distance 0 from itself unless it is
//! full, as SciPy has it; RAFT forces it.
//! Values count as true where they are not zero.

use cubecl::prelude::*;

use crate::{
    distance::{Inner, Needs, Semiring, Sums},
    semiring,
};

/// The distance.
pub struct RussellRao;

semiring! {
    #[cube]
    impl Semiring for RussellRao {
        const NEEDS: Needs = Needs::SUMS.symmetric().inner(Inner::Ones);

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            let lone = a == S::new(0.0) || b == S::new(0.0);
            select(lone, S::new(0.0), S::new(1.0))
        }

        fn core<S: Float>(sums: Sums<S>) -> S {
            (sums.cols - sums.total) / sums.cols
        }
    }
}
