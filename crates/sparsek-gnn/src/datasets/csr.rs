//! A graph from scipy's `save_npz`, with features and labels from NumPy's `save` beside it.
use std::path::Path;

use rand::{SeedableRng, rngs::Xoshiro256PlusPlus, seq::SliceRandom};

use super::{
    DatasetError, Labels, NodeDataset, NodeDatasetParts, Part,
    files::{self, Watch, bad, open_npz, read_npy},
    graphsaint::{load_features, load_graph},
};

const HINT: &str = "a folder of graph.npz (scipy.sparse.save_npz of a CSR matrix), features.npy, labels.npy and, if \
                    wanted, split.npz";

/// Loads a dataset from a folder.
///
/// - `graph.npz`: a square CSR matrix as `scipy.sparse.save_npz` writes it; row `i` lists the nodes that `i` aggregates from, values
///   are ignored.
/// - `features.npy`: [nodes, features] of any numbers, made f32.
/// - `labels.npy`: `[nodes]` of int32 or int64, a class of each; or [nodes, classes] of 0 and 1.
/// - `split.npz`: ids of nodes (int32 or int64) in `train`, `val` and `test`. Without it, `seed` draws 60, 20 and 20 of a hundred.
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
    let graph = load_graph(&graph_file, watch)?;
    let nodes = graph.nodes();
    let (features, feature_width) = load_features(&features_file, nodes, watch)?;
    let (labels, classes) = load_labels(&labels_file, nodes, watch)?;
    let [train, val, test] = match split_file.exists() {
        true => {
            let mut archive = open_npz(&split_file, watch)?;
            let mut list = |name| archive.read(name, |array| array.into_u32());
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
    parts.into_dataset(|part| match part {
        Part::Features => features_file,
        Part::Labels => labels_file,
        Part::Splits => split_file,
    })
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
        if shape.first() != Some(&nodes) || shape.len() > 2 {
            return Err(format!(
                "labels of shape {shape:?}, [{nodes}] or [{nodes}, classes] is needed"
            ));
        }
        let numbers = array.into_f64()?;
        let most = if shape.len() == 1 { nodes } else { 2 };
        let whole = |&x: &f64| x >= 0.0 && x.fract() == 0.0 && x < most as f64;
        if let Some(at) = numbers.iter().position(|x| !whole(x)) {
            return Err(format!(
                "label {} is not an integer below {most}",
                numbers[at]
            ));
        }
        Ok(match shape.get(1) {
            None => {
                let classes: Vec<u32> = numbers.iter().map(|&x| x as u32).collect();
                let most = classes.iter().max().map_or(0, |&class| class as usize + 1);
                (Labels::Classes(classes), most)
            }
            Some(&classes) => {
                let sets = numbers.iter().map(|&x| x == 1.0).collect();
                (Labels::Sets(sets), classes)
            }
        })
    })
}

#[cfg(test)]
mod tests;
