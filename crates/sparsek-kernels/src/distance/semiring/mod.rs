//! HEAD

mod division;
mod host_semiring;
mod needs;
mod sums;

use cubecl::{prelude::*, unexpanded};

pub use self::{
    division::quotient,
    host_semiring::{HostSemiring, Real, host},
    needs::{Dense, Gradient, Inner, Needs, Rescale},
    sums::{Parameter, Sums, SumsExpand},
};

/// Whether the core has lost more to cancellation than is tolerable: it is this small beside what it is the difference of.
pub(super) const CANCELLED: f32 = 1.0 / 64.0;

/// Functions of numbers, for kernels, with what they are where they are not implemented.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident $expand:ident ($($arg:ident),*) = |$scope:ident| $default:expr;)*) => {$(
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

/// The same of what was summed.
macro_rules! of_sums {
    ($($(#[$doc:meta])* $name:ident $expand:ident ($($arg:ident),*) = |$sums:ident, $scope:ident| $default:expr;)*) => {$(
        $(#[$doc])*
        fn $name<S: Float>($($arg: S,)* sums: Sums<S>) -> S {
            $(let _ = $arg;)*
            let _ = sums;
            unexpanded!()
        }

        #[doc(hidden)]
        #[allow(unused_variables, reason = "a default may be a constant")]
        fn $expand<S: Float>($scope: &Scope, $($arg: NativeExpand<S>,)* $sums: SumsExpand<S>) -> NativeExpand<S> {
            $default
        }
    )*};
}

/// A distance in kernels. Implement it with `#[cube]`; what is not implemented has the default named.
pub trait Semiring: Send + Sync + 'static {
    /// What it needs; the rest is never called.
    const NEEDS: Needs;

    functions! {
        /// What a stored value adds to its row's norm; nothing.
        norm __expand_norm (a, p) = |scope| S::__expand_new(scope, 0.0);
        /// What a stored value is replaced by in everything that follows, given its row's norm; itself.
        prepare __expand_prepare (a, norm) = |scope| a;
        /// What a prepared value adds to its row's second norm; nothing.
        second __expand_second (a) = |scope| S::__expand_new(scope, 0.0);
        /// Where all sums begin, also those of a part of the columns: [`reduce`](Self::reduce) gives the other of two sums; zero.
        identity __expand_identity () = |scope| S::__expand_new(scope, 0.0);
        /// Two sums in one; their sum.
        reduce __expand_reduce (a, b) = |scope| a.__expand_add_method(scope, b);
        /// What a column that both rows have adds to the total; the product.
        product __expand_product (a, b, p) = |scope| a.__expand_mul_method(scope, b);
        /// What it adds to a second total; nothing.
        other __expand_other (a, b) = |scope| S::__expand_new(scope, 0.0);
        /// What a column adds to the core, zeros being whatever is absent; nothing.
        direct __expand_direct (a, b, p) = |scope| S::__expand_new(scope, 0.0);
        /// What a row that is dense has in place of a value; the value.
        dense_value __expand_dense_value (b) = |scope| b;
        /// What it has in place of an absent value; zero.
        absent __expand_absent () = |scope| S::__expand_new(scope, 0.0);
        /// What [`contribution`](Self::contribution) takes beside a value, made once; the value.
        left_value __expand_left_value (a) = |scope| a;
        /// What an entry adds to the total by [`Dense::Left`], given what the dense row has in its column; zero. Zeros add
        /// nothing.
        contribution __expand_contribution (a, left_value, dense_value) = |scope| S::__expand_new(scope, 0.0);
    }

    of_sums! {
        /// The distance before its last function; the total.
        core __expand_core () = |sums, scope| sums.total;
        /// The size of that of which the core is a difference; zero.
        scale __expand_scale () = |sums, scope| S::__expand_new(scope, 0.0);
        /// The distance from its core; the core.
        finalize __expand_finalize (core) = |sums, scope| core;
    }
}

/// Two norms, or two sums of [`Semiring::direct`], in one.
#[cube]
pub(super) fn combine<M: Semiring, S: Float>(a: S, b: S) -> S {
    if comptime!(M::NEEDS.maxima) {
        max(a, b)
    } else {
        a + b
    }
}

/// An implementation of [`Semiring`] whose formulas hold on the host as well ([`HostSemiring`]).
#[macro_export]
macro_rules! semiring {
    (@host
        #[cube]
        impl Semiring for $name:ident {
            const NEEDS: Needs = $needs:expr;
            $($formulas:tt)*
        }
    ) => {
        const _: () = {
            #[allow(unused_imports, reason = "formulas call what they need")]
            use $crate::distance::formulas::{Float, max, min, quotient, select};

            impl $crate::distance::HostSemiring for $name {
                $($formulas)*
            }
        };
    };
    ($($item:tt)*) => {
        $($item)*
        $crate::semiring!(@host $($item)*);
    };
}
