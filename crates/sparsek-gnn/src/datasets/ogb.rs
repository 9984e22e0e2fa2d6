//! The raw folder format of the Open Graph Benchmark, in which ogbn-products, ogbn-proteins and ogbn-arxiv are distributed.
use std::{
    fs,
    path::{Path, PathBuf},
};

use sparsek::io::{memory, text};

use super::{
    DatasetError, Labels, NodeDataset, NodeDatasetParts, Part,
    files::{self, Watch, bad, too_much},
    labels::{CLASS_NEEDED, Class, count_classes},
    lines::{Lines, NUMBERS},
};
use crate::{Graph, GraphError, graph::MAX_SIZE};

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
/// - `raw/node-label.csv.gz`: the class of a node on each line, as `2`, `2.0` or a truth value; or,
///   where lines have several numbers, 0 or 1 for each class.
/// - `split/NAME/{train,valid,test}.csv.gz`: a node on each line.
///
/// Calls `watch` while it reads the files line by line. Beside what it returns, loading keeps the
/// list of edges. Lists grow with the lines that are there, each within the limit of
/// [`sparsek::io::memory`].
///
/// Hu et al., *Open Graph Benchmark*, NeurIPS 2020.
///
/// # Errors
/// [`DatasetError`], naming the file and its line: missing, truncated or corrupt, not numbers, with
/// ids out of range, too few or too many lines, more than the memory limit allows, or a greatest
/// class of 1024 or more where over half of those below are missing.
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
    let mut held = match &labels {
        Labels::Classes(all) => memory::product(&[all.len(), size_of::<u32>()]),
        Labels::Sets(all) => memory::product(&[all.len()]),
    };
    let edges = Lines::open(&raw("edge"), watch)?.beside(held);
    let edges = load_edges(edges, nodes)?;
    held += memory::product(&[edges.len(), size_of::<(u32, u32)>()]);
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
        let lines = Lines::open(&features_file, watch)?.beside(held);
        lines.rows(nodes, NUMBERS)?
    } else {
        features_file = raw("edge-feat");
        let lines = Lines::open(&features_file, watch)?.beside(held);
        mean_of_edges(lines, nodes, &edges)?
    };
    held += memory::product(&[features.len(), size_of::<f32>()]);
    let graph = build_graph(&raw("edge"), nodes, edges, held, options)?;
    let splits = split_folder(folder, options)?;
    let mut split = |name: &str| -> Result<Vec<u32>, DatasetError> {
        let mut lines = Lines::open(&splits.join(format!("{name}.csv.gz")), watch)?;
        let mut list = Vec::new();
        while let Some(line) = lines.next()? {
            let Ok(node) = line.parse() else {
                return Err(lines.wrong("is not a node"));
            };
            if list.len() == nodes {
                return Err(lines.wrong(&format!("is one more than the {nodes} nodes")));
            }
            list.push(node);
        }
        match list.is_empty() {
            true => Err(lines.wrong("is the last, there are no nodes")),
            false => Ok(list),
        }
    };
    let (train, val, test) = (split("train")?, split("valid")?, split("test")?);
    let parts = NodeDatasetParts {
        name: files::name(folder),
        graph,
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
    let (count, width) = Lines::open(file, watch)?.rows::<usize>(1, NUMBERS)?;
    match (width, count[0]) {
        (1, count) if count <= MAX_SIZE => Ok(count),
        _ => Err(bad(file)(format!("is not a number up to {MAX_SIZE}"))),
    }
}

fn load_labels(file: &Path, nodes: usize, watch: Watch) -> Result<(Labels, usize), DatasetError> {
    let what = format!("is no class; {CLASS_NEEDED}, or 0 and 1 for each class");
    let (numbers, width) = Lines::open(file, watch)?.rows::<Class>(nodes, &what)?;
    if width == 1 {
        let classes: Vec<u32> = numbers.into_iter().map(|Class(class)| class).collect();
        let count = count_classes(&classes, |node| format!("line {}", node + 1));
        return Ok((Labels::Classes(classes), count.map_err(bad(file))?));
    }
    if let Some(at) = numbers.iter().position(|&Class(number)| number > 1) {
        let (line, number) = (at / width + 1, numbers[at].0);
        return Err(bad(file)(format!(
            "line {line} has {number}, neither 0 nor 1"
        )));
    }
    let sets = numbers.iter().map(|&Class(number)| number == 1).collect();
    Ok((Labels::Sets(sets), width))
}

fn load_edges(mut lines: Lines, nodes: usize) -> Result<Vec<(u32, u32)>, DatasetError> {
    let mut edges = Vec::new();
    while let Some(line) = lines.next()? {
        let ends = line.split_once(',');
        let ends = ends.and_then(|(a, b)| Some((a.trim().parse().ok()?, b.trim().parse().ok()?)));
        match ends {
            Some((a, b)) if (a as usize) < nodes && (b as usize) < nodes => {
                lines.make_room(&mut edges, 1)?;
                edges.push((a, b));
            }
            _ => return Err(lines.wrong(&format!("is not two nodes below {nodes}"))),
        }
    }
    Ok(edges)
}

/// The graph of a list of edges, in both directions unless options say otherwise; `held` bytes, the
/// list among them, are in use already.
fn build_graph(
    file: &Path,
    nodes: usize,
    edges: Vec<(u32, u32)>,
    held: u128,
    options: &OgbOptions,
) -> Result<Graph, DatasetError> {
    let asked = format_args!("a graph of {nodes} nodes and {} edges", edges.len());
    let bytes = memory::product(&[nodes, 16]) + memory::product(&[edges.len(), 24]);
    memory::check(asked, bytes.saturating_add(held)).map_err(too_much(file))?;
    let graph = Graph::from_edges(nodes, edges).and_then(|graph| match options.directed {
        true => Ok(graph),
        false => graph.try_symmetrised(),
    });
    graph.map_err(|source: GraphError| DatasetError::Graph {
        file: file.to_path_buf(),
        source,
    })
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
        lines.numbers::<f32>(&mut row, NUMBERS)?;
        if at == 0 {
            width = row.len();
            let bytes = memory::product(&[nodes, width, size_of::<f32>()]);
            let asked = format_args!("a mean of {width} numbers for each of {nodes} nodes");
            lines.check(asked, bytes)?;
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
                text::excerpt(&names.join(", "))
            );
            Err(bad(&all)(reason))
        }
    }
}

#[cfg(test)]
mod tests;
