//! The lines of a record, as docs/benchmarks.md describes them.

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
};

use anyhow::Context;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// One line of a record of `topk`.
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
    pub first_ms: f64,
    pub floor_ms: f64,
    pub copy_gbps: f64,
    pub checked: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burn_ms: Option<f64>,
}

/// One line of a record of `delegate`.
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
    /// Of one call by the wall clock, where many follow one another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launched_ms: Option<f64>,
    pub first_ms: f64,
    /// One read.
    pub floor_ms: f64,
    pub read_gbps: f64,
    pub copy_gbps: f64,
    pub checked: usize,
    /// Elements of the two selections by delegates, where there are.
    #[serde(default)]
    pub delegates: usize,
    #[serde(default)]
    pub concatenated: usize,
}

impl VectorRecord {
    /// The exponent of a method `alpha:N`.
    pub fn exponent(&self) -> Option<u32> {
        self.method.strip_prefix("alpha:")?.parse().ok()
    }
}

/// One line of a record of what others take for the same.
#[derive(Deserialize)]
pub struct PeerRecord {
    pub peer: String,
    /// `vector 2**30x128`.
    pub case: String,
    pub ms: f64,
}

/// One line of a record of `distance`.
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
    pub first_ms: f64,
    /// One read of the matrix, 12 bytes of each entry, and one write of the neighbours.
    pub floor_ms: f64,
    /// One write of all distances, for what keeps them.
    #[serde(default)]
    pub matrix_ms: f64,
    /// Pairs of entries in one column, of which all distances are made.
    pub work: f64,
    /// Thousand millions of these each second, and picoseconds for each.
    pub gwork_per_s: f64,
    #[serde(default)]
    pub ps_per_work: f64,
    pub copy_gbps: f64,
    /// Bytes of the matrix on the device, of the neighbours, and the most that pools have reserved for all.
    #[serde(default)]
    pub input_bytes: usize,
    #[serde(default)]
    pub output_bytes: usize,
    #[serde(default)]
    pub peak_bytes: Option<u64>,
    /// Rows whose neighbours were compared with the oracle's.
    pub checked: usize,
}

/// One line of a record of an epoch of `aggregate`.
#[derive(Clone, Serialize, Deserialize)]
pub struct EpochRecord {
    pub bench: String,
    /// The graph, and k where rows are compressed.
    pub case: String,
    pub backend: String,
    pub device: String,
    pub dtype: String,
    /// `epoch`, `epoch-atomic` or `epoch-relu`.
    pub method: String,
    pub dist: String,
    pub graph: String,
    pub nodes: usize,
    pub edges: usize,
    pub features: usize,
    pub classes: usize,
    /// How the elements that are kept are found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topk: Option<String>,
    pub ms: f64,
    pub first_ms: f64,
    /// To transpose the graph, and to have it on the device.
    pub upload_ms: f64,
    /// Of all selections of an epoch, and their share of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topk_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topk_share: Option<f64>,
    /// The most that pools have reserved, in 10^6 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_mb: Option<f64>,
    pub copy_gbps: f64,
    /// Epochs whose losses were looked at.
    pub checked: usize,
}

/// What a line is a record of.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Kind {
    bench: String,
    peer: String,
    case: String,
    method: String,
}

/// The records of `topk` in a file; those of other benches are passed over.
pub fn read(path: &Path) -> anyhow::Result<Vec<Record>> {
    read_lines(path, |kind| {
        ["topk", "linear"].contains(&kind.bench.as_str())
    })
}

/// The records of `distance` in a file.
pub fn read_neighbors(path: &Path) -> anyhow::Result<Vec<NeighborRecord>> {
    read_lines(path, |kind| kind.bench == "distance")
}

/// The records of epochs of `aggregate` in a file.
pub fn read_epochs(path: &Path) -> anyhow::Result<Vec<EpochRecord>> {
    read_lines(path, |kind| {
        kind.bench == "aggregate" && kind.method.starts_with("epoch")
    })
}

/// The records of `delegate` in a file.
pub fn read_vectors(path: &Path) -> anyhow::Result<Vec<VectorRecord>> {
    read_lines(path, |kind| kind.bench == "delegate")
}

/// The records of others' top-k of one vector in a file.
pub fn read_vector_peers(path: &Path) -> anyhow::Result<Vec<PeerRecord>> {
    read_lines(path, |kind| {
        !kind.peer.is_empty() && kind.case.starts_with("vector ")
    })
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

/// Appends one line to a file.
pub fn append(path: &Path, line: &impl Serialize) -> anyhow::Result<()> {
    let mut file = File::options()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("{}", path.display()))?;
    writeln!(file, "{}", serde_json::to_string(line)?)?;
    Ok(())
}
