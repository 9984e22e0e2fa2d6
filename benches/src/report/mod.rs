//! docs/performance.md and chapters of the guide from the records.
//!
//! ```text
//! benches/records/<device>/<bench>.jsonl  ->  docs/performance.md, docs/figures/*.svg
//! ```
//!
//! A section for each device, a table for each bench. Repeated lines of a case become their median.
//! The module uses charts and JSON alone, so it runs without a device.

mod accuracy;
mod backends;
mod chapter;
mod distances;
mod figures;
mod graphs;
mod long_rows;
mod numbers;
mod papers;
mod python;
pub(crate) mod records;
mod sections;
mod selection;
mod table;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};

use self::records::Benches;

/// Writes docs/performance.md and its figures from the records. Run it in the repository root.
#[derive(clap::Args)]
pub struct Arguments {
    /// The folder of records: DEVICE/BENCH.jsonl.
    #[arg(long, default_value = "benches/records")]
    records: PathBuf,
    /// The document; figures are in the folder `figures` beside it, the chapters in `guide/src`.
    #[arg(long, default_value = "docs/performance.md")]
    output: PathBuf,
    /// Fails if a file differs from the records, or if a document beside it has a measured number
    /// that no record has; writes nothing.
    #[arg(long)]
    check: bool,
}

const HEAD: &str = "\
# Performance

`sparsek-bench report` writes this file from `benches/records`; do not edit it. Each case was
compared with an oracle before it was timed. [benchmarks.md](benchmarks.md) says how to run and read
the benches.

- A cell is the median of the newest runs of a case, with three significant digits; it is empty
  if no run is recorded.
- `× floor` is the quotient with the compulsory memory traffic at the copy rate of the same run.
  Data that fits in a cache can be faster.
- A peer's time is followed by its quotient with ours. Peers ran on the same kind of card, some on
  another day.
- GPU tables without a backend are CUDA.
";

/// The chapters, beside the document.
const CHAPTERS: [&str; 4] = [
    "guide/src/papers.md",
    "guide/src/long-rows.md",
    "guide/src/python.md",
    "guide/src/accuracy.md",
];

struct Report {
    text: String,
    chapters: [Option<String>; CHAPTERS.len()],
    /// File names and contents.
    figures: Vec<(String, String)>,
}

/// Writes the files, or compares them with `--check`.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let devices = records::load(&arguments.records)?;
    let report = report(devices.iter().map(|(name, benches)| (&**name, benches)))?;
    let folder = arguments.output.with_file_name("figures");
    let mut files = vec![(arguments.output.clone(), report.text)];
    let chapters = CHAPTERS.iter().zip(report.chapters);
    files.extend(
        chapters
            .filter_map(|(name, chapter)| Some((arguments.output.with_file_name(name), chapter?))),
    );
    let figures = report.figures.into_iter();
    files.extend(figures.map(|(name, svg)| (folder.join(name), svg)));
    if arguments.check {
        for (path, text) in &files {
            let found = fs::read_to_string(path).unwrap_or_default();
            ensure!(
                found == *text,
                "{} differs from the records; run sparsek-bench report",
                path.display()
            );
        }
        let generated: Vec<&str> = files.iter().map(|(_, text)| &**text).collect();
        return numbers::check(arguments.output.parent().unwrap_or(Path::new("")), &generated);
    }
    for (path, text) in &files {
        fs::create_dir_all(path.parent().unwrap_or(Path::new("")))?;
        fs::write(path, text).with_context(|| path.display().to_string())?;
        say!("{}", path.display());
    }
    Ok(())
}

