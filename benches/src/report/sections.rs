//! The sections of a device, one for each bench.

use std::collections::BTreeSet;

use super::{
    backends::backends,
    distances::{dense, distances},
    figures::Figure,
    graphs::{linear, maxk, products},
    long_rows,
    records::{Benches, Line},
    selection::{
        convolutions, latency, layers, rows, shards, startup, statistics, stream, vectors,
    },
    table::extremes,
};

/// A bench, the head of its section, and the function that writes its tables.
type Section = (&'static str, &'static str, fn(&[Line]) -> String);

/// The sections in the order of the document.
const SECTIONS: [Section; 15] = [
    ("topk", "Row-wise top-k", rows),
    ("long-rows", "Long rows beside other libraries", long_rows::summary),
    ("latency", "Single calls of row-wise top-k", latency),
    ("layers", "Sorting and model layers", layers),
    ("startup", "Whole programs", startup),
    ("delegate", "Top-k of one vector", vectors),
    ("stream", "Vectors streamed from the host", stream),
    ("shards", "Vectors over several GPUs", shards),
    ("distance", "Nearest neighbors of sparse rows", distances),
    ("dense", "Nearest neighbors of dense rows", dense),
    ("spmm", "Products with a graph, and training epochs", products),
    ("convolutions", "Graph convolutions, forward and backward", convolutions),
    ("linear", "Linear layers", linear),
    ("maxk", "MaxK-GNN", maxk),
    ("rtopk-stats", "Statistics of RTop-K", statistics),
];

/// The sections of a device, with their figures and the files behind them.
pub fn all(benches: &Benches, figures: &[Figure], path: impl Fn(&str) -> String) -> String {
    let mut text = String::new();
    for (bench, title, write) in SECTIONS {
        let Some(lines) = benches.get(bench) else {
            continue;
        };
        let body = write(lines);
        if body.is_empty() {
            continue;
        }
        text += &format!("### {title}\n\n{body}");
        for figure in figures.iter().filter(|figure| figure.bench == Some(bench)) {
            text += &format!("![{}](figures/{})\n\n", figure.caption, figure.file);
        }
        text += &origin(&path(bench), lines);
    }
    match backends(benches) {
        empty if empty.is_empty() => text,
        table => text + "### Other backends\n\nQuotients of the same cases.\n\n" + &table,
    }
}

/// The file of records, its dates, and the copy rates of its runs.
fn origin(path: &str, lines: &[Line]) -> String {
    let mut text = format!("`{path}`");
    let dates: BTreeSet<&str> = lines.iter().map(|line| line.text("date")).collect();
    if let (Some(first), Some(last)) = (dates.first(), dates.last()) {
        text += &match first == last {
            true => format!(", {last}"),
            false => format!(", {first} to {last}"),
        };
    }
    let rates = lines.iter().filter_map(|line| line.number("copy_gbps"));
    let rates: Vec<f64> = rates.filter(|&rate| rate > 0.0).collect();
    if let Some((least, most)) = extremes(&rates) {
        text += &format!("; copy {least:.0} to {most:.0} GB/s");
    }
    text + ".\n\n"
}
