//! Seeded sparse matrices with the sizes and densities of Nolet et al., Table 2, and the degree
//! distributions of Fig. 1. Their names begin with `synthetic:`, as they are not the data sets.

use anyhow::{Context, ensure};
use burn::tensor::{Device, Tensor, TensorData};
use rayon::prelude::*;
use sparsek::sparse::{Csr, Pattern};
use sparsek_tests::data::Random;

const PREFIX: &str = "synthetic:";
const SEED: u64 = 2021;

#[derive(Clone, Copy)]
enum Values {
    /// 0.5 to 5 in steps of 0.5.
    Ratings,
    /// Uniform in (0, 1].
    Weights,
    /// ln(1 + count), with mostly small counts.
    Counts,
}

struct Kind {
    name: &'static str,
    rows: usize,
    cols: usize,
    /// Points of the degree CDF (share of rows, degree); degrees grow exponentially between points.
    degrees: &'static [(f64, f64)],
    /// Columns are uniform numbers to this power, so the first are the most popular. It makes
    /// entries share columns about as often as in the original data.
    skew: f64,
    values: Values,
}

const KINDS: [Kind; 4] = [
    Kind {
        name: "movielens",
        rows: 283_000,
        cols: 194_000,
        degrees: &[
            (0.0, 0.0),
            (0.1, 5.0),
            (0.5, 21.0),
            (0.88, 165.0),
            (0.99, 820.0),
            (0.999, 2000.0),
            (1.0, 24_000.0),
        ],
        skew: 5.0,
        values: Values::Ratings,
    },
    Kind {
        name: "edgar",
        rows: 663_000,
        cols: 858_000,
        degrees: &[(0.0, 0.0), (0.02, 2.0), (0.5, 6.0), (0.99, 10.0), (1.0, 51.0)],
        skew: 6.0,
        values: Values::Weights,
    },
    Kind {
        name: "scrna",
        rows: 66_000,
        cols: 26_000,
        degrees: &[(0.0, 501.0), (0.5, 1480.0), (0.9, 3250.0), (0.98, 5000.0), (1.0, 9600.0)],
        skew: 5.0,
        values: Values::Counts,
    },
    Kind {
        name: "nytimes",
        rows: 300_000,
        cols: 102_000,
        degrees: &[
            (0.0, 0.0),
            (0.05, 35.0),
            (0.5, 140.0),
            (0.9, 400.0),
            (0.99, 1000.0),
            (1.0, 2000.0),
        ],
        skew: 3.5,
        values: Values::Weights,
    },
];

/// The matrix of a name `synthetic:movielens` or `synthetic:movielens/8`; none for other names.
pub fn matrix(name: &str, device: &Device) -> Option<anyhow::Result<Csr>> {
    let rest = name.strip_prefix(PREFIX)?;
    Some(read(rest).and_then(|(kind, rows)| {
        let (pattern, values) = kind.matrix(rows);
        let shape = [values.len()];
        let values = Tensor::from_data(TensorData::new(values, shape), device);
        Ok(Csr::new(pattern?, values)?)
    }))
}

fn read(text: &str) -> anyhow::Result<(&'static Kind, usize)> {
    let (name, scale) = text.split_once('/').unwrap_or((text, "1"));
    let names = KINDS.map(|kind| kind.name).join(", ");
    let kind = KINDS.iter().find(|kind| kind.name == name);
    let kind = kind.with_context(|| format!("{PREFIX}{name}: not one of {names}"))?;
    let scale: usize = scale.parse().with_context(|| format!("{scale}: not a number"))?;
    ensure!(scale > 0, "{PREFIX}{text}: cannot divide by 0");
    Ok((kind, kind.rows.div_ceil(scale)))
}

impl Kind {
    /// The first rows: the pattern and the values.
    fn matrix(&self, rows: usize) -> (anyhow::Result<Pattern>, Vec<f32>) {
        let made: Vec<(Vec<u32>, Vec<f32>)> = (0..rows)
            .into_par_iter()
            .map(|row| {
                let mut random = Random::new(SEED ^ ((row as u64) << 20));
                let degree = self.degree(&mut random, row);
                let columns = self.columns(&mut random, degree);
                let values = columns.iter().map(|_| self.values.draw(&mut random));
                let values = values.collect();
                (columns, values)
            })
            .collect();
        let mut indptr = Vec::with_capacity(rows + 1);
        indptr.push(0);
        let entries = made.iter().map(|(columns, _)| columns.len()).sum();
        let (mut indices, mut values) = (Vec::with_capacity(entries), Vec::with_capacity(entries));
        for (columns, row) in made {
            indices.extend(columns);
            values.extend(row);
            indptr.push(indices.len() as u32);
        }
        let pattern = Pattern::new(rows, self.cols, indptr, indices);
        (pattern.map_err(anyhow::Error::from), values)
    }

