//! Markdown tables of one file of records.

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::ensure;

use crate::{
    paper::{distance_table, epoch_table},
    record::{self, NeighborRecord, Record, VectorRecord},
};

/// Prints a table of the records in a file, one row per case in the order of the file.
#[derive(clap::Args)]
pub struct Arguments {
    /// A file written by `--json`.
    file: PathBuf,
    /// Only records of this backend.
    #[arg(long, default_value = "cuda")]
    backend: String,
    /// Only records of this method.
    #[arg(long)]
    method: Option<String>,
    /// Nolet et al., Table 3: the paper's routine (hybrid), the chosen one, and the published
    /// seconds.
    #[arg(long)]
    table_3: bool,
    /// RTop-K, Table 4 and Fig. 5: the share of top-k in training epochs, and the speed-ups.
    #[arg(long, conflicts_with = "table_3")]
    table_4: bool,
}

impl Arguments {
    fn wants(&self, backend: &str, method: &str) -> bool {
        let any = self.method.is_none();
        backend == self.backend && (any || self.method.as_deref() == Some(method))
    }
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if arguments.table_4 {
        let mut epochs = record::read_epochs(&arguments.file)?;
        epochs.retain(|record| arguments.wants(&record.backend, &record.method));
        ensure!(!epochs.is_empty(), "no records of epochs");
        epoch_table::print(&epochs);
        return Ok(());
    }
    let mut vectors = record::read_vectors(&arguments.file)?;
    vectors.retain(|record| arguments.wants(&record.backend, &record.method));
    if !vectors.is_empty() {
        print_vectors(&vectors);
        return Ok(());
    }
    let mut neighbors = record::read_neighbors(&arguments.file)?;
    neighbors.retain(|record| arguments.wants(&record.backend, &record.method));
    if arguments.table_3 {
        ensure!(!neighbors.is_empty(), "no records of distance");
        distance_table::print(&neighbors);
        return Ok(());
    }
    if !neighbors.is_empty() {
        print_neighbors(&neighbors);
        return Ok(());
    }
    let mut records = record::read_rows(&arguments.file)?;
    records.retain(|record| arguments.wants(&record.backend, &record.method));
    ensure!(
        !records.is_empty(),
        "{} has no matching records of {}",
        arguments.file.display(),
        arguments.backend
    );
    say!(
        "| N x M x k | dtype | form | input | floor, ms | method: ms (× floor) | first call, ms |"
    );
    say!("| --- | --- | --- | --- | --- | --- | --- |");
    let mut rows: Vec<String> = Vec::new();
    let mut cells: BTreeMap<String, Vec<&Record>> = BTreeMap::new();
    for record in &records {
        let row =
            format!("`{}` | {} | {} | {}", record.case, record.dtype, record.form, record.dist);
        if !cells.contains_key(&row) {
            rows.push(row.clone());
        }
        cells.entry(row).or_default().push(record);
    }
    for row in rows {
        let records = &cells[&row];
        let times: Vec<String> = records
            .iter()
            .map(|r| format!("{}: {:.3} ({:.2})", r.method, r.ms, r.ms / r.floor_ms))
            .collect();
        say!(
            "| {row} | {:.3} | {} | {:.0} |",
            records[0].floor_ms,
            times.join(", "),
            records[0].first_ms,
        );
    }
    Ok(())
}

fn print_vectors(records: &[VectorRecord]) {
    say!(
        "| n x k | dtype | input | method | one read, ms | ms (× one read) | delegates + \
         concatenated, share of n |"
    );
    say!("| --- | --- | --- | --- | --- | --- | --- |");
    for record in records {
        let worked = (record.delegates + record.concatenated) as f64 / record.checked as f64;
        say!(
            "| `{}` | {} | {} | {} | {:.3} | {:.3} ({:.2}) | {} + {}, {worked:.4} |",
            record.case,
            record.dtype,
            record.dist,
            record.method,
            record.floor_ms,
            record.ms,
            record.ms / record.floor_ms,
            record.delegates,
            record.concatenated,
        );
    }
}

/// Prints nearest neighbors: a row for each metric and forced routine, a column for each data set.
fn print_neighbors(records: &[NeighborRecord]) {
    let method = |record: &NeighborRecord| match record.routine.as_str() {
        "auto" => record.method.clone(),
        forced => format!("{}, {forced}", record.method),
    };
    let in_order = |name: &dyn Fn(&NeighborRecord) -> String| {
        let mut names: Vec<String> = Vec::new();
        for name in records.iter().map(name) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    };
    let (cases, methods) = (in_order(&|record| record.case.clone()), in_order(&method));
    let line = |cells: Vec<String>| say!("| {} |", cells.join(" | "));
    let head = cases.iter().map(|case| format!("{case}, ms (ps per pair of entries; × floor)"));
    line([String::from("metric")].into_iter().chain(head).collect());
    line(vec!["---".into(); cases.len() + 1]);
    for name in &methods {
        let cells = cases.iter().map(|case| {
            let found = records.iter().find(|r| r.case == *case && method(r) == *name);
            found.map_or("–".into(), |r| {
                format!("{:.2} ({:.2}; {:.0})", r.ms, 1e3 / r.gwork_per_s, r.ms / r.floor_ms)
            })
        });
        line([name.clone()].into_iter().chain(cells).collect());
    }
}
