//! Markdown tables from the records of the runner.

use std::{collections::BTreeMap, fs, path::PathBuf};

use anyhow::{Context, ensure};

use crate::record::Record;

/// Prints a table of the records in a file, one row per case, in the order of the file.
#[derive(clap::Args)]
pub struct Arguments {
    /// A file that `--json` has written.
    file: PathBuf,
    /// Only records of this backend.
    #[arg(long, default_value = "cuda")]
    backend: String,
}

/// Reads, groups, prints.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let name = arguments.file.display();
    let text = fs::read_to_string(&arguments.file).with_context(|| format!("{name}"))?;
    let mut records = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let record: Record =
            serde_json::from_str(line).with_context(|| format!("{name}, line {}", number + 1))?;
        if record.bench == "topk" && record.backend == arguments.backend {
            records.push(record);
        }
    }
    ensure!(
        !records.is_empty(),
        "{name} has no records of {}",
        arguments.backend
    );
    println!(
        "| N x M x k | dtype | form | input | floor, ms | method: ms (× floor) | first call, ms |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let mut rows: Vec<String> = Vec::new();
    let mut cells: BTreeMap<String, Vec<&Record>> = BTreeMap::new();
    for record in &records {
        let row = format!(
            "`{}` | {} | {} | {}",
            record.case, record.dtype, record.form, record.dist
        );
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
        println!(
            "| {row} | {:.3} | {} | {:.0} |",
            records[0].floor_ms,
            times.join(", "),
            records[0].first_ms,
        );
    }
    Ok(())
}
