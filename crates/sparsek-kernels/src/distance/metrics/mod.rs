//! Named distances, as SciPy defines them.

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
    bray_curtis::{BrayCurtis, Divisor},
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
use super::{
    metric::{Distance, DynMetric},
    semiring::Gradient,
};

macro_rules! metrics {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// Distance by name. Sets count nonzero columns, of N.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(try_from = "String", into = "String"))]
        #[non_exhaustive]
        pub enum Metric {
            $($(#[$doc])* $name,)*
            /// (Σ|x−y|^p)^(1/p), p > 0.
            Minkowski(f64),
        }

        impl Metric {
            /// All; p = 3 for Minkowski.
            pub const ALL: &[Self] = &[$(Self::$name,)* Self::Minkowski(3.0)];

            /// Name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                    Self::Minkowski(_) => "minkowski",
                }
            }

            /// Implementation.
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
    /// Σxy; larger is nearer.
    Dot = "dot";
    /// √Σ(x−y)².
    Euclidean = "euclidean";
    /// Σ(x−y)².
    SqEuclidean = "sqeuclidean";
    /// 1 − Σxy/(‖x‖‖y‖).
    Cosine = "cosine";
    /// 1 − Pearson's correlation.
    Correlation = "correlation";
    /// |x≠y|/|x∪y|.
    Jaccard = "jaccard";
    /// 1 − 2|x∩y|/(|x|+|y|).
    Dice = "dice";
    /// (N−|x∩y|)/N.
    RussellRao = "russell-rao";
    /// Share of differing columns.
    Hamming = "hamming";
    /// d/N, d columns in one row.
    Matching = "matching";
    /// 2d/(N+d), likewise.
    RogersTanimoto = "rogerstanimoto";
    /// 2d/(|x∩y|+2d), likewise.
    SokalSneath = "sokalsneath";
    /// 2rs/(tf+rs), as in [`Yule`].
    Yule = "yule";
    /// Σ|x−y|.
    Manhattan = "manhattan";
    /// Σ |x−y|/(|x|+|y|).
    Canberra = "canberra";
    /// Σ|x−y|/Σ|x+y|.
    BrayCurtis = "braycurtis";
    /// max |x−y|.
    Chebyshev = "chebyshev";
    /// √(1 − Σ√x√y) of row shares.
    Hellinger = "hellinger";
    /// √ of the Jensen-Shannon divergence of shares.
    JensenShannon = "jensen-shannon";
    /// Σ x ln(x/y).
    KullbackLeibler = "kl";
    /// Σ (x−y) ln(x/y).
    SymmetricKl = "symmetric-kl";
}

/// Divisor of a gradient, if any.
pub fn divisor(slope: Gradient) -> Option<&'static dyn Distance> {
    (slope == Gradient::BrayCurtis).then(DynMetric::<Divisor>::of)
}

impl Metric {
    /// Names in SciPy, scikit-learn and cuVS.
    pub const ALIASES: &[(&str, Self)] = &[
        ("l1", Self::Manhattan),
        ("cityblock", Self::Manhattan),
        ("taxicab", Self::Manhattan),
        ("l2", Self::Euclidean),
        ("linf", Self::Chebyshev),
        ("infinity", Self::Chebyshev),
        ("inner-product", Self::Dot),
        ("sokal-michener", Self::RogersTanimoto),
        ("kl-divergence", Self::KullbackLeibler),
        ("kullback-leibler", Self::KullbackLeibler),
        ("jeffreys", Self::SymmetricKl),
    ];

    /// Parameter, or 0.
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

/// Unknown name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no metric is called {name}; there are {}, and minkowski:P; also known are {}",
    names(),
    aliases()
)]
pub struct UnknownMetric {
    /// Name.
    pub name: String,
}

fn names() -> String {
    let all = Metric::ALL.iter().map(|metric| metric.name());
    let all: Vec<_> = all.filter(|name| *name != "minkowski").collect();
    all.join(", ")
}

fn aliases() -> String {
    let all: Vec<_> = Metric::ALIASES.iter().map(|&(name, _)| name).collect();
    all.join(", ")
}

fn plain(name: &str) -> String {
    name.replace(['-', '_'], "")
}

impl FromStr for Metric {
    type Err = UnknownMetric;

    /// Parses a name, an [alias](Metric::ALIASES) or `minkowski:3`; ignores `-` and `_`.
    fn from_str(text: &str) -> Result<Self, UnknownMetric> {
        let unknown = || UnknownMetric { name: text.into() };
        if let Some(p) = text.strip_prefix("minkowski:") {
            let p = p.parse().ok().filter(|p: &f64| *p > 0.0 && p.is_finite());
            return p.map(Self::Minkowski).ok_or_else(unknown);
        }
        let named = Self::ALL.iter().map(|&metric| (metric.name(), metric));
        let named = named.filter(|(_, metric)| !matches!(metric, Self::Minkowski(_)));
        let mut named = named.chain(Self::ALIASES.iter().copied());
        let text = plain(text);
        named.find(|(name, _)| plain(name) == text).map(|(_, metric)| metric).ok_or_else(unknown)
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
        #[values("", "-", "minkowski", "minkowski:0", "minkowski:NaN", "l3", "Manhattan")]
        wrong: &str,
    ) {
        let error = wrong.parse::<Metric>().unwrap_err().to_string();
        let known = ["dot, euclidean", "minkowski:P", "l1, cityblock", "jeffreys"];
        assert!(known.iter().all(|name| error.contains(name)), "{error}");
    }

    #[rstest]
    #[case("l1", Metric::Manhattan)]
    #[case("cityblock", Metric::Manhattan)]
    #[case("taxicab", Metric::Manhattan)]
    #[case("l2", Metric::Euclidean)]
    #[case("infinity", Metric::Chebyshev)]
    #[case("jensenshannon", Metric::JensenShannon)]
    #[case("russellrao", Metric::RussellRao)]
    #[case("rogers-tanimoto", Metric::RogersTanimoto)]
    #[case("sokalmichener", Metric::RogersTanimoto)]
    #[case("sokal-sneath", Metric::SokalSneath)]
    #[case("bray-curtis", Metric::BrayCurtis)]
    #[case("inner_product", Metric::Dot)]
    #[case("kl_divergence", Metric::KullbackLeibler)]
    #[case("symmetric_kl", Metric::SymmetricKl)]
    fn names_of_others_are_read(#[case] name: &str, #[case] metric: Metric) {
        assert_eq!(name.parse(), Ok(metric));
    }

    #[test]
    fn a_name_stands_for_one_metric() {
        let named = Metric::ALL.iter().map(|metric| metric.name());
        let aliases = Metric::ALIASES.iter().map(|&(name, _)| name);
        let mut all: Vec<_> = named.chain(aliases).map(plain).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
