//! Charts of vectors, after Dr. Top-k's figures.

use std::{collections::BTreeMap, fs, path::PathBuf};

use anyhow::{Context, ensure};
use clap::ValueEnum;

use super::{
    draw::{self, Axes},
    panel::Panel,
};
use crate::{
    case::VectorCase,
    record::{self, VectorRecord},
};

/// Draws records of `delegate` as SVG.
#[derive(clap::Args)]
pub struct Arguments {
    /// Files that `--json` has written; of the same case the last record counts.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The SVG.
    #[arg(long)]
    output: PathBuf,
    /// What is drawn.
    #[arg(long, value_enum)]
    figure: Figure,
    /// Only records of this backend.
    #[arg(long, default_value = "cuda")]
    backend: String,
    /// Only records of this dtype.
    #[arg(long, default_value = "f32")]
    dtype: String,
}

/// The paper's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Figure {
    /// Fig. 13: time over the exponent of subranges, from methods `alpha:N`.
    Alpha,
    /// Fig. 14: the best of these beside that of Rule 4 (`delegates`), over k.
    Tuned,
    /// Fig. 17: time of each method over n.
    Length,
    /// Fig. 18: `whole/S` over `delegates/S` for each selection S, over k.
    Speedup,
    /// Figs. 20 and 21: the share of the vector that both selections work on (`delegates`), over k.
    Workload,
}

impl Figure {
    fn axes(self) -> Axes {
        let (x, y) = match self {
            Self::Alpha => ("exponent of subranges", "time, ms"),
            Self::Tuned => ("k", "time, ms"),
            Self::Length => ("n", "time, ms"),
            Self::Speedup => ("k", "speed-up by delegates, times"),
            Self::Workload => ("k", "share of the vector, percent"),
        };
        Axes { x, y }
    }
}

/// Reads, groups, draws.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut records = Vec::new();
    for file in &arguments.files {
        records.extend(record::read_vectors(file)?);
    }
    records.retain(|r| r.backend == arguments.backend && r.dtype == arguments.dtype);
    let device = records.first().map(|record| record.device.clone());
    let device = device.context("no records of this backend and dtype")?;
    ensure!(
        records.iter().all(|record| record.device == device),
        "the records are of several devices, which one chart cannot compare"
    );
    let panels = panels(&records, arguments.figure)?;
    let title = format!(
        "Top-k of one vector on {device} ({}): {}",
        arguments.backend, arguments.dtype
    );
    let svg = draw::svg(&title, &panels, arguments.figure.axes())
        .map_err(|error| anyhow::anyhow!("{error}"))?;
    fs::write(&arguments.output, svg).with_context(|| format!("{}", arguments.output.display()))?;
    println!(
        "{}: {} panels of {} records",
        arguments.output.display(),
        panels.len(),
        records.len()
    );
    Ok(())
}

/// Points by panel, line and place.
#[derive(Default)]
struct Panels(BTreeMap<String, BTreeMap<String, BTreeMap<usize, f64>>>);

impl Panels {
    fn line(&mut self, panel: String, line: &str) -> &mut BTreeMap<usize, f64> {
        let lines = self.0.entry(panel).or_default();
        lines.entry(line.into()).or_default()
    }
}

fn panels(records: &[VectorRecord], figure: Figure) -> anyhow::Result<Vec<Panel>> {
    let mut panels = Panels::default();
    for record in records {
        let case: VectorCase = record.case.parse()?;
        let (n, k) = (case.length, case.k);
        let vector = format!("{}, n = {n}", record.dist);
        let exponent = (record.method.strip_prefix("alpha:")).and_then(|text| text.parse().ok());
        match (figure, exponent) {
            (Figure::Alpha, Some(exponent)) => {
                let line = format!("k = {k}");
                panels.line(vector, &line).insert(exponent, record.ms);
            }
            (Figure::Tuned, Some(_)) => {
                let best = panels.line(vector, "best exponent").entry(k);
                best.and_modify(|ms| *ms = ms.min(record.ms))
                    .or_insert(record.ms);
            }
            (Figure::Tuned, None) if record.method == "delegates" => {
                panels.line(vector, "Rule 4").insert(k, record.ms);
            }
            (Figure::Length, _) => {
                let panel = format!("{}, k = {k}", record.dist);
                panels.line(panel, &record.method).insert(n, record.ms);
            }
            (Figure::Speedup, None) => {
                let Some(selection) = record.method.strip_prefix("whole/") else {
                    continue;
                };
                let with = format!("delegates/{selection}");
                let same = |other: &&VectorRecord| {
                    other.method == with && other.case == record.case && other.dist == record.dist
                };
                if let Some(with) = records.iter().rev().find(same) {
                    let times = record.ms / with.ms;
                    panels.line(vector, selection).insert(k, times);
                }
            }
            (Figure::Workload, None) if record.method == "delegates" => {
                let percent = |part: usize| 100.0 * part as f64 / n as f64;
                let parts = [
                    ("delegates", record.delegates),
                    ("concatenated", record.concatenated),
                ];
                for (name, part) in parts {
                    panels.line(vector.clone(), name).insert(k, percent(part));
                }
            }
            _ => {}
        }
    }
    let panels: Vec<Panel> = (panels.0.into_iter())
        .filter(|(_, lines)| lines.values().any(|line| line.len() > 1))
        .map(|(title, lines)| Panel { title, lines })
        .collect();
    ensure!(
        !panels.is_empty(),
        "no two records make a line of this figure"
    );
    Ok(panels)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(case: &str, method: &str, ms: f64) -> VectorRecord {
        VectorRecord {
            bench: "delegate".into(),
            case: case.into(),
            backend: "cuda".into(),
            device: "a GPU".into(),
            dtype: "f32".into(),
            method: method.into(),
            dist: "uniform".into(),
            ms,
            first_ms: 1.0,
            floor_ms: 0.5,
            read_gbps: 1.0,
            copy_gbps: 1.0,
            checked: 1024,
            delegates: 64,
            concatenated: 32,
        }
    }

    #[test]
    fn figures_take_their_methods() {
        let records = [
            record("2**10x1", "alpha:3", 3.0),
            record("2**10x1", "alpha:4", 2.0),
            record("2**10x1", "delegates", 2.5),
            record("2**10x2", "alpha:4", 4.0),
            record("2**10x2", "delegates", 4.5),
            record("2**10x1", "whole/radix", 10.0),
            record("2**10x2", "whole/radix", 9.0),
            record("2**10x1", "delegates/radix", 5.0),
            record("2**10x2", "delegates/radix", 3.0),
        ];
        let lines = |figure| panels(&records, figure).expect("a panel").remove(0).lines;
        assert_eq!(lines(Figure::Alpha)["k = 1"], [(3, 3.0), (4, 2.0)].into());
        let tuned = lines(Figure::Tuned);
        assert_eq!(tuned["best exponent"], [(1, 2.0), (2, 4.0)].into());
        assert_eq!(tuned["Rule 4"], [(1, 2.5), (2, 4.5)].into());
        assert_eq!(lines(Figure::Speedup)["radix"], [(1, 2.0), (2, 3.0)].into());
        assert_eq!(lines(Figure::Workload)["delegates"][&1], 6.25);
        assert!(panels(&records, Figure::Length).is_err());
    }
}