/// Builds the document. GPUs come first, the newest card at the top.
fn report<'a>(devices: impl Iterator<Item = (&'a str, &'a Benches)>) -> anyhow::Result<Report> {
    let mut devices: Vec<_> = devices.collect();
    devices.sort_by_key(|(folder, _)| std::cmp::Reverse(rank(folder)));
    let with_records = |bench: &'static str| {
        let devices = devices.iter();
        devices.map(move |&(folder, all)| (title(folder, all), all, record_path(folder, bench)))
    };
    let chapters = [
        papers::chapter(with_records("paper")),
        long_rows::chapter(with_records("long-rows")),
        python::chapter(with_records("python")),
        accuracy::chapter(with_records("plain")),
    ];
    let mut report = Report { text: HEAD.into(), chapters, figures: Vec::new() };
    for (folder, benches) in devices {
        let figures = figures::all(folder, benches)?;
        let body = sections::all(benches, &figures, |bench| record_path(folder, bench));
        if !body.is_empty() {
            let text = report.text.trim_end();
            report.text = format!("{text}\n\n## {}\n\n{body}", title(folder, benches));
        }
        let figures = figures.into_iter();
        report.figures.extend(figures.map(|figure| (figure.file, figure.svg)));
    }
    report.text = report.text.trim_end().to_string() + "\n";
    Ok(report)
}

fn rank(folder: &str) -> (bool, &str) {
    (folder.starts_with("nvidia"), folder)
}

/// The name of a device: as its driver gives it, else the folder's name.
fn title(folder: &str, benches: &Benches) -> String {
    let lines = benches.values().flatten();
    let mut names = lines.map(|line| line.text("device"));
    let name = names.find(|name| !name.is_empty()).unwrap_or_default();
    let name = name.split(", plane").next().unwrap_or_default();
    match folder.starts_with("nvidia") && !name.is_empty() {
        true => name.to_string(),
        false => format!("{folder} ({name})"),
    }
}

/// The folder of a device as documents name it.
fn record_path(folder: &str, bench: &str) -> String {
    let path = Path::new("benches/records").join(folder);
    path.join(format!("{bench}.jsonl")).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::package;

    fn benches(bench: &str, text: &str) -> Benches {
        [(bench.to_string(), records::parse(text).unwrap())].into()
    }

    #[test]
    fn devices_become_sections() {
        let line = r#"{"case":"8x2x2","backend":"cuda","device":"NVIDIA X, plane 32",
            "method":"output","ms":2.0,"floor_ms":1.0,"date":"2026-01-01"}"#;
        let gpu = benches("linear", &line.replace('\n', ""));
        let cpu = benches("suite", r#"{"device":"pure Rust"}"#);
        let report = report([("a-cpu", &cpu), ("nvidia-x", &gpu)].into_iter()).unwrap();
        assert!(report.text.contains("\n## NVIDIA X\n\n### Linear layers\n"));
        assert!(report.text.contains("| `8x2x2` | cuda | 2.00 (2.00×) |"));
        assert!(report.text.contains("benches/records/nvidia-x/linear.jsonl"));
        assert!(!report.text.contains("a-cpu"));
    }

    #[test]
    fn the_document_and_all_figures_are_what_the_records_say() {
        let benches = package();
        let arguments = Arguments {
            records: benches.join("records"),
            output: benches.join("../docs/performance.md"),
            check: true,
        };
        run(&arguments).unwrap();
        let figures = benches.join("../docs/figures");
        let files = fs::read_dir(&figures).unwrap().map(|file| file.unwrap());
        let mut files: Vec<_> = files.map(|file| file.file_name().into_string()).collect();
        files.sort();
        let expected = ["peers", "rows", "vector"];
        let expected = expected.map(|name| Ok(format!("nvidia-h200-{name}.svg")));
        assert_eq!(files, expected);
    }

    #[test]
    fn check_fails_if_a_file_differs() {
        let folder = std::env::temp_dir().join(format!("sparsek-report-{}", std::process::id()));
        let records = folder.join("records/nvidia-x");
        fs::create_dir_all(&records).unwrap();
        let origin = r#""commit":"c151c98","date":"2026-11-30""#;
        let times = r#""single_us":1.0,"piped_us":2.0,"first_ms":3.0"#;
        let line = format!(r#"{{"case":"1x8x2",{times},{origin}}}"#);
        fs::write(records.join("latency.jsonl"), line).unwrap();
        let mut arguments = Arguments {
            records: folder.join("records"),
            output: folder.join("performance.md"),
            check: true,
        };
        assert!(run(&arguments).is_err());
        arguments.check = false;
        run(&arguments).unwrap();
        arguments.check = true;
        run(&arguments).unwrap();
        fs::write(&arguments.output, "edited").unwrap();
        assert!(run(&arguments).is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
