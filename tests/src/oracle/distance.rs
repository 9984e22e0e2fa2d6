//! Distances between two dense rows in f64, neighbors by sorting, and semiring products.
//!
//! Definitions follow `scipy.spatial.distance.cdist` 1.17 where it has the metric. Boolean metrics
//! test for nonzero. In the formulas `n` is the number of columns; `tt`, `tf`, `ft` and `ff` count
//! columns by whether the first and second element are nonzero. 0/0 is NaN unless stated.

use std::cmp::Ordering;

pub const NAMES: [&str; 22] = [
    "dot",
    "euclidean",
    "sqeuclidean",
    "cosine",
    "correlation",
    "dice",
    "jaccard",
    "russell-rao",
    "hamming",
    "canberra",
    "chebyshev",
    "manhattan",
    "minkowski",
    "hellinger",
    "jensen-shannon",
    "kl",
    "symmetric-kl",
    "braycurtis",
    "rogerstanimoto",
    "sokalsneath",
    "yule",
    "matching",
];

/// Distance of two rows; `p` is the exponent of `minkowski`.
///
/// # Panics
///
/// If the rows differ in length or [`NAMES`] lacks the metric.
pub fn distance(metric: &str, p: f64, x: &[f64], y: &[f64]) -> f64 {
    assert_eq!(x.len(), y.len(), "rows differ in length");
    match metric {
        "dot" => dot(x, y),
        "euclidean" => euclidean(x, y),
        "sqeuclidean" => sqeuclidean(x, y),
        "cosine" => cosine(x, y),
        "correlation" => correlation(x, y),
        "dice" => dice(x, y),
        "jaccard" => jaccard(x, y),
        "russell-rao" => russell_rao(x, y),
        "hamming" => hamming(x, y),
        "canberra" => canberra(x, y),
        "chebyshev" => chebyshev(x, y),
        "manhattan" => manhattan(x, y),
        "minkowski" => minkowski(p, x, y),
        "hellinger" => hellinger(x, y),
        "jensen-shannon" => jensen_shannon(x, y),
        "kl" => kl(x, y),
        "symmetric-kl" => symmetric_kl(x, y),
        "braycurtis" => braycurtis(x, y),
        "rogerstanimoto" => rogerstanimoto(x, y),
        "sokalsneath" => sokalsneath(x, y),
        "yule" => yule(x, y),
        "matching" => matching(x, y),
        other => panic!("the oracle has no metric {other}"),
    }
}

/// Whether greater values are nearer.
pub fn is_similarity(metric: &str) -> bool {
    metric == "dot"
}

/// Σ term(a, b) over the columns.
fn sum(x: &[f64], y: &[f64], term: impl Fn(f64, f64) -> f64) -> f64 {
    x.iter().zip(y).map(|(&a, &b)| term(a, b)).sum()
}

/// `[tt, tf, ft, ff]`.
fn counts(x: &[f64], y: &[f64]) -> [f64; 4] {
    let count = |first, second| {
        let agree = |a: f64, b: f64| (a != 0.0) == first && (b != 0.0) == second;
        sum(x, y, |a, b| f64::from(agree(a, b)))
    };
    [count(true, true), count(true, false), count(false, true), count(false, false)]
}

/// Clips negative rounding errors to 0; NaN stays.
fn at_least_zero(x: f64) -> f64 {
    if x < 0.0 { 0.0 } else { x }
}

fn any_negative(x: &[f64]) -> bool {
    x.iter().any(|&a| a < 0.0)
}

/// Σ ab. Not in scipy.
fn dot(x: &[f64], y: &[f64]) -> f64 {
    sum(x, y, |a, b| a * b)
}

/// √Σ (a − b)².
fn euclidean(x: &[f64], y: &[f64]) -> f64 {
    sqeuclidean(x, y).sqrt()
}

/// Σ (a − b)².
fn sqeuclidean(x: &[f64], y: &[f64]) -> f64 {
    sum(x, y, |a, b| (a - b) * (a - b))
}

/// 1 − Σ ab / √(Σ a² Σ b²), clipped to 0..=2. NaN if a row is zero.
fn cosine(x: &[f64], y: &[f64]) -> f64 {
    let scale = dot(x, x).sqrt() * dot(y, y).sqrt();
    (1.0 - dot(x, y) / scale).clamp(0.0, 2.0)
}

