//! Folders of scipy and NumPy files.

use std::{io::Read, path::Path};

use rand::{SeedableRng, rngs::Xoshiro256PlusPlus, seq::SliceRandom};
use sparsek::io::npy::Npy;

use super::{
    error::DatasetError,
    files::{self, Watch, bad, open_npz, read_npy},
    labels::read_labels,
    matrix::{load_features, load_graph},
    node_dataset::{NodeDataset, NodeDatasetParts, Part},
};

const HINT: &str = "expected a folder with graph.npz (scipy.sparse.save_npz), features.npy, \
                    labels.npy and optionally split.npz";

/// Loads a folder.
///
/// - `graph.npz`: square, as `adj_full.npz` of [`graphsaint::load`](super::graphsaint::load).
/// - `features.npy`: `[nodes, features]`.
/// - `labels.npy`: classes, `[nodes]` or `[nodes, 1]`; or 0 and 1, `[nodes, classes]`.
/// - `split.npz`: node ids `train`, `val`, `test`; else `seed` draws 60:20:20.
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
    let features = load_features(&features_file, nodes, watch)?;
    let labels = read_npy(&labels_file, watch, |array| read_labels(array, nodes))?;
    let lists = match split_file.exists() {
        true => load_split(&split_file, nodes, watch)?,
        false => drawn(nodes, seed),
    };
    let parts = NodeDatasetParts::of(files::name(folder), graph, features, labels, lists);
    let dataset = parts.into_dataset(|part| match part {
        Part::Features => features_file,
        Part::Labels => labels_file,
        Part::Splits => split_file,
    })?;
    Ok(dataset.with_notes(notes))
}

pub(super) fn load_split(
    file: &Path,
    nodes: usize,
    watch: Watch,
) -> Result<[Vec<u32>; 3], DatasetError> {
    let mut archive = open_npz(file, watch)?;
    let mut list = |name| archive.read(name, |array| node_list(array, nodes));
    let lists = [list("train"), list("val"), list("test")];
    let [train, val, test] = lists.map(|list| list.map_err(bad(file)));
    Ok([train?, val?, test?])
}

fn node_list(array: Npy<impl Read>, nodes: usize) -> Result<Vec<u32>, String> {
    match array.header().len {
        count if count > nodes => Err(format!("{count} ids, but the graph has {nodes} nodes")),
        _ => array.into_u32(),
    }
}

pub(super) fn drawn(nodes: usize, seed: u64) -> [Vec<u32>; 3] {
    let mut train: Vec<u32> = (0..nodes as u32).collect();
    train.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
    let mut val = train.split_off(nodes * 3 / 5);
    let test = val.split_off(val.len() / 2);
    [train, val, test]
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rstest::{fixture, rstest};

    use super::*;
    use crate::datasets::{
        Labels,
        scratch::{Folder, empty_folder, write_npy, write_npz},
    };

    #[fixture]
    fn folder(empty_folder: Folder) -> Folder {
        let path = &empty_folder.0;
        write_npz(path.join("graph.npz"), &[0, 1, 3, 4], &[1, 0, 2, 1], [3, 3]);
        write_npy(path.join("features.npy"), &[3, 1], &[1.0, 2.0, 3.0]);
        write_npy(path.join("labels.npy"), &[3], &[1.0, 0.0, 1.0]);
        empty_folder
    }

    fn read(folder: &Folder) -> Result<NodeDataset, DatasetError> {
        load(&folder.0, 4, &mut |_, _, _| {})
    }

    #[rstest]
    fn a_whole_folder_loads(folder: Folder) {
        let data = read(&folder).unwrap();
        assert_eq!((data.nodes(), data.graph().edges(), data.classes()), (3, 4, 2));
        assert_eq!(data.labels(), &Labels::Classes(vec![1, 0, 1]));
        assert_eq!((data.train().len(), data.val().len(), data.test().len()), (1, 1, 1));
        assert_eq!(data.train(), read(&folder).unwrap().train());
        write_npy(folder.0.join("labels.npy"), &[3, 2], &[1.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
        assert_eq!(read(&folder).unwrap().classes(), 2);
    }

    #[test]
    fn splits_are_drawn_in_parts() {
        let lists = drawn(1000, 3);
        assert_eq!(lists.each_ref().map(Vec::len), [600, 200, 200]);
        let mut all = lists.concat();
        all.sort_unstable();
        assert_eq!(all, (0..1000).collect::<Vec<u32>>());
    }

    #[rstest]
    #[case::fraction(&[3], &[1.0, 0.5, 0.0])]
    #[case::missing_class(&[3], &[1.0, 3.0, 0.0])]
    #[case::negative(&[3], &[-1.0, 1.0, 0.0])]
    #[case::short(&[2], &[1.0, 0.0])]
    #[case::missing_class(&[3, 1], &[1.0, 3.0, 0.0])]
    #[case::nan(&[3, 1], &[1.0, f64::NAN, 0.0])]
    #[case::no_truth_value(&[3, 2], &[1.0, 0.0, 2.0, 0.0, 0.0, 1.0])]
    #[case::no_columns(&[3, 0], &[])]
    #[case::three_dimensions(&[3, 1, 1], &[1.0, 0.0, 0.0])]
    #[case::one_row(&[1, 3], &[1.0, 0.0, 0.0])]
    #[case::scalar(&[], &[1.0])]
    fn bad_labels_are_named(folder: Folder, #[case] shape: &[u64], #[case] values: &[f64]) {
        write_npy(folder.0.join("labels.npy"), shape, values);
        let message = read(&folder).unwrap_err().to_string();
        assert!(message.contains("labels.npy") && !message.contains('\n'), "{message}");
    }

    #[rstest]
    fn every_missing_file_is_named(
        folder: Folder,
        #[values("graph.npz", "features.npy", "labels.npy")] file: &str,
    ) {
        fs::remove_file(folder.0.join(file)).unwrap();
        assert!(read(&folder).unwrap_err().to_string().contains(file));
    }

    #[test]
    fn a_missing_folder_says_what_it_should_hold() {
        assert!(
            load("no/such", 0, &mut |_, _, _| {}).unwrap_err().to_string().contains("graph.npz")
        );
    }

    #[rstest]
    #[case([1.0, 2.0, 0.0], 3)]
    #[case([1.0, 0.0, 1.0], 2)]
    fn labels_of_width_1_are_classes(
        folder: Folder,
        #[case] labels: [f64; 3],
        #[case] classes: usize,
    ) {
        write_npy(folder.0.join("labels.npy"), &[3, 1], &labels);
        let data = read(&folder).unwrap();
        let wanted = labels.map(|label| label as u32).to_vec();
        assert_eq!(data.labels(), &Labels::Classes(wanted));
        assert_eq!(data.classes(), classes);
    }

    #[rstest]
    fn one_stray_class_is_named(folder: Folder) {
        let nodes = 60_000;
        let shape = [nodes as i64; 2];
        write_npz(folder.0.join("graph.npz"), &vec![0; nodes + 1], &[], shape);
        let mut values = vec![1.0; nodes];
        write_npy(folder.0.join("features.npy"), &[nodes as u64, 1], &values);
        values[41] = nodes as f64 - 1.0;
        write_npy(folder.0.join("labels.npy"), &[nodes as u64], &values);
        let found = read(&folder).unwrap_err().to_string();
        for word in ["labels.npy", "node 41 ", "59999", "only 2 ", "renumber"] {
            assert!(found.contains(word), "{found}");
        }
    }
}
