//! Times whole programs with a cold and a warm kernel cache.
//!
//! Each sample is a process. The runs of a case share a folder with the kernel caches of sparsek
//! and of the driver; a cold run starts with an empty folder.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use sparsek_tests::backend::Kind;

use crate::{
    latency::LatencyRecord,
    record::{self, EpochRecord},
};

/// Times whole programs built beside this one.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where to run.
    #[arg(long)]
    backend: Kind,
    /// What to run; may be repeated.
    #[arg(long = "case", value_enum, value_delimiter = ',', default_values_t = [Case::Topk])]
    cases: Vec<Case>,
    /// The GraphSAINT folder of amazon-computers, for `maxk`.
    #[arg(long, value_name = "DIR")]
    graph: Option<PathBuf>,
    /// The matrix of movielens-1m, for `knn`.
    #[arg(long, value_name = "FILE")]
    matrix: Option<PathBuf>,
    /// Cold runs, and as many warm runs. The record holds their medians.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// The device's name, for the record.
    #[arg(long, default_value = "unnamed")]
    device: String,
    /// Appends one JSON line for each case and state of the cache.
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Case {
    /// The first call of `topk` in a process: rows of 256, k = 32.
    Topk,
    /// `maxk train` on amazon-computers: 200 epochs of SAGE with MaxK, k = 32.
    Maxk,
    /// `knn` on movielens-1m with Manhattan distances.
    Knn,
    /// Upload and first epoch of a graph of Reddit's size.
    Epoch,
}

impl Case {
    fn name(self) -> &'static str {
        match self {
            Self::Topk => "topk first call",
            Self::Maxk => "maxk amazon-computers",
            Self::Knn => "knn movielens-1m manhattan",
            Self::Epoch => "epoch reddit-size",
        }
    }
}

