//! Data preparation, row by row and column by column in f64, as scikit-learn 1.9 does it.

use super::spmm::Csr;

pub const NORMS: [&str; 3] = ["l1", "l2", "max"];

/// Norm of a row.
///
/// # Panics
///
/// If [`NORMS`] lacks the name.
pub fn norm(name: &str, row: &[f64]) -> f64 {
    match name {
        "l1" => row.iter().map(|x| x.abs()).sum(),
        "l2" => row.iter().map(|x| x * x).sum::<f64>().sqrt(),
        "max" => row.iter().fold(0.0, |most, x| f64::max(most, x.abs())),
        other => panic!("the oracle has no norm {other}"),
    }
}

pub fn row_norms(csr: &Csr, name: &str) -> Vec<f64> {
    csr.dense().iter().map(|row| norm(name, row)).collect()
}

/// Rows over their norms; rows of norm 0 stay. `preprocessing.normalize(csr, norm)`.
pub fn normalized(csr: &Csr, name: &str) -> Csr {
    let norms = row_norms(csr, name);
    with(csr, |i, _, x| if norms[i] == 0.0 { x } else { x / norms[i] })
}

/// `ln((1 + n) / (1 + df)) + 1` per column, where df of n rows store it.
pub fn idf(csr: &Csr) -> Vec<f64> {
    let stored = |column| csr.entries().filter(|&(_, j, _)| j == column).count();
    let rows = csr.rows as f64;
    (0..csr.cols).map(|j| ((1.0 + rows) / (1.0 + stored(j) as f64)).ln() + 1.0).collect()
}

/// `TfidfTransformer().fit(train).transform(csr)`.
pub fn tfidf(train: &Csr, csr: &Csr) -> Csr {
    let idf = idf(train);
    normalized(&with(csr, |_, j, x| x * idf[j]), "l2")
}

/// `numpy.var(dense, axis=0, ddof=ddof)`.
pub fn variances(csr: &Csr, ddof: usize) -> Vec<f64> {
    let dense = csr.dense();
    let rows = csr.rows as f64;
    let variance = |j: usize| {
        let mean = dense.iter().map(|row| row[j]).sum::<f64>() / rows;
        let squares = dense.iter().map(|row| (row[j] - mean).powi(2));
        squares.sum::<f64>() / (rows - ddof as f64)
    };
    (0..csr.cols).map(variance).collect()
}

/// Columns over their deviations, unless below ten times `epsilon`.
/// `preprocessing.scale(csr, with_mean=False)`.
pub fn scaled(csr: &Csr, epsilon: f64) -> Csr {
    let deviations: Vec<f64> = variances(csr, 0).into_iter().map(f64::sqrt).collect();
    with(csr, |_, j, x| if deviations[j] < 10.0 * epsilon { x } else { x / deviations[j] })
}

/// Other weights, from row, column and weight.
pub fn with(csr: &Csr, change: impl Fn(usize, usize, f64) -> f64) -> Csr {
    let weights = csr.entries().map(|(i, j, x)| change(i, j, x));
    Csr { weights: weights.collect(), ..csr.clone() }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// ```text
    /// [3  .  0]
    /// [.  .  .]
    /// [. -4  .]
    /// [1  2  2]
    /// ```
    /// with an explicit zero at (0, 2).
    fn matrix() -> Csr {
        Csr {
            rows: 4,
            cols: 3,
            indptr: vec![0, 2, 2, 3, 6],
            indices: vec![0, 2, 1, 0, 1, 2],
            weights: vec![3.0, 0.0, -4.0, 1.0, 2.0, 2.0],
        }
    }

    /// With an explicit zero at (0, 2), which counts.
    fn counts() -> Csr {
        Csr {
            rows: 3,
            cols: 3,
            indptr: vec![0, 3, 4, 6],
            indices: vec![0, 1, 2, 1, 1, 2],
            weights: vec![1.0, 2.0, 0.0, 3.0, 1.0, 4.0],
        }
    }

    fn near(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        let mut pairs = found.iter().zip(expected);
        assert!(pairs.all(|(a, b)| (a - b).abs() <= 4e-16 * b.abs()), "{found:?}, {expected:?}");
    }

    // sklearn.preprocessing.normalize(a, norm=...).data
    #[rstest]
    #[case("l1", [1.0, 0.0, -1.0, 0.2, 0.4, 0.4])]
    #[case("l2", [1.0, 0.0, -1.0, 1.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0])]
    #[case("max", [1.0, 0.0, -1.0, 0.5, 1.0, 1.0])]
    fn rows_are_normalized(#[case] norm: &str, #[case] expected: [f64; 6]) {
        near(&normalized(&matrix(), norm).weights, &expected);
    }

    // t = TfidfTransformer(); t.fit_transform(a).data, t.idf_
    #[test]
    fn frequencies_weigh_counts() {
        let csr = counts();
        near(&idf(&csr), &[1.6931471805599454, 1.0, 1.2876820724517808]);
        let expected = [
            0.6461289150464732,
            0.7632282916276542,
            0.0,
            1.0,
            0.19058858214345914,
            0.9816700017605436,
        ];
        near(&tfidf(&csr, &csr).weights, &expected);
    }

    // sklearn.preprocessing.scale(a, with_mean=False).tocsr().data
    // numpy.var(a.toarray(), axis=0, ddof=...)
    #[test]
    fn columns_are_scaled() {
        let csr = matrix();
        near(&variances(&csr, 0), &[1.5, 4.75, 0.75]);
        near(&variances(&csr, 1), &[2.0, 6.333333333333333, 1.0]);
        let expected = [
            2.4494897427831783,
            0.0,
            -1.835325870964494,
            0.8164965809277261,
            0.917662935482247,
            2.3094010767585034,
        ];
        near(&scaled(&csr, f64::EPSILON).weights, &expected);
    }
}
