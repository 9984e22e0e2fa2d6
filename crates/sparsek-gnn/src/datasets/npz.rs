//! NumPy archives of graphs.

use std::{
    io::{Read, Seek},
    path::Path,
};

use sparsek::io::{
    memory,
    npy::{Npy, Npz},
    scipy::Matrix,
    text::excerpt,
};

use super::{
    archive::{ArchiveOptions, check_masks, members},
    error::DatasetError,
    files::{self, Watch, bad, open_npz, too_much},
    labels::read_labels,
    matrix::{build_graph, check_graph, read_features, zeros_note},
    node_dataset::{NodeDataset, NodeDatasetParts},
};
use crate::graph::{Graph, MAX_SIZE};

/// Loads an archive, as PyG's `Amazon`, `Coauthor`, `CitationFull` and `HeterophilousGraphDataset`.
///
/// Shchur et al. (`amazon_electronics_computers.npz`, …):
///
/// - `adj_indptr`, `adj_indices`, `adj_shape`, optionally `adj_data`: adjacency. Drops self-loops,
///   and zeros, which [`NodeDataset::notes`] counts.
/// - `attr_data`, `attr_indices`, `attr_indptr`, `attr_shape`: features; positive ones become 1. Or
///   `attr_matrix`: `[nodes, features]`.
/// - `labels`: class per node.
///
/// Platonov et al. (`tolokers.npz`, …):
///
/// - `edges`: `[edges, 2]`.
/// - `node_features`: `[nodes, features]`.
/// - `node_labels`: class per node.
/// - `train_masks`, `val_masks`, `test_masks`: `[splits, nodes]`.
///
/// ```no_run
/// use sparsek_gnn::datasets::{ArchiveOptions, ArchiveSplit, RandomSplit, npz};
///
/// let split = ArchiveSplit::Random(RandomSplit::Fractions { train: 0.6, val: 0.2 }, 7);
/// let options = ArchiveOptions { split: Some(split), ..Default::default() };
/// let data = npz::load("amazon_electronics_photo.npz", &options, &mut |_, _, _| {}).unwrap();
/// assert_eq!((data.nodes(), data.feature_width(), data.classes()), (7650, 745, 8));
/// ```
pub fn load(
    file: impl AsRef<Path>,
    options: &ArchiveOptions,
    watch: Watch,
) -> Result<NodeDataset, DatasetError> {
    let file = file.as_ref();
    let bad = bad(file);
    let mut archive = open_npz(file, watch)?;
    let (graph, notes, features_name) = if archive.contains("adj_indptr") {
        let (graph, notes) = shchur_graph(&mut archive, file, options.directed)?;
        (graph, notes, "attr_matrix")
    } else if archive.contains("edges") {
        let graph = edges_graph(&mut archive, file, options.directed)?;
        (graph, Vec::new(), "node_features")
    } else {
        return Err(bad("has neither array adj_indptr nor array edges".to_string()));
    };
    let nodes = graph.nodes();
    let dense = archive.contains(features_name) || features_name == "node_features";
    let features = match dense {
        true => archive.read(features_name, |array| read_features(array, nodes)),
        false => read_sparse_features(&mut archive, nodes),
    };
    let features = features.map_err(&bad)?;
    let labels_name = if archive.contains("labels") { "labels" } else { "node_labels" };
    let labels = archive.read(labels_name, |array| read_labels(array, nodes));
    let labels = labels.map_err(&bad)?;
    let stored = archive.contains("train_masks");
    let read = stored.then_some(|split| read_masks(&mut archive, nodes, split).map_err(&bad));
    let lists = options.lists(file, &labels, nodes, "train_masks", read)?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let parts = NodeDatasetParts::of(excerpt(&name), graph, features, labels, lists);
    let dataset = parts.into_dataset(|_| file.to_path_buf())?;
    Ok(dataset.with_notes(notes))
}

