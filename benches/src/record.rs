//! JSON lines of records. docs/benchmarks.md describes the fields.

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
};

use anyhow::Context;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::environment::Environment;

/// A line of `topk` and `linear`.
#[derive(Clone, Serialize, Deserialize)]
pub struct Record {
    pub bench: String,
    pub case: String,
    pub backend: String,
    pub device: String,
    pub dtype: String,
    pub method: String,
    pub form: String,
    pub dist: String,
    pub ms: f64,
    /// Half of the interquartile range of the samples, divided by the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
    pub first_ms: f64,
    pub floor_ms: f64,
    pub copy_gbps: f64,
    pub checked: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burn_ms: Option<f64>,
}

/// A line of `delegate`.
#[derive(Clone, Serialize, Deserialize)]
pub struct VectorRecord {
    pub bench: String,
    pub case: String,
    pub backend: String,
    pub device: String,
    pub dtype: String,
    pub method: String,
    pub dist: String,
    pub ms: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
    /// Wall-clock milliseconds of one of many queued calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launched_ms: Option<f64>,
    pub first_ms: f64,
    /// One read of the vector at the read rate.
    pub floor_ms: f64,
    pub read_gbps: f64,
    pub copy_gbps: f64,
    pub checked: usize,
    /// Elements that the two selections read; 0 without delegates.
    #[serde(default)]
    pub delegates: usize,
    #[serde(default)]
    pub concatenated: usize,
}

impl VectorRecord {
    pub fn exponent(&self) -> Option<u32> {
        self.method.strip_prefix("alpha:")?.parse().ok()
    }
}

/// A line of another library's time for the same case.
#[derive(Deserialize)]
pub struct PeerRecord {
    pub peer: String,
    pub case: String,
    pub ms: f64,
}

/// A line of `distance`.
#[derive(Clone, Serialize, Deserialize)]
pub struct NeighborRecord {
    pub bench: String,
    pub case: String,
    pub backend: String,
    pub device: String,
    pub dtype: String,
    pub method: String,
    pub routine: String,
    pub dist: String,
    pub k: usize,
    pub ms: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
    pub first_ms: f64,
    /// One read of the matrix, 12 bytes per entry, and one write of the neighbors.
    pub floor_ms: f64,
    #[serde(default)]
    pub matrix_ms: f64,
    pub work: f64,
    /// 10^9 pairs per second, and picoseconds per pair.
    pub gwork_per_s: f64,
    #[serde(default)]
    pub ps_per_work: f64,
    pub copy_gbps: f64,
    /// Bytes of the matrix, of the neighbors, and of all memory pools.
    #[serde(default)]
    pub input_bytes: usize,
    #[serde(default)]
    pub output_bytes: usize,
    #[serde(default)]
    pub peak_bytes: Option<u64>,
    pub checked: usize,
}

/// A line of `spmm` for a training epoch.
#[derive(Clone, Serialize, Deserialize)]
pub struct EpochRecord {
    pub bench: String,
    pub case: String,
    pub backend: String,
    pub device: String,
    pub dtype: String,
    pub method: String,
    pub dist: String,
    pub graph: String,
    /// None for GraphSAGE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub nodes: usize,
    pub edges: usize,
    pub features: usize,
    pub classes: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topk: Option<String>,
    pub ms: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
    pub first_ms: f64,
    /// Transposition and upload of the graph.
    pub upload_ms: f64,
    /// All selections of an epoch, and their share of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topk_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topk_share: Option<f64>,
    /// Peak size of memory pools in 10^6 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_mb: Option<f64>,
    pub copy_gbps: f64,
    pub checked: usize,
}

/// The fields that tell the type of a line.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Kind {
    bench: String,
    peer: String,
    method: String,
}

pub fn read_rows(path: &Path) -> anyhow::Result<Vec<Record>> {
    read_lines(path, |kind| {
        kind.peer.is_empty() && ["topk", "linear"].contains(&kind.bench.as_str())
    })
}

pub fn read_neighbors(path: &Path) -> anyhow::Result<Vec<NeighborRecord>> {
    read_lines(path, |kind| kind.peer.is_empty() && kind.bench == "distance")
}

pub fn read_epochs(path: &Path) -> anyhow::Result<Vec<EpochRecord>> {
    read_lines(path, |kind| kind.bench == "spmm" && kind.method.starts_with("epoch"))
}

pub fn read_vectors(path: &Path) -> anyhow::Result<Vec<VectorRecord>> {
    read_lines(path, |kind| kind.peer.is_empty() && kind.bench == "delegate")
}

/// The records of other libraries' top-k of one vector in a file.
pub fn read_vector_peers(path: &Path) -> anyhow::Result<Vec<PeerRecord>> {
    read_lines(path, |kind| !kind.peer.is_empty() && kind.bench == "delegate")
}

/// PyTorch's times of a bench, if there is a file of them.
pub fn read_torch<R: DeserializeOwned>(path: Option<&Path>) -> anyhow::Result<Vec<R>> {
    path.map_or(Ok(Vec::new()), |path| read_lines(path, |_| true))
}

fn read_lines<R: DeserializeOwned>(
    path: &Path,
    wanted: impl Fn(&Kind) -> bool,
) -> anyhow::Result<Vec<R>> {
    let name = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("{name}"))?;
    let mut records = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let place = || format!("{name}, line {}", number + 1);
        let kind: Kind = serde_json::from_str(line).with_context(place)?;
        if wanted(&kind) {
            records.push(serde_json::from_str(line).with_context(place)?);
        }
    }
    Ok(records)
}

/// A record and its environment as one line.
#[derive(Serialize)]
struct Line<'a, R> {
    #[serde(flatten)]
    record: &'a R,
    #[serde(flatten)]
    environment: Environment,
}

/// Appends a record to a file as one line, with date, commit and versions.
pub fn append(path: &Path, record: &impl Serialize) -> anyhow::Result<()> {
    let mut file = File::options()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("{}", path.display()))?;
    let line = Line { record, environment: Environment::now() };
    writeln!(file, "{}", serde_json::to_string(&line)?)?;
    Ok(())
}
