//! The raw folder format of the Open Graph Benchmark, in which ogbn-products, ogbn-proteins and ogbn-arxiv are distributed.
use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    DatasetError, Labels, NodeDataset, NodeDatasetParts, Part,
    files::{self, Lines, Watch, bad},
};
use crate::{Graph, graph::MAX_SIZE};

/// How an OGB folder is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OgbOptions {
    /// Edges go only from the first node of a line to the second. Otherwise (default) each pair is an edge in both directions, once:
    /// products and proteins store one of them.
    pub directed: bool,
    /// Which of the folders under `split`; the only one if not given.
    pub split: Option<String>,
}

/// Loads a dataset from a folder of the Open Graph Benchmark.
///
/// - `raw/num-node-list.csv.gz`: the number of nodes.
/// - `raw/edge.csv.gz`: a source and a target on each line; as many lines as `raw/num-edge-list.csv.gz` says, if it is there.
/// - `raw/node-feat.csv.gz`: features of a node on each line. Without it, as in proteins, a node's features are the mean of those
///   of its edges, `raw/edge-feat.csv.gz`.
/// - `raw/node-label.csv.gz`: the class of a node on each line; or, where lines have several numbers, 0 or 1 for each class.
/// - `split/NAME/{train,valid,test}.csv.gz`: a node on each line.
///
/// `watch` is told while files are read, line by line. Beside what it returns, loading keeps the list of edges.
///
/// Hu et al., *Open Graph Benchmark*, NeurIPS 2020.
///
/// # Errors
/// [`DatasetError`], naming the file and its line: missing, truncated or corrupt, not numbers, with ids out of range, or too few or
/// too many lines.
pub fn load(
    folder: impl AsRef<Path>,
    options: &OgbOptions,
    watch: Watch,
) -> Result<NodeDataset, DatasetError> {
    let folder = folder.as_ref();
    let folder = files::folder(folder, &hint(folder))?;
    let raw = |name: &str| folder.join("raw").join(format!("{name}.csv.gz"));
    let nodes = load_count(&raw("num-node-list"), watch)?;
    // Labels come first: they show that there are as many nodes as declared.
    let labels_file = raw("node-label");
    let (labels, classes) = load_labels(&labels_file, nodes, watch)?;
    let edges = load_edges(&raw("edge"), nodes, watch)?;
    if raw("num-edge-list").exists() {
        let count = load_count(&raw("num-edge-list"), watch)?;
        if count != edges.len() {
            let found = edges.len();
            return Err(bad(&raw("edge"))(format!(
                "{found} edges instead of {count}"
            )));
        }
    }
    let mut features_file = raw("node-feat");
    let (features, feature_width) = if features_file.exists() || !raw("edge-feat").exists() {
        Lines::open(&features_file, watch)?.rows(nodes)?
    } else {
        features_file = raw("edge-feat");
        mean_of_edges(Lines::open(&features_file, watch)?, nodes, &edges)?
    };
    let graph = Graph::from_edges(nodes, edges).map_err(|source| DatasetError::Graph {
        file: raw("edge"),
        source,
    })?;
    let splits = split_folder(folder, options)?;
    let mut split = |name: &str| -> Result<Vec<u32>, DatasetError> {
        let mut lines = Lines::open(&splits.join(format!("{name}.csv.gz")), watch)?;
        let mut list = Vec::new();
        while let Some(line) = lines.next()? {
            match line.parse() {
                Ok(node) => list.push(node),
                Err(_) => return Err(lines.wrong("is not a node")),
            }
        }
        match list.is_empty() {
            true => Err(lines.wrong("is the last, there are no nodes")),
            false => Ok(list),
        }
    };
    let (train, val, test) = (split("train")?, split("valid")?, split("test")?);
    let parts = NodeDatasetParts {
        name: files::name(folder),
        graph: if options.directed {
            graph
        } else {
            graph.symmetrised()
        },
        features,
        feature_width,
        labels,
        classes,
        train,
        val,
        test,
    };
    parts.into_dataset(|part| match part {
        Part::Features => features_file,
        Part::Labels => labels_file,
        Part::Splits => splits,
    })
}

