//! The folder format of GraphSAINT, in which Flickr, Reddit, Yelp, PPI and ogbn-products are distributed.
use std::{fs::File, io::BufReader, path::Path};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use sparsek::npy::{Npy, Npz};

use super::{DatasetError, NodeDataset, NodeDatasetParts, Part};
use crate::Graph;

/// Loads a dataset from a GraphSAINT folder.
///
/// - `adj_full.npz`: the adjacency as `scipy.sparse.save_npz` writes a CSR matrix. `indptr`, `indices` (int32 or int64)
///   and `shape` are read; row `i` lists the nodes that `i` aggregates from; values are ignored.
/// - `feats.npy`: [nodes, features] of f32, f64, u8, bool, i32 or i64, made f32.
/// - `class_map.json`: from each node's id to its class. One class per node.
/// - `role.json`: lists `tr`, `va` and `te` of node ids.
///
/// Zeng et al., *GraphSAINT*, ICLR 2020.
///
/// # Errors
/// [`DatasetError`], naming the file: missing or truncated, of a dtype not listed, with ids out of range, offsets that
/// fall, or sizes that do not agree. Declared sizes are checked against the bytes there before anything is allocated.
pub fn load(folder: impl AsRef<Path>) -> Result<NodeDataset, DatasetError> {
    let folder = folder.as_ref();
    let [adjacency_file, features_file, labels_file, roles_file] =
        ["adj_full.npz", "feats.npy", "class_map.json", "role.json"].map(|name| folder.join(name));
    let graph = load_graph(&adjacency_file)?;
    let (features, feature_width) = load_features(&features_file, graph.nodes())?;
    let (labels, classes) = load_labels(&labels_file, graph.nodes())?;
    let roles: Roles = read_json(&roles_file)?;
    for (name, list) in [("tr", &roles.tr), ("va", &roles.va), ("te", &roles.te)] {
        if list.is_empty() {
            return Err(DatasetError::Format {
                file: roles_file,
                reason: format!("the list {name} is empty"),
            });
        }
    }
    let full_path = folder
        .canonicalize()
        .unwrap_or_else(|_| folder.to_path_buf());
    let parts = NodeDatasetParts {
        name: full_path.file_name().map_or_else(
            || "graphsaint".into(),
            |name| name.to_string_lossy().into_owned(),
        ),
        graph,
        features,
        feature_width,
        labels,
        classes,
        train: roles.tr,
        val: roles.va,
        test: roles.te,
    };
    parts.check().map_err(|(part, reason)| match part {
        Part::Features => DatasetError::Format {
            file: features_file,
            reason,
        },
        Part::Labels => DatasetError::Format {
            file: labels_file,
            reason,
        },
        Part::Splits => DatasetError::Format {
            file: roles_file,
            reason,
        },
    })?;
    Ok(NodeDataset { parts })
}

#[derive(Deserialize)]
struct Roles {
    tr: Vec<u32>,
    va: Vec<u32>,
    te: Vec<u32>,
}

fn load_graph(file: &Path) -> Result<Graph, DatasetError> {
    let bad = |reason: String| DatasetError::Format {
        file: file.to_path_buf(),
        reason,
    };
    let mut archive = Npz::new(open(file)?).map_err(bad)?;
    let mut read_array = |name| archive.read(name, |array| array.into_u32());
    let shape = read_array("shape").map_err(bad)?;
    let &[rows, cols] = shape.as_slice() else {
        return Err(bad(format!(
            "shape has {} entries, a matrix has 2",
            shape.len()
        )));
    };
    if rows != cols {
        return Err(bad(format!("the adjacency is {rows} × {cols}, not square")));
    }
    let indptr = read_array("indptr").map_err(bad)?;
    let indices = read_array("indices").map_err(bad)?;
    Graph::from_csr(rows as usize, indptr, indices).map_err(|source| DatasetError::Graph {
        file: file.to_path_buf(),
        source,
    })
}

fn load_features(file: &Path, nodes: usize) -> Result<(Vec<f32>, usize), DatasetError> {
    let reader = open(file)?;
    let bad = |reason: String| DatasetError::Format {
        file: file.to_path_buf(),
        reason,
    };
    let size = reader
        .metadata()
        .map_err(|source| DatasetError::Io {
            file: file.to_path_buf(),
            source,
        })?
        .len();
    let array = Npy::open(BufReader::new(reader), size).map_err(bad)?;
    let &[rows, width] = array.shape() else {
        return Err(bad(format!(
            "features of shape {:?}, [nodes, features] is needed",
            array.shape()
        )));
    };
    if rows != nodes {
        return Err(bad(format!(
            "{rows} rows of features for a graph of {nodes} nodes"
        )));
    }
    Ok((array.into_f32().map_err(bad)?, width))
}

fn load_labels(file: &Path, nodes: usize) -> Result<(Vec<u32>, usize), DatasetError> {
    let map: serde_json::Map<String, Value> = read_json(file)?;
    let bad = |reason: String| DatasetError::Format {
        file: file.to_path_buf(),
        reason,
    };
    if map.len() != nodes {
        return Err(bad(format!(
            "{} labels for a graph of {nodes} nodes",
            map.len()
        )));
    }
    let mut labels = vec![u32::MAX; nodes];
    for (node, class) in map {
        if class.is_array() {
            return Err(DatasetError::MultiLabel {
                file: file.to_path_buf(),
                node,
            });
        }
        let class = class.as_u64().filter(|&class| class < nodes as u64);
        let class = class.ok_or_else(|| {
            bad(format!(
                "the class of node {node} is not an integer below {nodes}"
            ))
        })?;
        let slot = node.parse().ok().and_then(|id: usize| labels.get_mut(id));
        *slot.ok_or_else(|| bad(format!("node {node} is not an id below {nodes}")))? = class as u32;
    }
    // Two spellings of one id, such as "1" and "01", leave another without a label.
    if let Some(node) = labels.iter().position(|&class| class == u32::MAX) {
        return Err(bad(format!("node {node} has no label")));
    }
    let classes = labels.iter().max().map_or(0, |&class| class as usize + 1);
    Ok((labels, classes))
}

fn open(file: &Path) -> Result<File, DatasetError> {
    File::open(file).map_err(|source| DatasetError::Io {
        file: file.to_path_buf(),
        source,
    })
}

fn read_json<T: DeserializeOwned>(file: &Path) -> Result<T, DatasetError> {
    serde_json::from_reader(BufReader::new(open(file)?)).map_err(|error| {
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
