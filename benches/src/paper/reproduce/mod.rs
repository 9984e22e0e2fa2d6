//! `paper NAME`: measures what a paper prints and puts both side by side.

mod dr_top_k;
mod rtop_k;
mod semirings;
mod torch_note;

use std::path::PathBuf;

use anyhow::{bail, ensure};
use clap::ValueEnum;
use cubecl::client::Client;
use serde::Serialize;
use sparsek_tests::backend::{Backend, Kind};

use crate::{chart::significant, record};

/// Measures the tables and figures of a paper, beside what it prints.
#[derive(clap::Args)]
pub struct Arguments {
    /// The paper.
    #[arg(value_enum)]
    paper: Paper,
    /// Where to run.
    #[arg(long)]
    backend: Kind,
    /// Fewer sizes: minutes on a GPU.
    #[arg(long)]
    quick: bool,
    /// Only this table or figure, as the headings print it, such as "Fig. 17"; may be repeated.
    #[arg(long = "figure")]
    figures: Vec<String>,
    /// RTop-K: times of torch.topk, as benches/peers/torch_topk.py prints them. Without it,
    /// speed-ups are over Burn's operation.
    #[arg(long)]
    peers: Option<PathBuf>,
    /// Appends one JSON line per figure.
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Paper {
    /// RTop-K: Tables 1 to 5, Figs. 4 to 7.
    RtopK,
    /// Dr. Top-k: Figs. 15, 17, 18, 20 to 22, Table 2.
    DrTopK,
    /// Sparse semirings: Table 3, Algorithms 1 to 3, Section 3.3.3.
    Semirings,
    /// The note on torch.topk: radix selection of rows.
    TorchNote,
}

impl Paper {
    /// Names for `--figure`.
    fn figures(self) -> &'static [&'static str] {
        match self {
            Self::RtopK => &["Table 3", "Figs. 6, 7", "Table 4", "Fig. 5", "Tables 1, 2, 5"],
            Self::DrTopK => {
                &["Fig. 15", "Fig. 17", "Fig. 18", "Fig. 20", "Fig. 21", "Fig. 22", "Table 2"]
            }
            Self::Semirings => &["Table 3", "Algorithms 1, 2, 3", "Section 3.3.3"],
            Self::TorchNote => &["Radix select"],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::RtopK => "rtop-k",
            Self::DrTopK => "dr-top-k",
            Self::Semirings => "semirings",
            Self::TorchNote => "torch-note",
        }
    }
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let backend = arguments.backend.open().map_err(anyhow::Error::msg)?;
    let known = arguments.paper.figures();
    for figure in &arguments.figures {
        ensure!(known.contains(&figure.as_str()), "{figure}: not one of {}", known.join("; "));
    }
    let session = Session { backend, arguments };
    say!("{} ({})", arguments.backend, session.backend.label);
    match arguments.paper {
        Paper::RtopK => rtop_k::run(&session),
        Paper::DrTopK => dr_top_k::run(&session),
        Paper::Semirings => semirings::run(&session),
        Paper::TorchNote => torch_note::run(&session),
    }
}

/// A figure of a paper and ours.
#[derive(Serialize)]
struct Comparison<'a> {
    bench: &'static str,
    paper: &'static str,
    figure: &'a str,
    case: &'a str,
    /// What is measured, with its unit.
    quantity: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    published: Option<f64>,
    ours: f64,
    backend: String,
    device: &'a str,
}

struct Session<'a> {
    backend: Backend,
    arguments: &'a Arguments,
}

impl Session<'_> {
    fn client(&self) -> anyhow::Result<&Client> {
        match &self.backend.client {
            Some(client) => Ok(client),
            None => bail!("{} has no kernels", self.arguments.backend),
        }
    }

    /// Whether a table or figure is asked for.
    fn wants(&self, figure: &str) -> bool {
        let figures = &self.arguments.figures;
        figures.is_empty() || figures.iter().any(|wanted| wanted == figure)
    }

    /// Begins the table of a figure, if it is asked for.
    fn begins(&self, figure: &str, quantity: &str) -> bool {
        if !self.wants(figure) {
            return false;
        }
        say!("\n{figure}: {quantity}\n\n| case | paper | ours | ours / paper |");
        say!("| --- | --- | --- | --- |");
        true
    }

    /// Prints and records a row of a table.
    fn row(
        &self,
        [figure, quantity, case]: [&str; 3],
        published: Option<f64>,
        ours: f64,
    ) -> anyhow::Result<()> {
        let published_cell = published.map_or("–".into(), significant);
        let ratio = published.map_or("–".into(), |published| significant(ours / published));
        say!("| {case} | {published_cell} | {} | {ratio} |", significant(ours));
        let Some(path) = &self.arguments.json else {
            return Ok(());
        };
        let comparison = Comparison {
            bench: "paper",
            paper: self.arguments.paper.name(),
            figure,
            case,
            quantity,
            published,
            ours,
            backend: self.arguments.backend.to_string(),
            device: &self.backend.label,
        };
        record::append(path, &comparison)
    }
}