/// Where to get what is missing.
fn hint(folder: &Path) -> String {
    let name = files::name(folder).to_lowercase();
    let short = name
        .trim_start_matches("ogbn")
        .trim_start_matches(['_', '-']);
    match short {
        "products" | "proteins" | "arxiv" => format!(
            "ogbn-{short} is http://snap.stanford.edu/ogb/data/nodeproppred/{short}.zip, to be unpacked there"
        ),
        _ => {
            "OGB's node datasets are listed at https://ogb.stanford.edu/docs/nodeprop/".to_string()
        }
    }
}

fn load_count(file: &Path, watch: Watch) -> Result<usize, DatasetError> {
    let (count, width) = Lines::open(file, watch)?.rows::<usize>(1)?;
    match (width, count[0]) {
        (1, count) if count <= MAX_SIZE => Ok(count),
        _ => Err(bad(file)(format!("is not a number up to {MAX_SIZE}"))),
    }
}

fn load_labels(file: &Path, nodes: usize, watch: Watch) -> Result<(Labels, usize), DatasetError> {
    let (numbers, width) = Lines::open(file, watch)?.rows::<u32>(nodes)?;
    if width == 1 {
        let most = numbers.iter().copied().max().unwrap_or(0) as usize;
        return match most < nodes {
            true => Ok((Labels::Classes(numbers), most + 1)),
            false => Err(bad(file)(format!("class {most} of {nodes} nodes"))),
        };
    }
    if let Some(at) = numbers.iter().position(|&number| number > 1) {
        let (line, number) = (at / width + 1, numbers[at]);
        return Err(bad(file)(format!(
            "line {line} has {number}, neither 0 nor 1"
        )));
    }
    let sets = numbers.iter().map(|&number| number == 1).collect();
    Ok((Labels::Sets(sets), width))
}

fn load_edges(file: &Path, nodes: usize, watch: Watch) -> Result<Vec<(u32, u32)>, DatasetError> {
    let mut lines = Lines::open(file, watch)?;
    let mut edges = Vec::new();
    while let Some(line) = lines.next()? {
        let ends = line.split_once(',');
        let ends = ends.and_then(|(a, b)| Some((a.trim().parse().ok()?, b.trim().parse().ok()?)));
        match ends {
            Some((a, b)) if (a as usize) < nodes && (b as usize) < nodes => edges.push((a, b)),
            _ => return Err(lines.wrong(&format!("is not two nodes below {nodes}"))),
        }
    }
    Ok(edges)
}

/// The mean of the features of the edges at each node.
fn mean_of_edges(
    mut lines: Lines,
    nodes: usize,
    edges: &[(u32, u32)],
) -> Result<(Vec<f32>, usize), DatasetError> {
    let (mut sums, mut counts) = (Vec::<f32>::new(), vec![0f32; nodes]);
    let (mut row, mut width) = (Vec::new(), 0);
    for (at, &(a, b)) in edges.iter().enumerate() {
        row.clear();
        lines.numbers::<f32>(&mut row)?;
        if at == 0 {
            width = row.len();
            sums = vec![0.0; nodes * width];
        } else if row.len() != width {
            return Err(lines.wrong(&format!("does not have {width} numbers, as the first has")));
        }
        for end in [a as usize, b as usize] {
            counts[end] += 1.0;
            let own = &mut sums[end * width..][..width];
            own.iter_mut().zip(&row).for_each(|(sum, x)| *sum += x);
        }
    }
    lines.ends()?;
    for (row, count) in sums.chunks_exact_mut(width.max(1)).zip(counts) {
        row.iter_mut().for_each(|x| *x /= count.max(1.0));
    }
    Ok((sums, width))
}

/// The folder of the split that was asked for, or the only one.
fn split_folder(folder: &Path, options: &OgbOptions) -> Result<PathBuf, DatasetError> {
    let all = folder.join("split");
    if let Some(name) = &options.split {
        return Ok(all.join(name));
    }
    let entries = fs::read_dir(&all).map_err(|source| DatasetError::Io {
        file: all.clone(),
        source,
    })?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    match found.as_slice() {
        [only] => Ok(only.clone()),
        several => {
            let names: Vec<String> = several.iter().map(|path| files::name(path)).collect();
            let reason = format!(
                "{} splits ({}), one must be named",
                names.len(),
                names.join(", ")
            );
            Err(bad(&all)(reason))
        }
    }
}

#[cfg(test)]
mod tests;