/// Directed edges go from rows to columns.
fn shchur_graph(
    archive: &mut Npz<impl Read + Seek>,
    file: &Path,
    directed: bool,
) -> Result<(Graph, Vec<String>), DatasetError> {
    let matrix = read_csr(archive, "adj", |array| array.into_nonzero());
    let mut matrix: Matrix<bool> = matrix.map_err(bad(file))?;
    let [rows, cols] = matrix.shape;
    if rows != cols {
        return Err(bad(file)(format!("the adjacency is {rows} × {cols}, not square")));
    }
    let notes = match matrix.drop_zeros() {
        0 => Vec::new(),
        count => vec![zeros_note(&files::name(file), count)],
    };
    let asked = format_args!("a graph of {rows} nodes and {} edges", matrix.indices.len());
    check_graph(asked, rows, matrix.indices.len(), 0).map_err(too_much(file))?;
    let graph = Graph::from_csr(rows, matrix.indptr, matrix.indices).and_then(|graph| {
        let graph = graph.without_self_loops();
        match directed {
            true => Ok(graph.reversed()),
            false => graph.try_symmetrized(),
        }
    });
    let graph = graph.map_err(|source| DatasetError::Graph { file: file.to_path_buf(), source })?;
    Ok((graph, notes))
}

fn edges_graph(
    archive: &mut Npz<impl Read + Seek>,
    file: &Path,
    directed: bool,
) -> Result<Graph, DatasetError> {
    let shape = archive.header("node_features").map_err(bad(file))?.shape;
    let nodes = shape.first().copied().unwrap_or(0);
    let edges = archive.read("edges", |array| match *array.shape() {
        [_, 2] => array.into_u32(),
        _ => Err(format!("shape {:?}, [edges, 2] is needed", array.shape())),
    });
    let edges = edges.map_err(bad(file))?;
    let pairs = edges.as_chunks().0.iter().map(|&[source, target]| (source, target));
    let reserved = memory::product(&[edges.len(), size_of::<u32>()]);
    let asked = format_args!("a list of {} edges", edges.len() / 2);
    memory::check(asked, 2 * reserved).map_err(too_much(file))?;
    build_graph(file, nodes, pairs.collect(), reserved, directed)
}

/// An adjacency may lack `{name}_data`.
fn read_csr<T>(
    archive: &mut Npz<impl Read + Seek>,
    name: &str,
    convert: impl FnOnce(Npy<&mut dyn Read>) -> Result<Vec<T>, String>,
) -> Result<Matrix<T>, String> {
    let [shape_name, indptr_name, indices_name, data_name] =
        ["shape", "indptr", "indices", "data"].map(|part| format!("{name}_{part}"));
    let ids = |array: Npy<&mut dyn Read>| match *array.shape() {
        [length] if length <= MAX_SIZE + 1 => array.into_u32(),
        _ => Err(format!("shape {:?}, a list is needed", array.shape())),
    };
    let sizes = archive.read(&shape_name, |array| match *array.shape() {
        [2] => array.into_u32(),
        _ => Err(format!("shape {:?}, [2] is needed", array.shape())),
    })?;
    let shape = [sizes[0] as usize, sizes[1] as usize];
    let indptr = archive.read(&indptr_name, ids)?;
    let indices = archive.read(&indices_name, ids)?;
    if indptr.len() != shape[0] + 1 {
        let (found, rows) = (indptr.len(), shape[0]);
        return Err(format!("array {indptr_name}: {found} offsets for {rows} rows"));
    }
    let whole = indptr[0] == 0 && indptr.is_sorted() && indptr[shape[0]] as usize == indices.len();
    if !whole {
        let entries = indices.len();
        return Err(format!("array {indptr_name}: does not rise from 0 to {entries} entries"));
    }
    if let Some(at) = indices.iter().position(|&id| id as usize >= shape[1]) {
        let (id, columns) = (indices[at], shape[1]);
        return Err(format!("array {indices_name}: entry {at} is {id}, of {columns} columns"));
    }
    let values = match name == "adj" && !archive.contains(&data_name) {
        true => None,
        false => Some(archive.read(&data_name, |array| match *array.shape() {
            [length] if length == indices.len() => convert(array),
            _ => Err(format!("shape {:?} for {} entries", array.shape(), indices.len())),
        })?),
    };
    Ok(Matrix { shape, indptr, indices, values })
}