/// Cosine distance of the centered rows. NaN if a row is constant (scipy may return rounding
/// noise).
fn correlation(x: &[f64], y: &[f64]) -> f64 {
    let centered = |row: &[f64]| -> Vec<f64> {
        let mean = row.iter().sum::<f64>() / row.len() as f64;
        let constant = row.iter().all(|&a| a == row[0]);
        row.iter().map(|a| if constant { 0.0 } else { a - mean }).collect()
    };
    cosine(&centered(x), &centered(y))
}

/// (tf + ft) / (2 tt + tf + ft). NaN if both rows are zero.
fn dice(x: &[f64], y: &[f64]) -> f64 {
    let [tt, tf, ft, _] = counts(x, y);
    (tf + ft) / (2.0 * tt + tf + ft)
}

/// (tf + ft) / (tt + tf + ft). 0 if both rows are zero.
fn jaccard(x: &[f64], y: &[f64]) -> f64 {
    let [tt, tf, ft, _] = counts(x, y);
    if tt + tf + ft == 0.0 {
        return 0.0;
    }
    (tf + ft) / (tt + tf + ft)
}

/// (n − tt) / n. d(x, x) = 0 only if x has no zeros.
fn russell_rao(x: &[f64], y: &[f64]) -> f64 {
    let [tt, ..] = counts(x, y);
    (x.len() as f64 - tt) / x.len() as f64
}

/// Share of columns with a ≠ b.
fn hamming(x: &[f64], y: &[f64]) -> f64 {
    sum(x, y, |a, b| f64::from(a != b)) / x.len() as f64
}

/// Σ |a − b| / (|a| + |b|), where 0/0 is 0.
fn canberra(x: &[f64], y: &[f64]) -> f64 {
    let term = |a: f64, b: f64| (a - b).abs() / (a.abs() + b.abs());
    sum(x, y, |a, b| if a == 0.0 && b == 0.0 { 0.0 } else { term(a, b) })
}

/// max |a − b|; 0 without columns.
fn chebyshev(x: &[f64], y: &[f64]) -> f64 {
    let each = x.iter().zip(y).map(|(a, b)| (a - b).abs());
    each.fold(0.0, |most, d| if d > most || d.is_nan() { d } else { most })
}

/// Σ |a − b|: cityblock in scipy.
fn manhattan(x: &[f64], y: &[f64]) -> f64 {
    sum(x, y, |a, b| (a - b).abs())
}

/// (Σ |a − b|^p)^(1/p).
fn minkowski(p: f64, x: &[f64], y: &[f64]) -> f64 {
    sum(x, y, |a, b| (a - b).abs().powf(p)).powf(1.0 / p)
}

/// √(1 − Σ √(a/Σa · b/Σb)). NaN if a row is zero or has a negative element. Not in scipy.
fn hellinger(x: &[f64], y: &[f64]) -> f64 {
    if any_negative(x) || any_negative(y) {
        return f64::NAN;
    }
    let scale = x.iter().sum::<f64>().sqrt() * y.iter().sum::<f64>().sqrt();
    let overlap = sum(x, y, |a, b| a.sqrt() * b.sqrt()) / scale;
    at_least_zero(1.0 - overlap).sqrt()
}

/// √(½ KL(a, m) + ½ KL(b, m)) with rows divided by their sums and m = (a + b) / 2. +∞ if a row is
/// zero or has a negative element, as in `cdist`.
fn jensen_shannon(x: &[f64], y: &[f64]) -> f64 {
    let (of_x, of_y) = (x.iter().sum::<f64>(), y.iter().sum::<f64>());
    if any_negative(x) || any_negative(y) || of_x == 0.0 || of_y == 0.0 {
        return f64::INFINITY;
    }
    let both = sum(x, y, |a, b| {
        let (a, b) = (a / of_x, b / of_y);
        let middle = (a + b) / 2.0;
        rel_entr(a, middle) + rel_entr(b, middle)
    });
    at_least_zero(both / 2.0).sqrt()
}

/// Kullback-Leibler: Σ rel_entr(a, b), without normalization.
fn kl(x: &[f64], y: &[f64]) -> f64 {
    sum(x, y, rel_entr)
}

/// Jeffreys divergence: KL(x, y) + KL(y, x). Not in scipy.
fn symmetric_kl(x: &[f64], y: &[f64]) -> f64 {
    kl(x, y) + kl(y, x)
}

