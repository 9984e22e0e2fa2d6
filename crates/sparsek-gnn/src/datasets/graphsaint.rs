//! The folder format of GraphSAINT, in which Flickr, Reddit, Yelp, PPI and ogbn-products are distributed.
mod classes;
mod roles;

use std::{io::BufReader, path::Path};

use serde::de::DeserializeSeed;
use sparsek::io::{
    scipy::{Matrix, Values},
    text,
};

use super::{
    DatasetError, NodeDataset, NodeDatasetParts, Part,
    files::{self, Watch, Watched, bad, open_npz, read_npy},
};
use crate::Graph;

const HINT: &str = "the folders of Flickr, Reddit, Yelp, PPI and others are linked from https://github.com/GraphSAINT/GraphSAINT \
                    (Google Drive, about 0.1 to 2 GB each)";

/// Loads a dataset from a GraphSAINT folder.
///
/// - `adj_full.npz`: the adjacency as `scipy.sparse.save_npz` writes it, in csr, csc, coo or bsr;
///   csr if it has no array `format`. Row `i` lists the nodes that `i` aggregates from. Entries of
///   value 0 are no edges, and [`NodeDataset::notes`] says how many there were; other values are
///   ignored, and a file without the array `data` is a graph of all its entries.
/// - `feats.npy`: [nodes, features] of any numbers, in C or Fortran order, made f32.
/// - `class_map.json`: from each node's id to its class, as a whole number, a truth value or a list
///   of one; or to a list of 0 and 1 that tells for each class whether the node is in it.
/// - `role.json`: lists `tr`, `va` and `te` of node ids.
///
/// `watch` is told while files are read. Beside what it returns and the files' pieces, loading keeps nothing in memory.
///
/// Zeng et al., *GraphSAINT*, ICLR 2020.
///
/// # Errors
/// [`DatasetError`], naming the file: missing or truncated, of a dtype not listed, with ids out of range, offsets that
/// fall, or sizes that do not agree; and a greatest class of 1024 or more where over half of those
/// below are missing. Declared sizes are checked against the bytes there and against the limit of
/// [`sparsek::io::memory`] before anything is allocated.
pub fn load(folder: impl AsRef<Path>, watch: Watch) -> Result<NodeDataset, DatasetError> {
    let folder = files::folder(folder.as_ref(), HINT)?;
    let [adjacency_file, features_file, labels_file, roles_file] =
        ["adj_full.npz", "feats.npy", "class_map.json", "role.json"].map(|name| folder.join(name));
    let (graph, notes) = load_graph(&adjacency_file, watch)?;
    let (features, feature_width) = load_features(&features_file, graph.nodes(), watch)?;
    let file = Watched::open(&labels_file, watch)?;
    let map = classes::ClassMap {
        nodes: graph.nodes(),
        bytes: file.size,
    };
    let (labels, classes) = read_json(&labels_file, file, map)?;
    let file = Watched::open(&roles_file, watch)?;
    let roles = roles::Roles {
        nodes: graph.nodes(),
    };
    let [train, val, test] = read_json(&roles_file, file, roles)?;
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
        Part::Splits => roles_file,
    })?;
    Ok(dataset.with_notes(notes))
}

/// The graph of a matrix from scipy's `save_npz`, and what is to be said of it.
pub(super) fn load_graph(file: &Path, watch: Watch) -> Result<(Graph, Vec<String>), DatasetError> {
    let bad = bad(file);
    let mut archive = open_npz(file, watch)?;
    let matrix = Matrix::<bool>::read(&mut archive, Values::Optional);
    let mut matrix = matrix.map_err(&bad)?;
    let [rows, cols] = matrix.shape;
    if rows != cols {
        return Err(bad(format!("the adjacency is {rows} × {cols}, not square")));
    }
    let notes = match matrix.drop_zeros() {
        0 => Vec::new(),
        count => {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let name = text::excerpt(&name);
            vec![format!(
                "{name}: {count} stored zeros left out, they are no edges"
            )]
        }
    };
    let graph = Graph::from_csr(rows, matrix.indptr, matrix.indices);
    let graph = graph.map_err(|source| DatasetError::Graph {
        file: file.to_path_buf(),
        source,
    })?;
    Ok((graph, notes))
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
                // The message may quote a string of the file.
                reason: text::excerpt(&error.to_string()),
            },
        }
    })
}

#[cfg(test)]
mod matrices;
#[cfg(test)]
mod tests;
