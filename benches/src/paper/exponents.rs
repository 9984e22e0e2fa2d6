//! Rule 4's subrange exponent, compared with the best measured one.

use std::{collections::BTreeMap, fmt::Write};

use sparsek_kernels::topk::Tuning;

use crate::{case::VectorCase, chart::power, record::VectorRecord};

const CONSTANTS: std::ops::RangeInclusive<i32> = -4..=4;

pub struct Sweep {
    pub length: usize,
    pub k: usize,
    pub dist: String,
    times: BTreeMap<u32, f64>,
    delegates: Option<f64>,
}

impl Sweep {
    pub fn best(&self) -> (u32, f64) {
        let least = |a: &(u32, f64), b: &(u32, f64)| a.1.total_cmp(&b.1);
        let times = self.times.iter().map(|(&exponent, &ms)| (exponent, ms));
        times.min_by(least).expect("a time")
    }

    /// Milliseconds of `delegates`, else of the exponent that it takes.
    pub fn chosen(&self) -> Option<f64> {
        let exponent = self.exponent(Tuning::default());
        self.delegates.or(self.times.get(&exponent).copied())
    }

    /// Time with the exponent of a constant, divided by the best time. None if not measured.
    fn ratio(&self, constant: i32) -> Option<f64> {
        let tuning = Tuning { constant, many: constant, ..Tuning::default() };
        let ms = self.times.get(&self.exponent(tuning))?;
        Some(ms / self.best().1)
    }

    fn exponent(&self, tuning: Tuning) -> u32 {
        tuning.exponent(self.length, self.k.max(1), 1)
    }
}

/// Two tables: the best and the chosen exponent of each vector, and the cost of each constant.
pub fn tables(records: &[VectorRecord]) -> anyhow::Result<String> {
    let sweeps = sweeps(records)?;
    let mut text =
        "| input | n | k | best exponent | ms | Rule 4's | ms | times the best |\n".to_owned();
    text += "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
    for sweep in &sweeps {
        let (exponent, best) = sweep.best();
        let chosen =
            sweep.chosen().map_or("– | –".into(), |ms| format!("{ms:.4} | {:.3}", ms / best));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {exponent} | {best:.4} | {} | {chosen} |",
            sweep.dist,
            power(sweep.length),
            power(sweep.k),
            sweep.exponent(Tuning::default()),
        );
    }
    text += "\n| constant | mean of times the best | most | vectors |\n| --- | --- | --- | --- |\n";
    for constant in CONSTANTS {
        let ratios: Vec<f64> = sweeps.iter().filter_map(|s| s.ratio(constant)).collect();
        if ratios.is_empty() {
            continue;
        }
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        let most = ratios.iter().copied().fold(0.0, f64::max);
        let vectors = ratios.len();
        let _ = writeln!(text, "| {constant} | {mean:.3} | {most:.3} | {vectors} |");
    }
    Ok(text)
}

pub fn sweeps(records: &[VectorRecord]) -> anyhow::Result<Vec<Sweep>> {
    let mut sweeps = BTreeMap::new();
    for record in records {
        let VectorCase { length, k, .. } = record.case.parse()?;
        let dist = record.dist.clone();
        let key = (dist.clone(), length, k);
        let sweep = sweeps.entry(key).or_insert_with(|| Sweep {
            length,
            k,
            dist,
            times: BTreeMap::new(),
            delegates: None,
        });
        if record.method == "delegates" {
            sweep.delegates = Some(record.ms);
        } else if let Some(exponent) = record.exponent() {
            sweep.times.insert(exponent, record.ms);
        }
    }
    let sweeps = sweeps.into_values();
    Ok(sweeps.filter(|sweep| !sweep.times.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(times: &[(u32, f64)]) -> Sweep {
        Sweep {
            length: 1 << 20,
            k: 1 << 8,
            dist: "uniform".into(),
            times: times.iter().copied().collect(),
            delegates: None,
        }
    }

    #[test]
    fn constants_are_compared_with_the_best() {
        let sweep = sweep(&[(5, 3.0), (6, 2.5), (7, 2.0)]);
        assert_eq!(sweep.best(), (7, 2.0));
        assert_eq!(sweep.ratio(0), Some(1.25));
        assert_eq!(sweep.ratio(2), Some(1.0));
        assert_eq!(sweep.ratio(-4), None);
        assert_eq!(sweep.chosen(), Some(2.5));
    }
}
