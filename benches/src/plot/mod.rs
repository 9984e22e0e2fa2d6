//! A chart of records, after RTop-K's Fig. 4: one panel for each number of rows and row length (or k),
//! in it a line for each method.

mod draw;
mod markdown;
mod panel;
mod tuned;
mod vectors;

use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::ValueEnum;
use sparsek::io::output;

use self::draw::{Axes, Scale};
pub use self::vectors::Arguments as VectorArguments;
use crate::record::{self, Record};

/// Draws records of `topk` as SVG.
#[derive(clap::Args)]
pub struct Arguments {
    /// Files that `--json` has written; of the same case the last record counts.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The SVG.
    #[arg(long)]
    output: PathBuf,
    /// The horizontal axis.
    #[arg(long, value_enum, default_value_t = X::K)]
    x: X,
    /// The vertical axis: milliseconds, or how many times as long Burn's own operation takes.
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

/// What a panel is drawn over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum X {
    /// Members per row; a panel is of one row length.
    K,
    /// Row length; a panel is of one k.
    M,
}

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Y {
    /// Milliseconds, and the time that the compulsory traffic takes.
    Time,
    /// Burn's time over ours.
    Speedup,
}

/// Draws records of `delegate`.
pub fn run_vectors(arguments: &VectorArguments) -> anyhow::Result<()> {
    vectors::run(arguments)
}

/// Reads, groups, draws.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut records = Vec::new();
    for file in &arguments.files {
        records.extend(record::read(file)?);
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
        "the records are of several devices, which one chart cannot compare"
    );
    let panels = panel::panels(&records, arguments.x, arguments.y)?;
    let title = format!(
        "Row-wise top-k on {device} ({}): {} {}, {} rows",
        arguments.backend, arguments.dtype, arguments.form, arguments.dist
    );
    let svg =
        draw::svg(&title, &panels, arguments.axes()).map_err(|error| anyhow::anyhow!("{error}"))?;
    output::write(&arguments.output, svg.as_bytes())
        .with_context(|| format!("{}", arguments.output.display()))?;
    say!(
        "{}: {} panels of {} records",
        arguments.output.display(),
        panels.len(),
        records.len()
    );
    Ok(())
}

impl Arguments {
    fn axes(&self) -> Axes {
        Axes {
            x: match self.x {
                X::K => "k, members per row",
                X::M => "M, elements per row",
            },
            y: match self.y {
                Y::Time => "time, ms",
                Y::Speedup => "speed-up over Burn, times",
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
