//! Inner product: Σ x y. Larger is nearer. A zero row has 0 with every other.

use cubecl::prelude::*;

use crate::{
    distance::semiring::{Gradient, Inner, Needs, Semiring},
    semiring,
};

/// Inner product.
pub struct Dot;

semiring! {
    #[cube]
    impl Semiring for Dot {
        const NEEDS: Needs = Needs {
            gradient: Some(Gradient::Product),
            largest: true,
            ..Needs::SUMS
                .symmetric()
                .inner(Inner::Values)
        };

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            a * b
        }
    }
}
