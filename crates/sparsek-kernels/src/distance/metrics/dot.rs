#[cfg(feature = "kernels")]
use cubecl::prelude::*;

use crate::{
    distance::semiring::{Algebra, Gradient, Inner, Semiring, Strategy},
    semiring,
};

/// Inner product.
pub struct Dot;

semiring! {
    #[cube]
    impl Semiring for Dot {
        const ALGEBRA: Algebra =
            Algebra { largest: true, ..Algebra::PRODUCTS.symmetric().gradient(Gradient::Product) };
        const STRATEGY: Strategy = Strategy::SUMS.inner(Inner::Values);

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            a * b
        }
    }
}
