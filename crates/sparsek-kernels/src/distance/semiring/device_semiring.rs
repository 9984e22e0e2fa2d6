//! [`Semiring`]: a distance in kernels.

use cubecl::{prelude::*, unexpanded};

use super::{
    algebra::Algebra,
    strategy::Strategy,
    sums::{Sums, SumsExpand},
};

macro_rules! functions {
    ($(
        $(#[$doc:meta])*
        $name:ident $expand:ident ($($arg:ident),*) = |$scope:ident| $default:expr;
    )*) => {$(
        $(#[$doc])*
        fn $name<S: Float>($($arg: S),*) -> S {
            $(let _ = $arg;)*
            unexpanded!()
        }

        #[doc(hidden)]
        #[allow(unused_variables, reason = "a default may be a constant")]
        fn $expand<S: Float>($scope: &Scope, $($arg: NativeExpand<S>),*) -> NativeExpand<S> {
            $default
        }
    )*};
}

macro_rules! of_sums {
    ($(
        $(#[$doc:meta])*
        $name:ident $expand:ident ($($arg:ident),*) = |$sums:ident, $scope:ident| $default:expr;
    )*) => {$(
        $(#[$doc])*
        fn $name<S: Float>($($arg: S,)* sums: Sums<S>) -> S {
            $(let _ = $arg;)*
            let _ = sums;
            unexpanded!()
        }

        #[doc(hidden)]
        #[allow(unused_variables, reason = "a default may be a constant")]
        fn $expand<S: Float>(
            $scope: &Scope,
            $($arg: NativeExpand<S>,)*
            $sums: SumsExpand<S>
        ) -> NativeExpand<S> {
            $default
        }
    )*};
}

/// A distance in kernels, by `#[cube]`; [`semiring!`](crate::semiring) adds the host. Functions
/// return 0 by default, unless noted.
pub trait Semiring: Send + Sync + 'static {
    /// What is true of the distance; functions it does not name are never called.
    const ALGEBRA: Algebra;
    /// How routines evaluate it. Default: products of stored entries.
    const STRATEGY: Strategy = Strategy::PRODUCTS;

    functions! {
        /// Added to a row's norm.
        norm __expand_norm (a, p) = |scope| S::__expand_new(scope, 0.0);
        /// Replaces a stored value, given its row's norm. Default: the value.
        prepare __expand_prepare (a, norm) = |scope| a;
        /// Added to a row's second norm, of prepared values.
        second __expand_second (a) = |scope| S::__expand_new(scope, 0.0);
        /// Identity of [`reduce`](Self::reduce), such as `infinity`.
        identity __expand_identity () = |scope| S::__expand_new(scope, 0.0);
        /// Combines sums. Default: addition.
        reduce __expand_reduce (a, b) = |scope| a.__expand_add_method(scope, b);
        /// Added to the total per common column. Default: the product.
        product __expand_product (a, b, p) = |scope| a.__expand_mul_method(scope, b);
        /// Added to the second total per common column.
        other __expand_other (a, b) = |scope| S::__expand_new(scope, 0.0);
        /// Added to the core per column of either row; absent is 0. 0 for two zeros.
        direct __expand_direct (a, b, p) = |scope| S::__expand_new(scope, 0.0);
        /// Dense row's value. Default: the value.
        dense_value __expand_dense_value (b) = |scope| b;
        /// Dense row's absent value.
        absent __expand_absent () = |scope| S::__expand_new(scope, 0.0);
        /// Argument of [`contribution`](Self::contribution), per entry. Default: the value.
        left_value __expand_left_value (a) = |scope| a;
        /// Added to the total by [`Dense::Left`](crate::distance::Dense::Left); 0 for zeros.
        contribution __expand_contribution (a, left_value, dense_value) =
            |scope| S::__expand_new(scope, 0.0);
    }

    of_sums! {
        /// Distance before [`finalize`](Self::finalize). Default: the total.
        core __expand_core () = |sums, scope| sums.total;
        /// Magnitude of terms whose difference is the core.
        scale __expand_scale () = |sums, scope| S::__expand_new(scope, 0.0);
        /// Distance from its core. Default: the core.
        finalize __expand_finalize (core) = |sums, scope| core;
    }
}

#[cube]
pub(in crate::distance) fn combine<M: Semiring, S: Float>(a: S, b: S) -> S {
    if comptime!(M::ALGEBRA.maxima) { max(a, b) } else { a + b }
}
