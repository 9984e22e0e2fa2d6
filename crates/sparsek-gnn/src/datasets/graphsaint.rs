//! The folder format of GraphSAINT, in which Flickr, Reddit, Yelp, PPI and ogbn-products are distributed.
mod classes;

use std::{io::BufReader, path::Path};

use serde::{Deserialize, de::DeserializeSeed};

use super::{
    DatasetError, NodeDataset, NodeDatasetParts, Part,
    files::{self, Watch, Watched, bad, open_npz, read_npy},
};
use crate::Graph;

const HINT: &str = "the folders of Flickr, Reddit, Yelp, PPI and others are linked from https://github.com/GraphSAINT/GraphSAINT \
                    (Google Drive, about 0.1 to 2 GB each)";

/// Loads a dataset from a GraphSAINT folder.
///
/// - `adj_full.npz`: the adjacency as `scipy.sparse.save_npz` writes a CSR matrix. `indptr`, `indices` (int32 or int64)
///   and `shape` are read; row `i` lists the nodes that `i` aggregates from; values are ignored.
/// - `feats.npy`: [nodes, features] of f32, f64, u8, bool, i32 or i64, made f32.
/// - `class_map.json`: from each node's id to its class, or to a list of 0 and 1 that tells for each class whether the node is in it.
/// - `role.json`: lists `tr`, `va` and `te` of node ids.
///
/// `watch` is told while files are read. Beside what it returns and the files' pieces, loading keeps nothing in memory.
///
/// Zeng et al., *GraphSAINT*, ICLR 2020.
///
/// # Errors
/// [`DatasetError`], naming the file: missing or truncated, of a dtype not listed, with ids out of range, offsets that
/// fall, or sizes that do not agree. Declared sizes are checked against the bytes there before anything is allocated.
pub fn load(folder: impl AsRef<Path>, watch: Watch) -> Result<NodeDataset, DatasetError> {
    let folder = files::folder(folder.as_ref(), HINT)?;
    let [adjacency_file, features_file, labels_file, roles_file] =
        ["adj_full.npz", "feats.npy", "class_map.json", "role.json"].map(|name| folder.join(name));
    let graph = load_graph(&adjacency_file, watch)?;
    let (features, feature_width) = load_features(&features_file, graph.nodes(), watch)?;
    let file = Watched::open(&labels_file, watch)?;
    let map = classes::ClassMap {
        nodes: graph.nodes(),
        bytes: file.size,
    };
    let (labels, classes) = read_json(&labels_file, file, map)?;
    let file = Watched::open(&roles_file, watch)?;
    let roles: Roles = read_json(&roles_file, file, std::marker::PhantomData)?;
    for (name, list) in [("tr", &roles.tr), ("va", &roles.va), ("te", &roles.te)] {
        if list.is_empty() {
            return Err(bad(&roles_file)(format!("the list {name} is empty")));
        }
    }
    let parts = NodeDatasetParts {
        name: files::name(folder),
        graph,
        features,
        feature_width,
        labels,
        classes,
        train: roles.tr,
        val: roles.va,
        test: roles.te,
    };
    parts.into_dataset(|part| match part {
        Part::Features => features_file,
        Part::Labels => labels_file,
        Part::Splits => roles_file,
    })
}

#[derive(Deserialize)]
struct Roles {
    tr: Vec<u32>,
    va: Vec<u32>,
    te: Vec<u32>,
}

/// The graph of a CSR matrix from scipy's `save_npz`, whose values are not read.
pub(super) fn load_graph(file: &Path, watch: Watch) -> Result<Graph, DatasetError> {
    let bad = bad(file);
    let mut archive = open_npz(file, watch)?;
    let mut read_array = |name| archive.read(name, |array| array.into_u32());
    let shape = read_array("shape").map_err(&bad)?;
    let &[rows, cols] = shape.as_slice() else {
        return Err(bad(format!(
            "shape has {} entries, a matrix has 2",
            shape.len()
        )));
    };
    if rows != cols {
        return Err(bad(format!("the adjacency is {rows} × {cols}, not square")));
    }
    let indptr = read_array("indptr").map_err(&bad)?;
    let indices = read_array("indices").map_err(&bad)?;
    Graph::from_csr(rows as usize, indptr, indices).map_err(|source| DatasetError::Graph {
        file: file.to_path_buf(),
        source,
    })
}

/// Features and their width, a row for each node.
pub(super) fn load_features(
    file: &Path,
    nodes: usize,
    watch: Watch,
) -> Result<(Vec<f32>, usize), DatasetError> {
    read_npy(file, watch, |array| {
        let &[rows, width] = array.shape() else {
            return Err(format!(
                "features of shape {:?}, [nodes, features] is needed",
                array.shape()
            ));
        };
        if rows != nodes {
            return Err(format!(
                "{rows} rows of features for a graph of {nodes} nodes"
            ));
        }
        Ok((array.into_f32()?, width))
    })
}

fn read_json<'de, S: DeserializeSeed<'de>>(
    file: &Path,
    reader: Watched,
    seed: S,
) -> Result<S::Value, DatasetError> {
    let mut json = serde_json::Deserializer::from_reader(BufReader::new(reader));
    let value = seed.deserialize(&mut json);
    let value = value.and_then(|value| json.end().map(|()| value));
    value.map_err(|error| {
        let file = file.to_path_buf();
        match error.is_io() {
            true => DatasetError::Io {
                file,
                source: error.into(),
            },
            false => DatasetError::Format {
                file,
                reason: error.to_string(),
            },
        }
    })
}

#[cfg(test)]
mod tests;
