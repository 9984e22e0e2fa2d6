//! The named distances, as SciPy defines them.

mod bray_curtis;
mod canberra;
mod chebyshev;
mod correlation;
mod cosine;
mod dot;
mod euclidean;
mod hamming;
mod hellinger;
mod jensen_shannon;
mod kl;
mod manhattan;
mod minkowski;
mod patterns;
mod sqeuclidean;
mod symmetric_kl;

use std::{fmt, str::FromStr};

pub use self::{
    bray_curtis::BrayCurtis,
    canberra::Canberra,
    chebyshev::Chebyshev,
    correlation::Correlation,
    cosine::Cosine,
    dot::Dot,
    euclidean::Euclidean,
    hamming::Hamming,
    hellinger::Hellinger,
    jensen_shannon::JensenShannon,
    kl::KullbackLeibler,
    manhattan::Manhattan,
    minkowski::{Minkowski, MinkowskiCubed},
    patterns::{Dice, Jaccard, Matching, RogersTanimoto, RussellRao, SokalSneath, Yule},
    sqeuclidean::SqEuclidean,
    symmetric_kl::SymmetricKl,
};
use super::metric::{Distance, DynMetric};

macro_rules! metrics {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// A distance by name; set notation counts nonzero columns, of N.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(try_from = "String", into = "String"))]
        #[non_exhaustive]
        pub enum Metric {
            $($(#[$doc])* $name,)*
            /// (Σ |x − y|^p)^(1/p), p > 0.
            Minkowski(f64),
        }

        impl Metric {
            /// All metrics; p = 3 for Minkowski.
            pub const ALL: &[Self] = &[$(Self::$name,)* Self::Minkowski(3.0)];

            /// The name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                    Self::Minkowski(_) => "minkowski",
                }
            }

            /// The implementation.
            pub fn distance(self) -> &'static dyn Distance {
                match self {
                    $(Self::$name => DynMetric::<$name>::of(),)*
                    Self::Minkowski(3.0) => DynMetric::<MinkowskiCubed>::of(),
                    Self::Minkowski(_) => DynMetric::<Minkowski>::of(),
                }
            }
        }
    };
}

metrics! {
    /// Σ x y; larger is nearer.
    Dot = "dot";
    /// √Σ (x − y)².
    Euclidean = "euclidean";
    /// Σ (x − y)².
    SqEuclidean = "sqeuclidean";
    /// 1 − Σ x y / (‖x‖ ‖y‖).
    Cosine = "cosine";
    /// 1 − Pearson's correlation.
    Correlation = "correlation";
    /// |x ≠ y| / |x ∪ y|.
    Jaccard = "jaccard";
    /// 1 − 2 |x ∩ y| / (|x| + |y|).
    Dice = "dice";
    /// (N − |x ∩ y|) / N.
    RussellRao = "russell-rao";
    /// Share of columns that differ.
    Hamming = "hamming";
    /// d / N, d columns in one row only.
    Matching = "matching";
    /// 2 d / (N + d), d as in `Matching`.
    RogersTanimoto = "rogerstanimoto";
    /// 2 d / (|x ∩ y| + 2 d), likewise.
    SokalSneath = "sokalsneath";
    /// 2 r s / (t f + r s), as in [`Yule`].
    Yule = "yule";
    /// Σ |x − y|.
    Manhattan = "manhattan";
    /// Σ |x − y| / (|x| + |y|).
    Canberra = "canberra";
    /// Σ |x − y| / Σ |x + y|.
    BrayCurtis = "braycurtis";
    /// max |x − y|.
    Chebyshev = "chebyshev";
    /// √(1 − Σ √x √y) of row shares.
    Hellinger = "hellinger";
    /// √ of the Jensen-Shannon divergence of row shares.
    JensenShannon = "jensen-shannon";
    /// Σ x ln(x / y).
    KullbackLeibler = "kl";
    /// Σ (x − y) ln(x / y).
    SymmetricKl = "symmetric-kl";
}

impl Metric {
    /// The parameter, or 0.
    pub fn p(self) -> f64 {
        match self {
            Self::Minkowski(p) => p,
            _ => 0.0,
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Minkowski(p) => write!(f, ":{p}"),
            _ => Ok(()),
        }
    }
}

/// An unknown name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no metric is called {name}; there are {}, and minkowski:P", names())]
pub struct UnknownMetric {
    /// The name.
    pub name: String,
}

fn names() -> String {
    let all = Metric::ALL.iter().map(|metric| metric.name());
    let all: Vec<_> = all.filter(|name| *name != "minkowski").collect();
    all.join(", ")
}

impl FromStr for Metric {
    type Err = UnknownMetric;

    /// Parses `manhattan`, or `minkowski:3` with p.
    fn from_str(text: &str) -> Result<Self, UnknownMetric> {
        let unknown = || UnknownMetric { name: text.into() };
        if let Some(p) = text.strip_prefix("minkowski:") {
            let p = p.parse().ok().filter(|p: &f64| *p > 0.0 && p.is_finite());
            return p.map(Self::Minkowski).ok_or_else(unknown);
        }
        let named = Self::ALL.iter().copied();
        let mut named = named.filter(|metric| !matches!(metric, Self::Minkowski(_)));
        named.find(|metric| metric.name() == text).ok_or_else(unknown)
    }
}

impl TryFrom<String> for Metric {
    type Error = UnknownMetric;

    fn try_from(text: String) -> Result<Self, UnknownMetric> {
        text.parse()
    }
}

impl From<Metric> for String {
    fn from(metric: Metric) -> Self {
        metric.to_string()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for metric in Metric::ALL {
            assert_eq!(metric.to_string().parse(), Ok(*metric));
        }
    }

    #[rstest]
    fn other_names_are_refused(
        #[values("", "minkowski", "minkowski:0", "minkowski:NaN", "l1")] wrong: &str,
    ) {
        assert!(wrong.parse::<Metric>().is_err());
    }
}
