//! A graph from scipy's `save_npz`, with features and labels from NumPy's `save` beside it.
use std::{io::Read, path::Path};

use rand::{SeedableRng, rngs::Xoshiro256PlusPlus, seq::SliceRandom};
use sparsek::io::npy::Npy;

use super::{
    DatasetError, Labels, NodeDataset, NodeDatasetParts, Part,
    files::{self, Watch, bad, open_npz, read_npy},
    graphsaint::{load_features, load_graph},
    labels::{CLASS_NEEDED, class_of, count_classes},
};

const HINT: &str = "a folder of graph.npz (scipy.sparse.save_npz of a matrix), features.npy, labels.npy and, if \
                    wanted, split.npz";

/// Loads a dataset from a folder.
///
/// - `graph.npz`: a square matrix as `scipy.sparse.save_npz` writes it, read as
///   [`graphsaint::load`](super::graphsaint::load) reads `adj_full.npz`.
/// - `features.npy`: [nodes, features] of any numbers, in C or Fortran order, made f32.
/// - `labels.npy`: `[nodes]` or [nodes, 1], a class of each as whole numbers of any type or truth
///   values; or [nodes, classes] of 0 and 1.
/// - `split.npz`: ids of nodes (integers of any width) in `train`, `val` and `test`. Without it,
///   `seed` draws 60, 20 and 20 of a hundred.
///
/// # Errors
/// [`DatasetError`], as [`graphsaint::load`](super::graphsaint::load).
pub fn load(
    folder: impl AsRef<Path>,
    seed: u64,
    watch: Watch,
) -> Result<NodeDataset, DatasetError> {
    let folder = files::folder(folder.as_ref(), HINT)?;
    let [graph_file, features_file, labels_file, split_file] =
        ["graph.npz", "features.npy", "labels.npy", "split.npz"].map(|name| folder.join(name));
    let (graph, notes) = load_graph(&graph_file, watch)?;
    let nodes = graph.nodes();
    let (features, feature_width) = load_features(&features_file, nodes, watch)?;
    let (labels, classes) = load_labels(&labels_file, nodes, watch)?;
    let [train, val, test] = match split_file.exists() {
        true => {
            let mut archive = open_npz(&split_file, watch)?;
            let mut list = |name| archive.read(name, |array| node_list(array, nodes));
            let lists = [list("train"), list("val"), list("test")];
            let [train, val, test] = lists.map(|list| list.map_err(bad(&split_file)));
            [train?, val?, test?]
        }
        false => drawn(nodes, seed),
    };
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
    let dataset = parts.into_dataset(|part| match part {
        Part::Features => features_file,
        Part::Labels => labels_file,
        Part::Splits => split_file,
    })?;
    Ok(dataset.with_notes(notes))
}

/// Ids of nodes; no more than there are, before they are read.
fn node_list(array: Npy<impl Read>, nodes: usize) -> Result<Vec<u32>, String> {
    match array.header().len {
        count if count > nodes => Err(format!("{count} ids, but the graph has {nodes} nodes")),
        _ => array.into_u32(),
    }
}

/// 60, 20 and 20 of a hundred nodes.
fn drawn(nodes: usize, seed: u64) -> [Vec<u32>; 3] {
    let mut train: Vec<u32> = (0..nodes as u32).collect();
    train.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
    let mut val = train.split_off(nodes * 3 / 5);
    let test = val.split_off(val.len() / 2);
    [train, val, test]
}

fn load_labels(file: &Path, nodes: usize, watch: Watch) -> Result<(Labels, usize), DatasetError> {
    read_npy(file, watch, |array| {
        let shape = array.shape().to_vec();
        let width = match shape[..] {
            [rows] if rows == nodes => 1,
            [rows, width] if rows == nodes => width,
            _ => {
                return Err(format!(
                    "labels of shape {shape:?}, [{nodes}] or [{nodes}, classes] is needed"
                ));
            }
        };
        let numbers = array.into_f64()?;
        if width != 1 {
            let neither = |&x: &f64| x != 0.0 && x != 1.0;
            if let Some(at) = numbers.iter().position(neither) {
                let (node, number) = (at / width, numbers[at]);
                return Err(format!("node {node} has {number:?}, neither 0 nor 1"));
            }
            let sets = numbers.iter().map(|&x| x == 1.0).collect();
            return Ok((Labels::Sets(sets), width));
        }
        let class = |(node, &number): (usize, &f64)| {
            let reason = || format!("node {node} has label {number:?}; {CLASS_NEEDED}");
            class_of(number).ok_or_else(reason)
        };
        let classes: Result<Vec<u32>, String> = numbers.iter().enumerate().map(class).collect();
        let classes = classes?;
        let count = count_classes(&classes, |node| format!("node {node}"))?;
        Ok((Labels::Classes(classes), count))
    })
}

#[cfg(test)]
mod tests;