fn read_sparse_features(
    archive: &mut Npz<impl Read + Seek>,
    nodes: usize,
) -> Result<(Vec<f32>, usize), String> {
    let matrix: Matrix<f32> = read_csr(archive, "attr", |array| array.into_f32())?;
    let [rows, width] = matrix.shape;
    if rows != nodes {
        return Err(format!("array attr_shape: {rows} feature rows for {nodes} nodes"));
    }
    let bytes = memory::product(&[rows, width, size_of::<f32>()]);
    let held = memory::product(&[matrix.indices.len(), size_of::<u32>() + size_of::<f32>()]);
    let asked = format_args!("{width} features for each of {rows} nodes");
    memory::check(asked, bytes.saturating_add(held)).map_err(|error| error.to_string())?;
    let mut features = vec![0f32; rows * width];
    let values = matrix.values.unwrap_or_default();
    for (node, ends) in matrix.indptr.array_windows().enumerate() {
        let [begin, end] = ends.map(|end| end as usize);
        for (&column, value) in matrix.indices[begin..end].iter().zip(&values[begin..end]) {
            features[node * width + column as usize] += value;
        }
    }
    features.iter_mut().filter(|x| **x > 0.0).for_each(|x| *x = 1.0);
    Ok((features, width))
}

fn read_masks(
    archive: &mut Npz<impl Read + Seek>,
    nodes: usize,
    split: usize,
) -> Result<[Vec<u32>; 3], String> {
    let mut list = |name| {
        archive.read(name, |array| {
            let &[splits, width] = array.shape() else {
                return Err(format!("shape {:?}, [splits, nodes] is needed", array.shape()));
            };
            check_masks([splits, width], nodes, split)?;
            let masks = array.into_nonzero()?;
            Ok(members(masks[split * nodes..][..nodes].iter().copied()))
        })
    };
    Ok([list("train_masks")?, list("val_masks")?, list("test_masks")?])
}

#[cfg(test)]
mod tests {
    use rstest::{fixture, rstest};

    use super::*;
    use crate::datasets::{
        ArchiveSplit, Labels, RandomSplit,
        scratch::{Arrays, Folder, empty_folder, ids, npy, weights, write_arrays},
    };

    #[fixture]
    fn folder(empty_folder: Folder) -> Folder {
        empty_folder
    }

    fn read(
        folder: &Folder,
        arrays: &Arrays,
        options: &ArchiveOptions,
    ) -> Result<NodeDataset, DatasetError> {
        let file = folder.0.join("data.npz");
        write_arrays(file.clone(), arrays);
        load(file, options, &mut |_, done, size| assert!(done <= size))
    }

    fn pairs(values: &[i32]) -> Vec<u8> {
        let bytes: Vec<_> = values.iter().map(|x| x.to_le_bytes()).collect();
        npy("<i4", "False", &format!("({}, 2)", values.len() / 2), &bytes)
    }

    fn masks(shape: &str, values: &[u8]) -> Vec<u8> {
        let bytes: Vec<_> = values.iter().map(|&x| [x]).collect();
        npy("|b1", "False", shape, &bytes)
    }

    fn shchur() -> Arrays {
        vec![
            ("adj_data", weights("(4,)", &[1.0, 2.0, 0.0, 1.0])),
            ("adj_indices", ids(&[1, 2, 0, 2])),
            ("adj_indptr", ids(&[0, 2, 3, 4])),
            ("adj_shape", ids(&[3, 3])),
            ("attr_data", weights("(4,)", &[3.0, 0.5, -1.0, 1.0])),
            ("attr_indices", ids(&[1, 0, 0, 0])),
            ("attr_indptr", ids(&[0, 1, 2, 4])),
            ("attr_shape", ids(&[3, 2])),
            ("labels", ids(&[0, 1, 0])),
            ("node_names", npy("|O", "False", "(3,)", &[[0]; 3])),
        ]
    }

