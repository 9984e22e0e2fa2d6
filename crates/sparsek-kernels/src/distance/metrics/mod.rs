//! The distances, one file each.

use std::{fmt, str::FromStr};

use super::catalogue::{Distance, Entry};

macro_rules! metrics {
    ($($(#[$doc:meta])* $module:ident::$name:ident = $text:literal;)*) => {
        $(mod $module; pub use $module::$name;)*

        /// A distance by name.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Metric {
            $($(#[$doc])* $name,)*
            /// (Σ |x − y|^p)^(1/p), p > 0.
            Minkowski(f64),
        }

        impl Metric {
            /// All of them; of Minkowski's that with p = 3.
            pub const ALL: &[Self] = &[$(Self::$name,)* Self::Minkowski(3.0)];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                    Self::Minkowski(_) => "minkowski",
                }
            }

            /// What evaluates it.
            pub fn distance(self) -> &'static dyn Distance {
                match self {
                    $(Self::$name => Entry::<$name>::of(),)*
                    Self::Minkowski(3.0) => Entry::<MinkowskiCubed>::of(),
                    Self::Minkowski(_) => Entry::<Minkowski>::of(),
                }
            }
        }
    };
}

mod minkowski;
pub use minkowski::{Minkowski, MinkowskiCubed};

metrics! {
    /// Σ x y; larger is nearer.
    dot::Dot = "dot";
    /// √Σ (x − y)².
    euclidean::Euclidean = "euclidean";
    /// Σ (x − y)².
    sqeuclidean::SqEuclidean = "sqeuclidean";
    /// 1 − Σ x y / (‖x‖ ‖y‖).
    cosine::Cosine = "cosine";
    /// 1 − Pearson's correlation.
    correlation::Correlation = "correlation";
    /// |x ≠ y| / |x ∪ y| of patterns.
    jaccard::Jaccard = "jaccard";
    /// 1 − 2 |x ∩ y| / (|x| + |y|) of patterns.
    dice::Dice = "dice";
    /// (N − |x ∩ y|) / N of patterns.
    russell_rao::RussellRao = "russell-rao";
    /// The share of columns that differ.
    hamming::Hamming = "hamming";
    /// The share of columns that are in one pattern only.
    matching::Matching = "matching";
    /// 2 d / (N + d) of patterns that differ in d columns.
    rogers_tanimoto::RogersTanimoto = "rogerstanimoto";
    /// 2 d / (|x ∩ y| + 2 d) of patterns that differ in d columns.
    sokal_sneath::SokalSneath = "sokalsneath";
    /// 2 r s / (t f + r s) of patterns.
    yule::Yule = "yule";
    /// Σ |x − y|.
    manhattan::Manhattan = "manhattan";
    /// Σ |x − y| / (|x| + |y|).
    canberra::Canberra = "canberra";
    /// Σ |x − y| / Σ |x + y|.
    bray_curtis::BrayCurtis = "braycurtis";
    /// max |x − y|.
    chebyshev::Chebyshev = "chebyshev";
    /// √(1 − Σ √x √y) of rows divided by their sums.
    hellinger::Hellinger = "hellinger";
    /// √ of the Jensen-Shannon divergence of rows divided by their sums.
    jensen_shannon::JensenShannon = "jensen-shannon";
    /// Σ x ln(x / y).
    kl::KullbackLeibler = "kl";
    /// Σ (x − y) ln(x / y).
    symmetric_kl::SymmetricKl = "symmetric-kl";
}

impl Metric {
    /// The parameter; 0 where there is none.
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

/// A name that no metric has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no metric is called {name}; there are {}, and minkowski:P", names())]
pub struct UnknownMetric {
    /// What was asked for.
    pub name: String,
}

fn names() -> String {
    let all = Metric::ALL.iter().map(|metric| metric.name());
    let all: Vec<_> = all.filter(|name| *name != "minkowski").collect();
    all.join(", ")
}

impl FromStr for Metric {
    type Err = UnknownMetric;

    /// A name, of Minkowski's with its p: `manhattan`, `minkowski:3`.
    fn from_str(text: &str) -> Result<Self, UnknownMetric> {
        let unknown = || UnknownMetric { name: text.into() };
        if let Some(p) = text.strip_prefix("minkowski:") {
            let p = p.parse().ok().filter(|p: &f64| *p > 0.0 && p.is_finite());
            return p.map(Self::Minkowski).ok_or_else(unknown);
        }
        let named = Self::ALL.iter().copied();
        let mut named = named.filter(|metric| !matches!(metric, Self::Minkowski(_)));
        named
            .find(|metric| metric.name() == text)
            .ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for metric in Metric::ALL {
            assert_eq!(metric.to_string().parse(), Ok(*metric));
        }
        for wrong in ["", "minkowski", "minkowski:0", "minkowski:NaN", "l1"] {
            assert!(wrong.parse::<Metric>().is_err(), "{wrong}");
        }
    }
}
