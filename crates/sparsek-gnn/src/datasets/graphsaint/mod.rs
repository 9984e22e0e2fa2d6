//! GraphSAINT folders, such as Reddit.

mod json;
#[cfg(test)]
mod tests;

use std::{io::BufReader, path::Path};

use serde::de::DeserializeSeed;
use sparsek::io::text;

use super::{
    error::DatasetError,
    files::{self, Watch, Watched},
    matrix::{load_features, load_graph},
    node_dataset::{NodeDataset, NodeDatasetParts, Part},
};

const HINT: &str = "download Flickr, Reddit, Yelp, PPI and others from \
                    https://github.com/GraphSAINT/GraphSAINT (Google Drive, 0.1 to 2 GB each)";

/// Streams a GraphSAINT folder (Zeng et al., 2020).
///
/// - `adj_full.npz`: scipy csr (also without `format`), csc, coo, bsr or dia. Node `i` aggregates
///   from row `i`. [`NodeDataset::notes`] counts dropped zeros. Only dia needs `data`.
/// - `feats.npy`: `[nodes, features]`.
/// - `class_map.json`: per node id a class (whole, boolean, or list of one) or a list of 0 and 1.
/// - `role.json`: node ids `tr`, `va`, `te`.
pub fn load(folder: impl AsRef<Path>, watch: Watch) -> Result<NodeDataset, DatasetError> {
    let folder = files::folder(folder.as_ref(), HINT)?;
    let [adjacency_file, features_file, labels_file, roles_file] =
        ["adj_full.npz", "feats.npy", "class_map.json", "role.json"].map(|name| folder.join(name));
    let (graph, notes) = load_graph(&adjacency_file, watch)?;
    let features = load_features(&features_file, graph.nodes(), watch)?;
    let file = Watched::open(&labels_file, watch)?;
    let map = json::ClassMap { nodes: graph.nodes(), bytes: file.size };
    let labels = read_json(&labels_file, file, map)?;
    let file = Watched::open(&roles_file, watch)?;
    let roles = json::Roles { nodes: graph.nodes() };
    let lists = read_json(&roles_file, file, roles)?;
    let parts = NodeDatasetParts::of(files::name(folder), graph, features, labels, lists);
    let dataset = parts.into_dataset(|part| match part {
        Part::Features => features_file,
        Part::Labels => labels_file,
        Part::Splits => roles_file,
    })?;
    Ok(dataset.with_notes(notes))
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
            true => DatasetError::Io { file, source: error.into() },
            false => DatasetError::Format { file, reason: text::excerpt(&error.to_string()) },
        }
    })
}
