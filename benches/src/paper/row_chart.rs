//! RTop-K, Fig. 4: time of row-wise top-k over k or over the row length.

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::{Context, ensure};
use clap::ValueEnum;
use sparsek::io::output;

use crate::{
    case::RowCase,
    chart::{self, Axes, FLOOR, Panel, Scale, power},
    record::{self, Record},
};

/// Draws records of `topk` as SVG.
#[derive(clap::Args)]
pub struct Arguments {
    /// Files written by `--json`; the last record of a case counts.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The SVG.
    #[arg(long)]
    output: PathBuf,
    /// The horizontal axis.
    #[arg(long, value_enum, default_value_t = X::K)]
    x: X,
    /// The vertical axis.
    #[arg(long, value_enum, default_value_t = Y::Time)]
    y: Y,
    /// Only records of this backend.
    #[arg(long, default_value = "cuda")]
    backend: String,
    /// Only records of this dtype.
    #[arg(long, default_value = "f32")]
    dtype: String,
    /// Only records of this form.
    #[arg(long, default_value = "pairs")]
    form: String,
    /// Only records of this distribution.
    #[arg(long, default_value = "normal")]
    dist: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum X {
    /// Elements kept per row, with a panel for each row length.
    K,
    /// Row length, with a panel for each k.
    M,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Y {
    /// Milliseconds, and the memory floor.
    Time,
    /// Burn's time divided by ours.
    Speedup,
}

/// Reads the records and draws one panel for each number of rows and row length (or k).
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut records = Vec::new();
    for file in &arguments.files {
        records.extend(record::read_rows(file)?);
    }
    records.retain(|record| arguments.wants(record));
    let Some(first) = records.first() else {
        anyhow::bail!(
            "no records of {}, {}, {}, {}",
            arguments.backend,
            arguments.dtype,
            arguments.form,
            arguments.dist
        );
    };
    let device = first.device.clone();
    ensure!(
        records.iter().all(|record| record.device == device),
        "the records are of several devices; a chart compares runs of one device"
    );
    let panels = panels(&records, arguments.x, arguments.y)?;
    let title = format!(
        "Row-wise top-k on {device} ({}): {} {}, {} rows",
        arguments.backend, arguments.dtype, arguments.form, arguments.dist
    );
    let svg = chart::svg(&title, &panels, arguments.axes())
        .map_err(|error| anyhow::anyhow!("{error}"))?;
    output::write(&arguments.output, svg.as_bytes())
        .with_context(|| arguments.output.display().to_string())?;
    say!("{}: {} panels of {} records", arguments.output.display(), panels.len(), records.len());
    Ok(())
}

impl Arguments {
    fn axes(&self) -> Axes {
        Axes {
            x: match self.x {
                X::K => "k, elements kept per row",
                X::M => "M, elements per row",
            },
            y: match self.y {
                Y::Time => "time, ms",
                Y::Speedup => "Burn's time / ours",
            },
            x_scale: Scale::Log,
            y_scale: Scale::Linear,
        }
    }

    fn wants(&self, record: &Record) -> bool {
        record.backend == self.backend
            && record.dtype == self.dtype
            && record.form == self.form
            && record.dist == self.dist
            && (self.y == Y::Time || record.burn_ms.is_some())
    }
}

/// One panel for each pair of rows and M (or k), by size. Panels with a single x are left out.
fn panels(records: &[Record], x: X, y: Y) -> anyhow::Result<Vec<Panel>> {
    let mut panels: BTreeMap<(usize, usize), Panel> = BTreeMap::new();
    for record in records {
        let case: RowCase = record.case.parse()?;
        let (fixed, at, name) = match x {
            X::K => (case.cols, case.k, "M"),
            X::M => (case.k, case.cols, "k"),
        };
        let panel = panels.entry((case.rows, fixed)).or_insert_with(|| Panel {
            title: format!("N = {}, {name} = {fixed}", power(case.rows)),
            ..Panel::default()
        });
        match (y, record.burn_ms) {
            (Y::Time, _) => {
                panel.add(&record.method, at, record.ms);
                panel.add(FLOOR, at, record.floor_ms);
            }
            (Y::Speedup, Some(burn)) => panel.add(&record.method, at, burn / record.ms),
            (Y::Speedup, None) => {}
        }
    }
    let panels = panels.into_values();
    let panels: Vec<Panel> = panels.filter(|panel| panel.ticks().len() > 1).collect();
    ensure!(
        !panels.is_empty(),
        "no two records differ in {x:?} alone, so there is no line to draw"
    );
    Ok(panels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::panel::names;

    fn record(case: &str, method: &str, ms: f64) -> Record {
        Record {
            bench: "topk".into(),
            case: case.into(),
            backend: "cuda".into(),
            device: "a device".into(),
            dtype: "f32".into(),
            method: method.into(),
            form: "pairs".into(),
            dist: "normal".into(),
            ms,
            spread: None,
            first_ms: 0.0,
            floor_ms: 0.5,
            copy_gbps: 1.0,
            checked: 1,
            burn_ms: Some(6.0),
        }
    }

    #[test]
    fn lines_are_grouped_by_the_other_sizes() {
        let records = [
            record("2**16x256x32", "exact", 2.0),
            record("2**16x256x16", "exact", 1.0),
            record("2**16x256x16", "early:8", 1.5),
            record("2**16x256x32", "exact", 3.0),
            record("2**16x512x32", "exact", 4.0),
        ];
        let over_k = panels(&records, X::K, Y::Time).expect("a line");
        assert_eq!(over_k.len(), 1);
        assert_eq!(over_k[0].title, "N = 2^16, M = 256");
        let exact: Vec<_> = over_k[0].lines["exact"].iter().collect();
        assert_eq!(exact, [(&16, &1.0), (&32, &3.0)]);
        assert_eq!(names(&over_k), ["exact", "early:8", FLOOR]);

        let over_m = panels(&records, X::M, Y::Speedup).expect("a line");
        assert_eq!(over_m[0].title, "N = 2^16, k = 32");
        let exact: Vec<_> = over_m[0].lines["exact"].iter().collect();
        assert_eq!(exact, [(&256, &2.0), (&512, &1.5)]);
        assert!(panels(&records[..1], X::K, Y::Time).is_err());
    }
}
