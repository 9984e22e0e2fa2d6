//! What a distance is made of, for devices and for the host.
//!
//! A distance of two sparse rows is `finalise(core(sums), sums)`. The sums run over the columns that both rows have, and over
//! each row on its own: for every distance that adds up, Σ f(a, b) = F(x) + F(y) + Σ g(a, b) where F is a sum over one row
//! and g = f(a, b) − f(a, 0) − f(0, b) is zero outside the columns that both have. Where most of the three cancels, the
//! core is evaluated again, column by column ([`Semiring::direct`]). A maximum of f(a, b) is made of maxima in the
//! same way ([`Needs::maxima`]): the greatest f(a, 0) of either row decides it, but where that entry may have been met.

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

use cubecl::{prelude::*, unexpanded};

pub use super::needs::{Dense, Gradient, Inner, Needs, Rescale};
use super::numbers::{Sums, SumsExpand};

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
        laid __expand_laid (b) = |scope| b;
        /// What it has in place of an absent value; zero.
        absent __expand_absent () = |scope| S::__expand_new(scope, 0.0);
        /// What [`share`](Self::share) takes beside a value, made once; the value.
        aid __expand_aid (a) = |scope| a;
        /// What an entry adds to the total by [`Dense::Left`], given what the dense row has in its column; zero. Zeros add
        /// nothing.
        share __expand_share (a, aid, laid) = |scope| S::__expand_new(scope, 0.0);
    }

    of_sums! {
        /// The distance before its last function; the total.
        core __expand_core () = |sums, scope| sums.total;
        /// The size of that of which the core is a difference; zero.
        scale __expand_scale () = |sums, scope| S::__expand_new(scope, 0.0);
        /// The distance from its core; the core.
        finalise __expand_finalise (core) = |sums, scope| core;
    }
}

/// Numbers of the host, with the names that numbers have in kernels.
pub trait Real:
    CubePrimitive
    + Copy
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + Send
    + Sync
{
    /// The number nearest to this one.
    fn new(value: f32) -> Self;
    /// The absolute value.
    fn abs(self) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// The natural logarithm.
    fn ln(self) -> Self;
    /// The natural logarithm of 1 + self.
    fn log1p(self) -> Self;
    /// A power.
    fn powf(self, exponent: Self) -> Self;
}

macro_rules! real {
    ($($t:ty),*) => {$(
        impl Real for $t {
            fn new(value: f32) -> Self {
                value.into()
            }
            fn abs(self) -> Self {
                <$t>::abs(self)
            }
            fn sqrt(self) -> Self {
                <$t>::sqrt(self)
            }
            fn ln(self) -> Self {
                <$t>::ln(self)
            }
            fn log1p(self) -> Self {
                <$t>::ln_1p(self)
            }
            fn powf(self, exponent: Self) -> Self {
                <$t>::powf(self, exponent)
            }
        }
    )*};
}

real!(f32, f64);

/// The distance on the host: [`Semiring`] in plain Rust, with the same defaults.
pub trait HostSemiring: Send + Sync + 'static {
    /// [`Semiring::norm`].
    fn norm<S: Real>(_a: S, _p: S) -> S {
        S::new(0.0)
    }
    /// [`Semiring::prepare`].
    fn prepare<S: Real>(a: S, _norm: S) -> S {
        a
    }
    /// [`Semiring::second`].
    fn second<S: Real>(_a: S) -> S {
        S::new(0.0)
    }
    /// [`Semiring::identity`].
    fn identity<S: Real>() -> S {
        S::new(0.0)
    }
    /// [`Semiring::reduce`].
    fn reduce<S: Real>(a: S, b: S) -> S {
        a + b
    }
    /// [`Semiring::product`].
    fn product<S: Real>(a: S, b: S, _p: S) -> S {
        a * b
    }
    /// [`Semiring::other`].
    fn other<S: Real>(_a: S, _b: S) -> S {
        S::new(0.0)
    }
    /// [`Semiring::direct`].
    fn direct<S: Real>(_a: S, _b: S, _p: S) -> S {
        S::new(0.0)
    }
    /// [`Semiring::laid`].
    fn laid<S: Real>(b: S) -> S {
        b
    }
    /// [`Semiring::absent`].
    fn absent<S: Real>() -> S {
        S::new(0.0)
    }
    /// [`Semiring::aid`].
    fn aid<S: Real>(a: S) -> S {
        a
    }
    /// [`Semiring::share`].
    fn share<S: Real>(_a: S, _aid: S, _laid: S) -> S {
        S::new(0.0)
    }
    /// [`Semiring::core`].
    fn core<S: Real>(sums: Sums<S>) -> S {
        sums.total
    }
    /// [`Semiring::scale`].
    fn scale<S: Real>(_sums: Sums<S>) -> S {
        S::new(0.0)
    }
    /// [`Semiring::finalise`].
    fn finalise<S: Real>(core: S, _sums: Sums<S>) -> S {
        core
    }
}

/// What formulas call on the host, by the names that it has in kernels.
pub mod host {
    pub use super::Real as Float;
    use super::Real;

    /// One of two values.
    pub fn select<S>(condition: bool, then: S, otherwise: S) -> S {
        if condition { then } else { otherwise }
    }

    /// A quotient; in kernels to within 3e-7 where the divisor is above 0 and not less than the dividend.
    pub fn quotient<S: Real>(dividend: S, divisor: S) -> S {
        dividend / divisor
    }

    /// The greater number.
    pub fn max<S: Real>(a: S, b: S) -> S {
        if a > b { a } else { b }
    }

    /// The lesser number.
    pub fn min<S: Real>(a: S, b: S) -> S {
        if a < b { a } else { b }
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
