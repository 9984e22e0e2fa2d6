//! Nonzero is true. Total |x∩y|, norms |x|, |y|.

#[cfg(feature = "kernels")]
use cubecl::prelude::*;

use crate::{
    distance::semiring::{Algebra, Inner, Semiring, Strategy, Sums},
    semiring,
};

/// `#[cube]` needs all tokens, its attribute too, from one caller.
macro_rules! patterns {
    ($hash:tt $cube:tt $common:tt $($(#[$doc:meta])* $name:ident = $algebra:ident $core:tt)*) => {$(
        $(#[$doc])*
        pub struct $name;

        patterns! { @impl $hash $cube $name $algebra $common $core }
    )*};
    (@impl
        $hash:tt $cube:tt $name:ident $algebra:ident { $($common:tt)* } { $($core:tt)* }
    ) => {
        semiring! {
            $hash $cube
            impl Semiring for $name {
                const ALGEBRA: Algebra = Algebra::$algebra.symmetric();
                const STRATEGY: Strategy = Strategy::SUMS.inner(Inner::Ones);

                $($common)*
                $($core)*
            }
        }
    };
}

patterns! {
    #[cube]
    {
        fn norm<S: Float>(a: S, _p: S) -> S {
            select(a == S::new(0.0), S::new(0.0), S::new(1.0))
        }

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            let missing = a == S::new(0.0) || b == S::new(0.0);
            select(missing, S::new(0.0), S::new(1.0))
        }
    }

    /// Dice distance. NaN for two zero rows.
    Dice = NORMS {
        fn core<S: Float>(sums: Sums<S>) -> S {
            let both = sums.x + sums.y;
            (both - S::new(2.0) * sums.total) / both
        }
    }

    /// Jaccard distance. 0 for two zero rows.
    Jaccard = NORMS {
        fn core<S: Float>(sums: Sums<S>) -> S {
            let either = sums.x + sums.y - sums.total;
            let none = either == S::new(0.0);
            (either - sums.total) / select(none, S::new(1.0), either)
        }
    }

    /// Russell-Rao distance. 0 to itself only for a full row, unlike RAFT.
    RussellRao = PRODUCTS {
        fn core<S: Float>(sums: Sums<S>) -> S {
            (sums.cols - sums.total) / sums.cols
        }
    }

    /// Sokal-Sneath distance. NaN for two zero rows.
    SokalSneath = NORMS {
        fn core<S: Float>(sums: Sums<S>) -> S {
            let twice = S::new(2.0) * (sums.x + sums.y - S::new(2.0) * sums.total);
            twice / (sums.total + twice)
        }
    }

    /// Rogers-Tanimoto distance.
    RogersTanimoto = NORMS {
        fn core<S: Float>(sums: Sums<S>) -> S {
            let differing = sums.x + sums.y - S::new(2.0) * sums.total;
            S::new(2.0) * differing / (sums.cols + differing)
        }
    }

    /// Yule distance; r, s columns in x or y only, t in both, f in neither. 0 if rs = 0.
    Yule = NORMS {
        fn core<S: Float>(sums: Sums<S>) -> S {
            let only_x = sums.x - sums.total;
            let only_y = sums.y - sums.total;
            let neither = sums.cols - (sums.x + only_y);
            let half = only_x * only_y;
            let whole = sums.total * neither + half;
            S::new(2.0) * half / select(half == S::new(0.0), S::new(1.0), whole)
        }
    }

    /// Matching distance.
    Matching = NORMS {
        fn core<S: Float>(sums: Sums<S>) -> S {
            (sums.x + sums.y - S::new(2.0) * sums.total) / sums.cols
        }
    }
}
