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
/// default to 0 unless noted.
pub trait Semiring: Send + Sync + 'static {
    /// Properties; unnamed functions are never called.
    const ALGEBRA: Algebra;
    /// Default: products of stored entries.
    const STRATEGY: Strategy = Strategy::PRODUCTS;

    functions! {
        /// Norm's term.
        norm __expand_norm (a, p) = |scope| S::__expand_new(scope, 0.0);
        /// Prepared value. Default: the value.
        prepare __expand_prepare (a, norm) = |scope| a;
        /// Second norm's term of a prepared value.
        second __expand_second (a) = |scope| S::__expand_new(scope, 0.0);
        /// Identity of [`reduce`](Self::reduce).
        identity __expand_identity () = |scope| S::__expand_new(scope, 0.0);
        /// Combines sums. Default: addition.
        reduce __expand_reduce (a, b) = |scope| a.__expand_add_method(scope, b);
        /// Total's term. Default: the product.
        product __expand_product (a, b, p) = |scope| a.__expand_mul_method(scope, b);
        /// Second total's term.
        other __expand_other (a, b) = |scope| S::__expand_new(scope, 0.0);
        /// Core's term, over either row's columns; 0 for two zeros.
        direct __expand_direct (a, b, p) = |scope| S::__expand_new(scope, 0.0);
        /// Dense value. Default: the value.
        dense_value __expand_dense_value (b) = |scope| b;
        /// Absent dense value.
        absent __expand_absent () = |scope| S::__expand_new(scope, 0.0);
        /// Per-entry argument of [`contribution`](Self::contribution). Default: the value.
        left_value __expand_left_value (a) = |scope| a;
        /// Total's term for [`Dense::Left`](crate::distance::Dense::Left); 0 for zeros.
        contribution __expand_contribution (a, left_value, dense_value) =
            |scope| S::__expand_new(scope, 0.0);
    }

    of_sums! {
        /// Distance before [`finalize`](Self::finalize). Default: the total.
        core __expand_core () = |sums, scope| sums.total;
        /// Magnitude of the core's terms.
        scale __expand_scale () = |sums, scope| S::__expand_new(scope, 0.0);
        /// Distance. Default: the core.
        finalize __expand_finalize (core) = |sums, scope| core;
    }
}

#[cube]
pub(in crate::distance) fn combine<M: Semiring, S: Float>(a: S, b: S) -> S {
    if comptime!(M::ALGEBRA.maxima) { max(a, b) } else { a + b }
}
