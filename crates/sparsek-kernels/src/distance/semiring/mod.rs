//! [`Semiring`] defines a distance on devices, [`HostSemiring`] on the host.
//!
//! ```text
//! d(x, y) = finalize(core(sums), sums)
//! sums: Σ product(a, b) over common columns, Σ norm(a), Σ norm(b)
//! ```
//!
//! Σf(a,b) = Σf(a,0) + Σf(0,b) + Σg(a,b), where g = f(a,b)−f(a,0)−f(0,b) is 0 outside
//! common columns (paper, Sections 2.2, 3.4). After cancellation, [`Semiring::direct`] evaluates
//! again. For [`Algebra::maxima`], the greatest f(a,0) decides, unless in a common column.

mod algebra;
#[cfg(feature = "kernels")]
mod device_semiring;
#[cfg(feature = "kernels")]
mod division;
mod host_semiring;
mod strategy;
mod sums;

#[cfg(feature = "kernels")]
pub(super) use self::device_semiring::combine;
// For metrics without kernels.
#[cfg(not(feature = "kernels"))]
pub(in crate::distance) use self::host_semiring::{
    HostSemiring as Semiring,
    host::{infinity, quotient},
};
pub use self::{
    algebra::{Algebra, Gradient},
    host_semiring::{HostSemiring, Real, host},
    strategy::{Dense, Inner, Rescale, Strategy},
    sums::Sums,
};
#[cfg(feature = "kernels")]
pub use self::{
    device_semiring::Semiring,
    division::quotient,
    sums::{Parameter, SumsExpand},
};
#[cfg(feature = "kernels")]
pub use crate::primitives::infinity::infinity;

/// Least accurate core / scale.
pub(super) const CANCELLED: f32 = 1.0 / 64.0;

/// Implements [`Semiring`](crate::distance::Semiring) and, by the same formulas,
/// [`HostSemiring`](crate::distance::HostSemiring).
#[macro_export]
macro_rules! semiring {
    (@host
        #[cube]
        impl Semiring for $name:ident {
            $($body:tt)*
        }
    ) => {
        const _: () = {
            #[allow(unused_imports, reason = "formulas call what they need")]
            use $crate::distance::formulas::{Float, infinity, max, min, quotient, select};

            impl $crate::distance::HostSemiring for $name {
                $($body)*
            }
        };
    };
    ($($item:tt)*) => {
        $crate::device_item! { $($item)* }
        $crate::semiring!(@host $($item)*);
    };
}

/// The item.
#[cfg(feature = "kernels")]
#[doc(hidden)]
#[macro_export]
macro_rules! device_item {
    ($($item:tt)*) => { $($item)* };
}

/// Nothing.
#[cfg(not(feature = "kernels"))]
#[doc(hidden)]
#[macro_export]
macro_rules! device_item {
    ($($item:tt)*) => {};
}
