//! Slopes by `a` of a column's contribution; finite at kinks and singularities.

#![allow(missing_docs, reason = "the macro writes modules of its own beside the functions")]

#[cfg(feature = "kernels")]
use cubecl::prelude::*;

const LEAST: f32 = 7.888_609e-31;
const FAR: f32 = 1.267_650_6e30;
const MOST: f32 = 1.329_228e36;
/// Covers rounding of distances.
const SLACK: f32 = 1.0 + 1.0 / 64.0;

macro_rules! slopes {
    (@host $(
        #[cube]
        $(#[$doc:meta])*
        pub(super) fn $name:ident<S: Float>($($arg:ident: S),*) -> S { $($body:tt)* }
    )*) => {
        /// Host functions.
        pub mod host {
            use super::{FAR, LEAST, MOST, SLACK};
            use crate::distance::semiring::host::{Float, max, select};

            $(
                $(#[$doc])*
                pub fn $name<S: Float>($($arg: S),*) -> S { $($body)* }
            )*
        }
    };
    ($($item:tt)*) => {
        crate::device_item! { $($item)* }
        slopes!(@host $($item)*);
    };
}

slopes! {
    #[cube]
    pub(super) fn sign<S: Float>(a: S) -> S {
        let positive = select(a > S::new(0.0), S::new(1.0), S::new(0.0));
        select(a < S::new(0.0), S::new(-1.0), positive)
    }

    #[cube]
    /// |a−b|/(|a|+|b|); at a = 0, the mean of both sides.
    pub(super) fn canberra<S: Float>(a: S, b: S) -> S {
        let whole = max(a.abs(), b.abs()) < S::new(MOST);
        let size = a.abs() + b.abs();
        let used = size > S::new(0.0) && whole;
        let size = select(used, size, S::new(1.0));
        let share = b.abs() / size * (S::new(1.0) + sign::<S>(a) * sign::<S>(b));
        select(used, sign::<S>(a - b) * share / size, S::new(0.0))
    }

    #[cube]
    /// Dividend's slope − `distance` · divisor's, less the same for an absent b.
    pub(super) fn bray_curtis<S: Float>(a: S, b: S, distance: S) -> S {
        let own = sign::<S>(a);
        (sign::<S>(a - b) - own) - distance * (sign::<S>(a + b) - own)
    }

    #[cube]
    /// sign(d) (|d|/distance)^(p−1), d = a−b.
    pub(super) fn minkowski<S: Float>(difference: S, distance: S, p: S) -> S {
        let size = difference.abs();
        let used = size > S::new(0.0);
        let ratio = select(used, size / distance, S::new(1.0));
        sign::<S>(difference) * ratio.powf(p - S::new(1.0))
    }

    #[cube]
    /// 1 if |a| ≤ `distance`: the column may be absent.
    pub(super) fn may_be_absent<S: Float>(a: S, distance: S) -> S {
        select(a.abs() <= distance * S::new(SLACK), S::new(1.0), S::new(0.0))
    }

    #[cube]
    /// Of positive values.
    pub(super) fn log_ratio<S: Float>(a: S, b: S) -> S {
        let ratio = a / b;
        let far = ratio > S::new(FAR) || ratio * S::new(FAR) < S::new(1.0) || b > S::new(MOST);
        let near = select(far, S::new(1.0), ratio).ln();
        select(far, a.ln() - b.ln(), near)
    }

    #[cube]
    /// a ln(a/b).
    pub(super) fn kl<S: Float>(a: S, b: S) -> S {
        let missing = a <= S::new(0.0) || b <= S::new(0.0);
        let a = select(missing, S::new(1.0), a);
        let b = select(missing, S::new(1.0), b);
        select(missing, S::new(0.0), log_ratio::<S>(a, b) + S::new(1.0))
    }

    #[cube]
    /// b ln(b/a).
    pub(super) fn kl_of_second<S: Float>(a: S, b: S) -> S {
        let missing = a <= S::new(0.0) || b <= S::new(0.0);
        select(missing, S::new(0.0), -b / select(missing, S::new(1.0), a))
    }

    #[cube]
    /// (a−b) ln(a/b).
    pub(super) fn symmetric_kl<S: Float>(a: S, b: S) -> S {
        kl::<S>(a, b) + kl_of_second::<S>(a, b)
    }

    #[cube]
    /// a ln(2a/(a+b)) + b ln(2b/(a+b)), less ln 2.
    pub(super) fn jensen_shannon<S: Float>(a: S, b: S) -> S {
        let missing = a <= S::new(LEAST) || b <= S::new(LEAST);
        let a = select(missing, S::new(1.0), a);
        let b = select(missing, S::new(1.0), b);
        select(missing, S::new(0.0), (a / (a + b)).ln())
    }

    #[cube]
    /// √y/√x.
    pub(super) fn hellinger<S: Float>(a: S, b: S) -> S {
        let missing = a <= S::new(0.0);
        select(missing, S::new(0.0), b / select(missing, S::new(1.0), a))
    }
}

#[cfg(test)]
mod tests {
    use super::host;

    fn difference(f: impl Fn(f64) -> f64, a: f64) -> f64 {
        let h = 1e-6;
        (f(a + h) - f(a - h)) / (2.0 * h)
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-7 * (1.0 + expected.abs()), "{found} {expected}");
    }

    #[test]
    fn slopes_are_those_of_the_contributions() {
        for (a, b) in [(0.5, 2.0), (3.0, 0.25), (-1.5, 2.0), (-2.0, -0.5), (1.25, -4.0)] {
            let canberra = |a: f64| (a - b).abs() / (a.abs() + b.abs());
            near(host::canberra(a, b), difference(canberra, a));
            for p in [0.5, 1.0, 1.5, 3.0] {
                let minkowski = |a: f64| ((a - b).abs().powf(p) + 2f64.powf(p)).powf(1.0 / p);
                near(host::minkowski(a - b, minkowski(a), p), difference(minkowski, a));
            }
            let (sum, less) = (|a: f64| (a + b).abs() - a.abs(), |a: f64| (a - b).abs() - a.abs());
            let expected = difference(less, a) - 0.75 * difference(sum, a);
            near(host::bray_curtis(a, b, 0.75), expected);
        }
        for (a, b) in [(0.5, 2.0), (3.0, 0.25), (2.0, 2.0)] {
            near(host::kl(a, b), difference(|a: f64| a * (a / b).ln(), a));
            near(host::kl_of_second(a, b), difference(|a: f64| b * (b / a).ln(), a));
            near(host::symmetric_kl(a, b), difference(|a: f64| (a - b) * (a / b).ln(), a));
            let divergence = |a: f64| {
                let mean = f64::midpoint(a, b);
                a * (a / mean).ln() + b * (b / mean).ln()
            };
            let expected = difference(divergence, a) - 2f64.ln();
            near(host::jensen_shannon(a, b), expected);
            near(host::hellinger(a.sqrt(), b.sqrt()), 2.0 * difference(|a| (a * b).sqrt(), a));
        }
    }

    #[test]
    fn kinks_and_zeros_are_finite() {
        assert_eq!(host::canberra(2.0, 2.0), 0.0);
        assert_eq!(host::canberra(0.0, 0.0), 0.0);
        assert_eq!(host::canberra(3.0, 0.0), 0.0);
        // Mean of −2/b and 0.
        assert_eq!(host::canberra(0.0, 4.0), -0.25);
        assert_eq!(host::minkowski(0.0, 1.0, 0.5), 0.0);
        assert_eq!(host::bray_curtis(2.0, 2.0, 0.0), -1.0);
        for slope in [host::kl, host::kl_of_second, host::symmetric_kl, host::jensen_shannon] {
            assert_eq!([slope(0.0, 2.0), slope(2.0, 0.0), slope(0.0, 0.0)], [0.0; 3]);
        }
        assert_eq!(host::hellinger(0.0, 2.0), 0.0);
        near(host::log_ratio(1e300, 1e-300), 600.0 * 10f64.ln());
    }
}