/// a ln(a/b) if both are positive, 0 if a = 0 and b ≥ 0, else +∞.
fn rel_entr(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else if a > 0.0 && b > 0.0 {
        a * (a / b).ln()
    } else if a == 0.0 && b >= 0.0 {
        0.0
    } else {
        f64::INFINITY
    }
}

/// Σ |a − b| / Σ |a + b|. NaN if both rows are zero.
fn braycurtis(x: &[f64], y: &[f64]) -> f64 {
    manhattan(x, y) / sum(x, y, |a, b| (a + b).abs())
}

/// 2 (tf + ft) / (tt + ff + 2 (tf + ft)).
fn rogerstanimoto(x: &[f64], y: &[f64]) -> f64 {
    let [tt, tf, ft, ff] = counts(x, y);
    2.0 * (tf + ft) / (tt + ff + 2.0 * (tf + ft))
}

/// 2 (tf + ft) / (tt + 2 (tf + ft)). NaN if both rows are zero, as in `cdist`.
fn sokalsneath(x: &[f64], y: &[f64]) -> f64 {
    let [tt, tf, ft, _] = counts(x, y);
    2.0 * (tf + ft) / (tt + 2.0 * (tf + ft))
}

/// 2 tf ft / (tt ff + tf ft). 0 if tf ft = 0.
fn yule(x: &[f64], y: &[f64]) -> f64 {
    let [tt, tf, ft, ff] = counts(x, y);
    if tf * ft == 0.0 {
        return 0.0;
    }
    2.0 * tf * ft / (tt * ff + tf * ft)
}

/// (tf + ft) / n, as in scikit-learn.
fn matching(x: &[f64], y: &[f64]) -> f64 {
    let [_, tf, ft, _] = counts(x, y);
    (tf + ft) / x.len() as f64
}

/// Distance of two rows of `cols` columns; columns beyond `x` and `y` are 0 in both.
///
/// # Panics
///
/// As [`distance`].
pub fn among_columns(metric: &str, p: f64, x: &[f64], y: &[f64], cols: usize) -> f64 {
    let n = cols as f64;
    let rest = n - x.len() as f64;
    let [tt, tf, ft, both_zero] = counts(x, y);
    let ff = both_zero + rest;
    match metric {
        "correlation" => {
            let mean = |row: &[f64]| row.iter().sum::<f64>() / n;
            let (of_x, of_y) = (mean(x), mean(y));
            let product = |a: &[f64], of_a: f64, b: &[f64], of_b: f64| {
                sum(a, b, |a, b| (a - of_a) * (b - of_b)) + rest * of_a * of_b
            };
            let scale = product(x, of_x, x, of_x).sqrt() * product(y, of_y, y, of_y).sqrt();
            (1.0 - product(x, of_x, y, of_y) / scale).clamp(0.0, 2.0)
        }
        "russell-rao" => (n - tt) / n,
        "hamming" => sum(x, y, |a, b| f64::from(a != b)) / n,
        "matching" => (tf + ft) / n,
        "rogerstanimoto" => 2.0 * (tf + ft) / (tt + ff + 2.0 * (tf + ft)),
        "yule" if tf * ft == 0.0 => 0.0,
        "yule" => 2.0 * tf * ft / (tt * ff + tf * ft),
        _ => distance(metric, p, x, y),
    }
}

/// SciPy's `w` as `cdist` of 1.17 takes it, and `dot` of weighted products; `None` for other
/// metrics.
pub fn weighted(metric: &str, p: f64, w: &[f64], x: &[f64], y: &[f64]) -> Option<f64> {
    let sum = |term: &dyn Fn(f64, f64) -> f64| -> f64 {
        w.iter().zip(x.iter().zip(y)).map(|(&w, (&a, &b))| w * term(a, b)).sum()
    };
    let products = |x: &[f64], y: &[f64]| -> f64 {
        w.iter().zip(x.iter().zip(y)).map(|(w, (a, b))| w * a * b).sum()
    };
    Some(match metric {
        "manhattan" => sum(&|a, b| (a - b).abs()),
        "braycurtis" => sum(&|a, b| (a - b).abs()) / sum(&|a, b| (a + b).abs()),
        "euclidean" => sum(&|a, b| (a - b).powi(2)).sqrt(),
        "sqeuclidean" => sum(&|a, b| (a - b).powi(2)),
        "dot" => products(x, y),
        "cosine" => 1.0 - products(x, y) / (products(x, x) * products(y, y)).sqrt(),
        "minkowski" => sum(&|a, b| (a - b).abs().powf(p)).powf(1.0 / p),
        "chebyshev" => {
            let kept = |row: &[f64]| -> Vec<f64> {
                row.iter().zip(w).filter(|(_, w)| **w > 0.0).map(|(&a, _)| a).collect()
            };
            chebyshev(&kept(x), &kept(y))
        }
        _ => return None,
    })
}

