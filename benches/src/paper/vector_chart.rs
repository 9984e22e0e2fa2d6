//! Dr. Top-k, Figs. 13, 14, 17, 18 and 21: top-k of one vector.

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::{Context, ensure};
use clap::ValueEnum;
use sparsek::io::output;

use super::exponents;
use crate::{
    case::VectorCase,
    chart::{self, Axes, Panel, READ, Scale, power},
    record::{self, PeerRecord, VectorRecord},
};

/// The peer's name in its records, its line in the chart, and its dtype.
const PEER: &str = "torch unsorted";
const PEER_LINE: &str = "torch.topk";
const PEER_DTYPE: &str = "f32";
const FEWEST: usize = 3;

/// Draws records of `delegate` as SVG and prints them as tables.
#[derive(clap::Args)]
pub struct Arguments {
    /// Files written by `--json`, and records of torch.topk; the last record of a case counts.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The SVG.
    #[arg(long)]
    output: PathBuf,
    /// The paper's figure.
    #[arg(long, value_enum)]
    figure: Figure,
    /// Only records of this backend.
    #[arg(long, default_value = "cuda")]
    backend: String,
    /// Only records of this dtype.
    #[arg(long, default_value = "f32")]
    dtype: String,
    /// Only records of this distribution.
    #[arg(long)]
    dist: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Figure {
    /// Fig. 13: time over the exponent of subranges, from methods `alpha:N`.
    Alpha,
    /// Fig. 14: the best exponent and that of Rule 4 (`delegates`), over k.
    Tuned,
    /// Fig. 17: time of each method and of torch.topk, over n.
    Length,
    /// Fig. 18: `whole/S` divided by `delegates/S` for each selection S, and torch.topk divided by
    /// `delegates`, over k.
    Speedup,
    /// Fig. 21: the share of the vector that the two selections read (`delegates`), over k.
    Workload,
}

impl Figure {
    fn axes(self) -> Axes {
        let (x, y) = match self {
            Self::Alpha => ("exponent of subranges", "time, ms"),
            Self::Tuned => ("k", "time, ms"),
            Self::Length => ("n", "time, ms"),
            Self::Speedup => ("k", "speed-up by delegates"),
            Self::Workload => ("k", "share of the vector, percent"),
        };
        let linear = |linear| if linear { Scale::Linear } else { Scale::Log };
        Axes {
            x,
            y,
            x_scale: linear(self == Self::Alpha),
            y_scale: linear(matches!(self, Self::Tuned | Self::Speedup)),
        }
    }
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let (mut records, mut peers) = (Vec::new(), Vec::new());
    for file in &arguments.files {
        records.extend(record::read_vectors(file)?);
        peers.extend(record::read_vector_peers(file)?);
    }
    records.retain(|record| arguments.wants(record));
    ensure!(
        peers.is_empty() || arguments.dtype == PEER_DTYPE,
        "the records of {PEER_LINE} are of {PEER_DTYPE}, not {}",
        arguments.dtype
    );
    let device = records.first().map(|record| record.device.clone());
    let device = device.context("no records of this backend and dtype")?;
    ensure!(
        records.iter().all(|record| record.device == device),
        "the records are of several devices; a chart compares runs of one device"
    );
    let panels = panels(&records, &times(&peers)?, arguments.figure)?;
    let axes = arguments.figure.axes();
    let title =
        format!("Top-k of one vector on {device} ({}): {}", arguments.backend, arguments.dtype);
    let svg = chart::svg(&title, &panels, axes).map_err(|error| anyhow::anyhow!("{error}"))?;
    output::write(&arguments.output, svg.as_bytes())
        .with_context(|| format!("{}", arguments.output.display()))?;
    say!("{}: {} panels of {} records", arguments.output.display(), panels.len(), records.len());
    if arguments.figure == Figure::Tuned {
        say!("\n{}", exponents::tables(&records)?);
        return Ok(());
    }
    for panel in &panels {
        say!("\n{} ({})\n", panel.title, axes.y);
        say!("{}", chart::table(panel, axes.x).trim_end());
    }
    Ok(())
}

impl Arguments {
    fn wants(&self, record: &VectorRecord) -> bool {
        let dist = self.dist.as_ref();
        record.backend == self.backend
            && record.dtype == self.dtype
            && dist.is_none_or(|dist| *dist == record.dist)
    }
}

type Times = BTreeMap<(usize, usize), f64>;

fn times(peers: &[PeerRecord]) -> anyhow::Result<Times> {
    let mut times = Times::new();
    for record in peers.iter().filter(|record| record.peer == PEER) {
        let case: VectorCase = record.case.parse()?;
        times.insert((case.length, case.k), record.ms);
    }
    Ok(times)
}

#[derive(Default)]
struct Panels(BTreeMap<String, BTreeMap<String, BTreeMap<usize, f64>>>);

impl Panels {
    fn line(&mut self, panel: String, line: &str) -> &mut BTreeMap<usize, f64> {
        let lines = self.0.entry(panel).or_default();
        lines.entry(line.into()).or_default()
    }
}

fn panels(records: &[VectorRecord], peer: &Times, figure: Figure) -> anyhow::Result<Vec<Panel>> {
    let mut panels = Panels::default();
    if figure == Figure::Tuned {
        for sweep in exponents::sweeps(records)? {
            let vector = format!("{}, n = {}", sweep.dist, power(sweep.length));
            let mut add = |line: &str, ms| panels.line(vector.clone(), line).insert(sweep.k, ms);
            add("best exponent", sweep.best().1);
            if let Some(ms) = sweep.chosen() {
                add("Rule 4", ms);
            }
        }
    }
    for record in records {
        let case: VectorCase = record.case.parse()?;
        let (n, k) = (case.length, case.k);
        let vector = format!("{}, n = {}", record.dist, power(n));
        match (figure, record.exponent()) {
            (Figure::Alpha, Some(exponent)) => {
                let line = panels.line(vector, &format!("k = {k}"));
                line.insert(exponent as usize, record.ms);
            }
            (Figure::Length, None) => {
                let panel = format!("{}, k = {}", record.dist, power(k));
                let mut add = |line: &str, ms| panels.line(panel.clone(), line).insert(n, ms);
                add(&record.method, record.ms);
                add(READ, record.floor_ms);
                if let Some(&ms) = peer.get(&(n, k)) {
                    add(PEER_LINE, ms);
                }
            }
            (Figure::Speedup, None) if record.method == "delegates" => {
                if let Some(ms) = peer.get(&(n, k)) {
                    panels.line(vector, PEER_LINE).insert(k, ms / record.ms);
                }
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
                let parts =
                    [("delegates", record.delegates), ("concatenated", record.concatenated)];
                for (name, part) in parts {
                    panels.line(vector.clone(), name).insert(k, percent(part));
                }
            }
            _ => {}
        }
    }
    let panels: Vec<Panel> = (panels.0.into_iter())
        .map(|(title, lines)| Panel { title, lines })
        .filter(|panel| panel.ticks().len() >= FEWEST)
        .collect();
    ensure!(!panels.is_empty(), "no {FEWEST} records make a line of this figure");
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
            spread: None,
            launched_ms: None,
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
            record("2**10x1", "alpha:5", 2.5),
            record("2**10x1", "delegates", 2.5),
            record("2**10x2", "alpha:4", 4.0),
            record("2**10x2", "delegates", 4.5),
            record("2**10x4", "alpha:4", 6.0),
            record("2**10x1", "whole/radix", 10.0),
            record("2**10x2", "whole/radix", 9.0),
            record("2**10x4", "delegates", 5.0),
            record("2**10x1", "delegates/radix", 5.0),
            record("2**10x2", "delegates/radix", 3.0),
        ];
        let peer = [((1024, 1), 5.0), ((1024, 2), 9.0), ((1024, 4), 15.0)].into();
        let panels = |figure| panels(&records, &peer, figure);
        let lines = |figure| panels(figure).expect("a panel").remove(0).lines;
        let alpha = lines(Figure::Alpha);
        assert_eq!(alpha["k = 1"], [(3, 3.0), (4, 2.0), (5, 2.5)].into());
        let tuned = lines(Figure::Tuned);
        assert_eq!(tuned["best exponent"], [(1, 2.0), (2, 4.0), (4, 6.0)].into());
        assert_eq!(tuned["Rule 4"], [(1, 2.5), (2, 4.5), (4, 5.0)].into());
        assert_eq!(lines(Figure::Speedup)["radix"], [(1, 2.0), (2, 3.0)].into());
        assert_eq!(lines(Figure::Workload)["delegates"][&1], 6.25);
        assert_eq!(lines(Figure::Speedup)["torch.topk"], [(1, 2.0), (2, 2.0), (4, 3.0)].into());
        assert!(panels(Figure::Length).is_err());
    }

    #[test]
    fn lengths_are_compared_with_the_peer() {
        let records = [
            record("2**10x4", "delegates", 1.0),
            record("2**11x4", "delegates", 2.0),
            record("2**12x4", "delegates", 4.0),
        ];
        let peers = ["2**10x4", "2**12x4", "2**13x4"].map(|case| PeerRecord {
            peer: PEER.into(),
            case: case.into(),
            ms: 8.0,
        });
        let peer = times(&peers).expect("cases");
        let panels = panels(&records, &peer, Figure::Length).expect("a panel");
        let line = &panels[0].lines[PEER_LINE];
        assert_eq!(*line, [(1024, 8.0), (4096, 8.0)].into());
        assert_eq!(panels[0].lines[READ][&1024], 0.5);
    }
}
