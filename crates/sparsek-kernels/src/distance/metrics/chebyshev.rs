//! Chebyshev distance: max |x − y|, over the columns that either row has.

use cubecl::prelude::*;

use crate::{
    distance::{Dense, Needs, Semiring},
    semiring,
};

/// The distance.
pub struct Chebyshev;

semiring! {
    #[cube]
    impl Semiring for Chebyshev {
        const NEEDS: Needs = Needs { annihilates: false, ..Needs::PRODUCTS.dense(Some(Dense::Either)).symmetric() };

        fn reduce<S: Float>(a: S, b: S) -> S {
            max(a, b)
        }

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            (a - b).abs()
        }
    }
}