#[derive(Serialize, Deserialize)]
pub struct StartupRecord {
    pub bench: String,
    pub case: String,
    pub backend: String,
    pub device: String,
    pub cache: String,
    pub ms: f64,
    pub samples_ms: Vec<f64>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let folder = env::temp_dir().join(format!("sparsek-startup-{}", std::process::id()));
    for &case in &arguments.cases {
        let done = both(arguments, case, &folder).with_context(|| case.name());
        fs::remove_dir_all(&folder)?;
        done?;
    }
    match fs::remove_file(expected()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Cold runs, then warm runs with the cache of the last cold run.
fn both(arguments: &Arguments, case: Case, folder: &Path) -> anyhow::Result<()> {
    for cache in ["cold", "warm"] {
        let mut samples = Vec::new();
        for _ in 0..arguments.runs.max(1) {
            if cache == "cold" && folder.exists() {
                fs::remove_dir_all(folder)?;
            }
            // NVIDIA's Vulkan driver keeps nothing in a folder that does not exist.
            for (_, name) in CACHES {
                fs::create_dir_all(folder.join(name))?;
            }
            samples.push(one(arguments, case, folder)?);
        }
        let mut sorted = samples.clone();
        sorted.sort_by(f64::total_cmp);
        let record = StartupRecord {
            bench: "startup".into(),
            case: case.name().into(),
            backend: arguments.backend.to_string(),
            device: arguments.device.clone(),
            cache: cache.into(),
            ms: sorted[sorted.len() / 2],
            samples_ms: samples,
        };
        say!(
            "{} on {}, {cache}: {:.0} ms {:.0?}",
            record.case,
            record.backend,
            record.ms,
            record.samples_ms
        );
        if let Some(path) = &arguments.json {
            record::append(path, &record)?;
        }
    }
    Ok(())
}

/// Milliseconds of a run, after checking its result.
fn one(arguments: &Arguments, case: Case, folder: &Path) -> anyhow::Result<f64> {
    let backend = arguments.backend.to_string();
    let read = |file: &Path| fs::read_to_string(file).with_context(|| file.display().to_string());
    match case {
        Case::Topk => {
            let file = folder.join("latency.jsonl");
            let _ = fs::remove_file(&file);
            let words = ["latency", "--first", "--case", "2**16x256x32", "--json"];
            timed(this_program(folder)?.args(words).arg(&file).args(["--backend", &backend]))?;
            let record: LatencyRecord = serde_json::from_str(read(&file)?.trim())?;
            Ok(record.first_ms)
        }
        Case::Epoch => {
            let file = folder.join("epoch.jsonl");
            let _ = fs::remove_file(&file);
            let words = "spmm --graph reddit-size --method epoch --k 32 --json";
            let mut command = this_program(folder)?;
            command.args(words.split(' ')).arg(&file);
            timed(command.args(["--backend", &backend]))?;
            let record: EpochRecord = serde_json::from_str(read(&file)?.trim())?;
            Ok(record.first_ms + record.upload_ms)
        }
        Case::Maxk => {
            let data = input(arguments.graph.as_deref(), "--graph")?;
            let log = folder.join("run.jsonl");
            let _ = fs::remove_file(&log);
            let words = "--format graphsaint --epochs 200 --k 32 --hidden 256 --layers 3";
            let mut command = beside("maxk", folder)?;
            command.args(["train", "--data"]).arg(data);
            command.args(words.split(' ')).arg("--log").arg(&log);
            let ms = timed(command.args(["--backend", &backend]))?;
            let text = read(&log)?;
            let last = text.lines().last().context("an empty log")?;
            let summary: serde_json::Value = serde_json::from_str(last)?;
            let test = summary["test"].as_f64();
            let test = test.with_context(|| format!("no accuracy in {last}"))?;
            ensure!(test > 0.85, "the accuracy is {test}");
            Ok(ms)
        }
        Case::Knn => {
            let matrix = input(arguments.matrix.as_deref(), "--matrix")?;
            let search = |output: &Path, backend: &str| {
                let mut command = beside("knn", folder)?;
                command.arg("--data").arg(&matrix).arg("--output").arg(output);
                let words = ["--metric", "manhattan", "--k", "16", "--backend", backend];
                timed(command.args(words))
            };
            let output = folder.join("knn.npz");
            let ms = search(&output, &backend)?;
            // Ratings are integers, so sums are exact and all backends agree bit by bit.
            let expected = expected();
            if !expected.exists() {
                search(&expected, "flex")?;
            }
            ensure!(
                fs::read(&output)? == fs::read(&expected)?,
                "the neighbors differ from those of Flex"
            );
            Ok(ms)
        }
    }
}

/// The neighbors that Flex finds, shared by all runs.
fn expected() -> PathBuf {
    env::temp_dir().join(format!("sparsek-knn-{}.npz", std::process::id()))
}

/// The absolute path of an input, because programs run in another folder.
fn input(path: Option<&Path>, option: &str) -> anyhow::Result<PathBuf> {
    let path = path.with_context(|| format!("{option} is needed"))?;
    fs::canonicalize(path).with_context(|| path.display().to_string())
}

fn this_program(folder: &Path) -> anyhow::Result<Command> {
    Ok(with_caches(env::current_exe()?, folder))
}

fn beside(name: &str, folder: &Path) -> anyhow::Result<Command> {
    let program = env::current_exe()?.with_file_name(format!("{name}{}", env::consts::EXE_SUFFIX));
    ensure!(program.exists(), "{} does not exist", program.display());
    Ok(with_caches(program, folder))
}

/// Variables that place the caches of kernels, sparsek's and the drivers', and a folder for each.
const CACHES: [(&str, &str); 4] = [
    ("SPARSEK_CACHE", "kernels"),
    ("CUDA_CACHE_PATH", "cuda"),
    ("__GL_SHADER_DISK_CACHE_PATH", "gl"),
    ("MESA_SHADER_CACHE_DIR", "mesa"),
];

fn with_caches(program: PathBuf, folder: &Path) -> Command {
    let mut command = Command::new(program);
    let places = CACHES.map(|(variable, name)| (variable, folder.join(name)));
    command.current_dir(folder).envs(places);
    command
}

/// Milliseconds of a process; an error if it fails.
fn timed(command: &mut Command) -> anyhow::Result<f64> {
    let start = Instant::now();
    let output = command.output()?;
    let ms = start.elapsed().as_secs_f64() * 1e3;
    let message = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}", message.trim());
    Ok(ms)
}