    /// The degree of a row. The first two rows have the greatest and the least, so both occur.
    fn degree(&self, random: &mut Random, row: usize) -> usize {
        let share = match row {
            0 => 1.0,
            1 => 0.0,
            _ => random.uniform(),
        };
        let steps = self.degrees.windows(2);
        let mut steps = steps.filter(|step| share <= step[1].0);
        let step = steps.next().expect("shares end with 1");
        let [(from, low), (to, high)] = [step[0], step[1]];
        let part = (share - from) / (to - from);
        let logarithm = low.ln_1p() * (1.0 - part) + high.ln_1p() * part;
        logarithm.exp_m1().round() as usize
    }

    /// Draws `degree` ascending columns: sorted uniform numbers, built from exponential gaps, to a
    /// power. Duplicates move to the next free column.
    fn columns(&self, random: &mut Random, degree: usize) -> Vec<u32> {
        let mut gap = || -(1.0 - random.uniform()).ln();
        let mut sum = 0.0;
        let places: Vec<f64> = (0..degree)
            .map(|_| {
                sum += gap();
                sum
            })
            .collect();
        let whole = sum + gap();
        let mut least = 0;
        let columns = places.iter().enumerate().map(|(entry, place)| {
            let column = self.cols as f64 * (place / whole).powf(self.skew);
            // Leave room for the remaining columns.
            let most = self.cols - (degree - entry);
            let column = (column as usize).clamp(least.min(most), most);
            least = column + 1;
            column as u32
        });
        columns.collect()
    }
}

impl Values {
    fn draw(self, random: &mut Random) -> f32 {
        match self {
            Self::Ratings => (1 + random.below(10)) as f32 / 2.0,
            Self::Weights => (1.0 - random.uniform()) as f32,
            Self::Counts => (1.0 + (-(1.0 - random.uniform()).ln()).ceil()).ln() as f32,
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    // Sizes, density and extreme degrees are from Table 2, a quantile from the caption of Fig. 1.
    #[rstest]
    #[case::movielens("movielens", [283_000, 194_000], 5e-4, [0, 24_000], (200, 0.88))]
    #[case::edgar("edgar", [663_000, 858_000], 7e-6, [0, 51], (10, 0.99))]
    #[case::scrna("scrna", [66_000, 26_000], 0.07, [501, 9600], (5000, 0.98))]
    #[case::nytimes("nytimes", [300_000, 102_000], 0.002, [0, 2000], (1000, 0.99))]
    fn sizes_and_degrees_are_those_of_the_paper(
        #[case] name: &str,
        #[case] shape: [usize; 2],
        #[case] density: f64,
        #[case] extremes: [usize; 2],
        #[case] (degree, share): (usize, f64),
    ) {
        let (kind, rows) = read(name).unwrap();
        assert_eq!([rows, kind.cols], shape);
        let (pattern, values) = kind.matrix(20_000);
        let pattern = pattern.unwrap();
        assert_eq!(values.len(), pattern.nnz());
        let degrees: Vec<usize> = (0..20_000).map(|row| pattern.row(row).len()).collect();
        let (least, most) = (degrees.iter().min(), degrees.iter().max());
        assert_eq!([*least.unwrap(), *most.unwrap()], extremes);
        let mean = pattern.nnz() as f64 / 20_000.0;
        let found = mean / kind.cols as f64;
        assert!((found / density - 1.0).abs() < 0.06, "{found}");
        let within = degrees.iter().filter(|&&d| d <= degree).count() as f64 / 20_000.0;
        assert!((within - share).abs() < 0.02, "{within}");
        let ascend = |row| pattern.row(row).is_sorted_by(|a, b| a < b);
        assert!((0..20_000).all(ascend));
    }

    #[rstest]
    fn unknown_names_are_refused(
        #[values("", "imdb", "movielens/0", "movielens/x", "movielens/-1")] wrong: &str,
    ) {
        assert!(read(wrong).is_err());
    }

    #[test]
    fn names_may_have_a_divisor() {
        assert_eq!(read("edgar/8").unwrap().1, 82_875);
    }
}
