//! Σ x y, larger is nearer; 0 for a zero row.

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