/// Row and distance.
pub type Neighbor = (usize, f64);

pub fn distances(metric: &str, p: f64, query: &[f64], index: &[Vec<f64>]) -> Vec<Neighbor> {
    let each = index.iter().map(|row| distance(metric, p, query, row));
    each.enumerate().collect()
}

/// The `k` nearest rows except `excluded`, at most: nearest first, ties by row, NaN last.
pub fn nearest(
    metric: &str,
    p: f64,
    query: &[f64],
    index: &[Vec<f64>],
    k: usize,
    excluded: Option<usize>,
) -> Vec<Neighbor> {
    let mut all = distances(metric, p, query, index);
    all.retain(|&(row, _)| Some(row) != excluded);
    all.sort_by(|&(_, a), &(_, b)| order(metric, a, b));
    all.truncate(k);
    all
}

/// Rows within `radius` (for `dot` at or above it), by position.
pub fn within_radius(
    metric: &str,
    p: f64,
    query: &[f64],
    index: &[Vec<f64>],
    radius: f64,
) -> Vec<Neighbor> {
    let mut all = distances(metric, p, query, index);
    all.retain(|&(_, d)| !d.is_nan() && order(metric, d, radius) != Ordering::Greater);
    all
}

/// Nearer is `Less`; NaN is greatest.
pub fn order(metric: &str, a: f64, b: f64) -> Ordering {
    match a.partial_cmp(&b) {
        Some(ascending) if is_similarity(metric) => ascending.reverse(),
        Some(ascending) => ascending,
        None => a.is_nan().cmp(&b.is_nan()),
    }
}

/// Magnitude to compare a deviation with.
pub fn scale(metric: &str, p: f64, x: &[f64], y: &[f64]) -> f64 {
    let norm = |row: &[f64], p: f64| row.iter().map(|a| a.abs().powf(p)).sum::<f64>();
    let both = |p: f64| norm(x, p).powf(1.0 / p) + norm(y, p).powf(1.0 / p);
    match metric {
        "dot" => norm(x, 2.0).sqrt() * norm(y, 2.0).sqrt(),
        "euclidean" => both(2.0),
        "sqeuclidean" => both(2.0).powi(2),
        "manhattan" | "kl" | "symmetric-kl" => 10.0 * both(1.0),
        "minkowski" => both(p),
        "canberra" => x.len() as f64,
        "braycurtis" => {
            let sum: f64 = x.iter().zip(y).map(|(a, b)| (a + b).abs()).sum();
            (both(1.0) / sum).powi(2)
        }
        "correlation" => 10.0,
        _ => 1.0,
    }
}

/// Stored (column, value) entries of a row, columns ascending.
pub type Entries = [(usize, f64)];

/// Reduces the products of entries in common columns, from `identity`.
pub fn semiring(
    x: &Entries,
    y: &Entries,
    product: fn(f64, f64) -> f64,
    reduce: fn(f64, f64) -> f64,
    identity: f64,
) -> f64 {
    let pairs = x.iter().flat_map(|&(column, a)| {
        let same = y.iter().filter(move |&&(other, _)| other == column);
        same.map(move |&(_, b)| (a, b))
    });
    pairs.fold(identity, |sum, (a, b)| reduce(sum, product(a, b)))
}

/// min (a + b); +∞ without common columns.
pub fn min_plus(x: &Entries, y: &Entries) -> f64 {
    semiring(x, y, |a, b| a + b, f64::min, f64::INFINITY)
}

/// max ab; −∞ without common columns.
pub fn max_times(x: &Entries, y: &Entries) -> f64 {
    semiring(x, y, |a, b| a * b, f64::max, f64::NEG_INFINITY)
}

/// 1 if both rows are nonzero in some column, else 0.
pub fn or_and(x: &Entries, y: &Entries) -> f64 {
    let and = |a: f64, b: f64| f64::from(a != 0.0 && b != 0.0);
    semiring(x, y, and, f64::max, 0.0)
}

#[cfg(test)]
mod tests;