    fn platonov() -> Arrays {
        vec![
            ("node_features", weights("(3, 2)", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])),
            ("node_labels", ids(&[0, 1, 0])),
            ("edges", pairs(&[0, 1, 2, 1, 2, 2])),
            ("train_masks", masks("(2, 3)", &[1, 0, 0, 0, 1, 0])),
            ("val_masks", masks("(2, 3)", &[0, 1, 0, 0, 0, 1])),
            ("test_masks", masks("(2, 3)", &[0, 0, 1, 1, 0, 0])),
        ]
    }

    fn changed(mut arrays: Arrays, name: &'static str, bytes: Option<Vec<u8>>) -> Arrays {
        arrays.retain(|(other, _)| *other != name);
        arrays.extend(bytes.map(|bytes| (name, bytes)));
        arrays
    }

    fn rows(data: &NodeDataset) -> [Vec<u32>; 3] {
        [0, 1, 2].map(|node| data.graph().neighbors(node).to_vec())
    }

    #[rstest]
    #[case::symmetrized(false, [vec![1, 2], vec![0], vec![0]])]
    #[case::directed(true, [vec![], vec![0], vec![0]])]
    fn adjacency_attributes_and_labels_are_read(
        folder: Folder,
        #[case] directed: bool,
        #[case] expected: [Vec<u32>; 3],
    ) {
        let options = ArchiveOptions { directed, split: None };
        let data = read(&folder, &shchur(), &options).unwrap();
        assert_eq!(rows(&data), expected);
        assert_eq!(data.features(), [0.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
        assert_eq!(data.labels(), &Labels::Classes(vec![0, 1, 0]));
        assert_eq!((data.name(), data.classes(), data.train()), ("data", 2, &[0, 1, 2][..]));
        assert_eq!(data.notes(), ["data.npz: 1 stored zeros skipped, since they are not edges"]);
        let without = changed(shchur(), "adj_data", None);
        let data = read(&folder, &without, &options).unwrap();
        assert!(data.notes().is_empty());
    }

    #[rstest]
    fn dense_attributes_keep_their_values(folder: Folder) {
        let dense = weights("(3, 1)", &[2.0, -1.0, 0.5]);
        let arrays = changed(shchur(), "attr_matrix", Some(dense));
        let arrays = changed(arrays, "attr_data", None);
        let data = read(&folder, &arrays, &ArchiveOptions::default()).unwrap();
        assert_eq!(data.features(), [2.0, -1.0, 0.5]);
    }

    #[rstest]
    #[case::symmetrized(false, [vec![1], vec![0, 2], vec![1, 2]])]
    #[case::directed(true, [vec![], vec![0, 2], vec![2]])]
    fn edges_and_features_are_read(
        folder: Folder,
        #[case] directed: bool,
        #[case] expected: [Vec<u32>; 3],
    ) {
        let options = ArchiveOptions { directed, split: None };
        let data = read(&folder, &platonov(), &options).unwrap();
        assert_eq!(rows(&data), expected);
        assert_eq!(data.features(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!((data.train(), data.val(), data.test()), (&[0][..], &[1][..], &[2][..]));
    }

    #[rstest]
    fn splits_are_stored_or_drawn(folder: Folder) {
        let split = |arrays: &Arrays, split| {
            let options = ArchiveOptions { split: Some(split), ..Default::default() };
            let data = read(&folder, arrays, &options);
            data.map(|data| [data.train(), data.val(), data.test()].map(<[u32]>::to_vec))
        };
        let second = split(&platonov(), ArchiveSplit::Stored(1)).unwrap();
        assert_eq!(second, [[1], [2], [0]]);
        let thirds = RandomSplit::Fractions { train: 0.34, val: 0.33 };
        let drawn = ArchiveSplit::Random(thirds, 5);
        let lists = split(&shchur(), drawn).unwrap();
        assert_eq!(lists.each_ref().map(Vec::len), [1, 1, 1]);
        assert_eq!(split(&platonov(), drawn).unwrap(), lists);
        let error = split(&platonov(), ArchiveSplit::Stored(2)).unwrap_err().to_string();
        assert!(error.contains("train_masks") && error.contains("there are 2"), "{error}");
        let error = split(&shchur(), ArchiveSplit::Stored(0)).unwrap_err().to_string();
        assert!(error.contains("has no train_masks"), "{error}");
        let error = split(
            &shchur(),
            ArchiveSplit::Random(RandomSplit::Fractions { train: 2.0, val: 0.0 }, 0),
        );
        assert!(error.unwrap_err().to_string().contains("fractions 2 and 0"));
    }

    #[rstest]
    #[case::no_adjacency("adj_indptr", None, "neither")]
    #[case::not_square("adj_shape", Some(ids(&[3, 4])), "not square")]
    #[case::no_shape("adj_shape", Some(ids(&[3])), "[2] is needed")]
    #[case::negative_shape("adj_shape", Some(ids(&[3, -3])), "-3 is not an index")]
    #[case::offsets("adj_indptr", Some(ids(&[0, 4])), "2 offsets for 3 rows")]
    #[case::offsets("adj_indptr", Some(ids(&[0, 3, 2, 4])), "rise")]
    #[case::offsets("adj_indptr", Some(ids(&[0, 2, 3, 5])), "rise")]
    #[case::offsets("adj_indptr", Some(ids(&[1, 2, 3, 4])), "rise")]
    #[case::columns("adj_indices", Some(ids(&[1, 2, 0, 3])), "entry 3 is 3")]
    #[case::values("adj_data", Some(weights("(3,)", &[1.0; 3])), "[3] for 4 entries")]
    #[case::objects("adj_data", Some(npy("|O", "False", "(4,)", &[[0]; 4])), "pickled")]
    #[case::no_values("attr_data", None, "attr_data")]
    #[case::columns("attr_indices", Some(ids(&[1, 0, 2, 0])), "entry 2 is 2")]
    #[case::rows("attr_shape", Some(ids(&[4, 2])), "4 offsets for 4 rows")]
    #[case::infinite("attr_data", Some(weights("(4,)", &[-f64::INFINITY; 4])), "not finite")]
    #[case::large("attr_shape", Some(ids(&[3, i32::MAX])), "2147483647 features")]
    #[case::label("labels", Some(ids(&[0, 1, -1])), "node 2")]
    #[case::label("labels", Some(ids(&[0, 1, 7])), "node 2 has class 7")]
    #[case::labels("labels", Some(ids(&[0, 1])), "labels have shape [2]")]
    #[case::no_labels("labels", None, "node_labels")]
    fn broken_matrices_are_named(
        folder: Folder,
        #[case] name: &'static str,
        #[case] bytes: Option<Vec<u8>>,
        #[case] word: &str,
    ) {
        is_named(read(&folder, &changed(shchur(), name, bytes), &ArchiveOptions::default()), word);
    }

    #[rstest]
    #[case::node("edges", Some(pairs(&[0, 1, 2, 3])), "3")]
    #[case::negative("edges", Some(pairs(&[0, -1])), "-1 is not an index")]
    #[case::shape("edges", Some(ids(&[0, 1, 2])), "[edges, 2] is needed")]
    #[case::no_features("node_features", None, "node_features")]
    #[case::features("node_features", Some(weights("(3,)", &[1.0; 3])), "[nodes, features]")]
    #[case::no_columns("node_features", Some(weights("(3, 0)", &[])), "at least 1")]
    #[case::labels("node_labels", Some(ids(&[0, 1, 0, 1])), "labels have shape [4]")]
    #[case::no_masks("val_masks", None, "val_masks")]
    #[case::masks("val_masks", Some(masks("(3, 2)", &[0; 6])), "masks of 2 nodes")]
    #[case::masks("val_masks", Some(masks("(3,)", &[0; 3])), "[splits, nodes]")]
    #[case::no_splits("val_masks", Some(masks("(0, 3)", &[])), "there are 0")]
    #[case::overlap("val_masks", Some(masks("(1, 3)", &[1; 3])), "node 0 is in the training")]
    fn broken_lists_are_named(
        folder: Folder,
        #[case] name: &'static str,
        #[case] bytes: Option<Vec<u8>>,
        #[case] word: &str,
    ) {
        is_named(
            read(&folder, &changed(platonov(), name, bytes), &ArchiveOptions::default()),
            word,
        );
    }

    fn is_named(found: Result<NodeDataset, DatasetError>, word: &str) {
        let error = found.unwrap_err().to_string();
        assert!(error.contains("data.npz") && error.contains(word), "{error}");
        assert!(error.len() < 500 && !error.contains(char::is_control), "{error}");
    }

    #[rstest]
    fn other_files_are_refused(folder: Folder) {
        let file = folder.0.join("data.npz");
        let read = || load(&file, &ArchiveOptions::default(), &mut |_, _, _| {});
        is_named(read(), "");
        std::fs::write(&file, "no archive").unwrap();
        is_named(read(), "");
    }
}
