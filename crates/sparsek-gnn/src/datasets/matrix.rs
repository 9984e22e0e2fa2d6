use std::{fmt, io::Read, path::Path};

use sparsek::io::{
    memory::{self, MemoryError},
    npy::Npy,
    scipy::{Matrix, Values},
    text,
};

use super::{
    error::DatasetError,
    files::{Watch, bad, open_npz, read_npy, too_much},
};
use crate::graph::Graph;

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
            vec![zeros_note(&name, count)]
        }
    };
    let graph = Graph::from_csr(rows, matrix.indptr, matrix.indices);
    let graph = graph.map_err(|source| DatasetError::Graph { file: file.to_path_buf(), source })?;
    Ok((graph, notes))
}

pub(super) fn zeros_note(name: &str, count: usize) -> String {
    format!("{name}: {count} stored zeros skipped, since they are not edges")
}

/// Counts `reserved` bytes against the limit.
pub(super) fn build_graph(
    file: &Path,
    nodes: usize,
    edges: Vec<(u32, u32)>,
    reserved: u128,
    directed: bool,
) -> Result<Graph, DatasetError> {
    let asked = format_args!("a graph of {nodes} nodes and {} edges", edges.len());
    check_graph(asked, nodes, edges.len(), reserved).map_err(too_much(file))?;
    let graph = Graph::from_edges(nodes, edges).and_then(|graph| match directed {
        true => Ok(graph),
        false => graph.try_symmetrized(),
    });
    graph.map_err(|source| DatasetError::Graph { file: file.to_path_buf(), source })
}

pub(super) fn check_graph(
    asked: fmt::Arguments,
    nodes: usize,
    edges: usize,
    reserved: u128,
) -> Result<(), MemoryError> {
    let bytes = memory::product(&[nodes, 16]) + memory::product(&[edges, 24]);
    memory::check(asked, bytes.saturating_add(reserved))
}

pub(super) fn load_features(
    file: &Path,
    nodes: usize,
    watch: Watch,
) -> Result<(Vec<f32>, usize), DatasetError> {
    read_npy(file, watch, |array| read_features(array, nodes))
}

pub(super) fn read_features(
    array: Npy<impl Read>,
    nodes: usize,
) -> Result<(Vec<f32>, usize), String> {
    let &[rows, width] = array.shape() else {
        return Err(format!("features have shape {:?}, expected [nodes, features]", array.shape()));
    };
    if rows != nodes {
        return Err(format!("{rows} feature rows for {nodes} nodes"));
    }
    Ok((array.into_f32()?, width))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rstest::{fixture, rstest};

    use super::*;
    use crate::datasets::{
        NodeDataset, csr, graphsaint,
        scratch::{Arrays, Folder, empty_folder, ids, npy, weights, write_arrays},
    };

    fn format(name: &[u8; 3]) -> Vec<u8> {
        npy("|S3", "False", "()", &[*name])
    }

    #[fixture]
    fn folder(empty_folder: Folder) -> Folder {
        let path = &empty_folder.0;
        let features = weights("(3, 2)", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        for file in ["feats.npy", "features.npy"] {
            fs::write(path.join(file), &features).unwrap();
        }
        fs::write(path.join("labels.npy"), ids(&[1, 0, 1])).unwrap();
        for (file, text) in [
            ("class_map.json", r#"{"0": 1, "1": 0, "2": 1}"#),
            ("role.json", r#"{"tr": [0], "va": [2], "te": [1]}"#),
        ] {
            fs::write(path.join(file), text).unwrap();
        }
        empty_folder
    }

    fn both(folder: &Folder, arrays: &Arrays) -> [Result<NodeDataset, DatasetError>; 2] {
        for file in ["adj_full.npz", "graph.npz"] {
            write_arrays(folder.0.join(file), arrays);
        }
        [graphsaint::load(&folder.0, &mut |_, _, _| {}), csr::load(&folder.0, 0, &mut |_, _, _| {})]
    }

    fn shape() -> (&'static str, Vec<u8>) {
        ("shape", ids(&[3, 3]))
    }

    fn in_csr() -> Arrays {
        vec![
            ("format", format(b"csr")),
            shape(),
            ("indptr", ids(&[0, 2, 3, 4])),
            ("indices", ids(&[1, 2, 2, 0])),
            ("data", weights("(4,)", &[1.0, 1.0, 0.5, 0.0])),
        ]
    }

    fn in_csc() -> Arrays {
        vec![
            ("format", format(b"csc")),
            shape(),
            ("indptr", ids(&[0, 1, 2, 4])),
            ("indices", ids(&[2, 0, 0, 1])),
            ("data", weights("(4,)", &[0.0, 1.0, 1.0, 0.5])),
        ]
    }

    fn in_coo() -> Arrays {
        vec![
            ("format", format(b"coo")),
            shape(),
            ("row", ids(&[2, 0, 1, 0])),
            ("col", ids(&[0, 1, 2, 2])),
            ("data", weights("(4,)", &[0.0, 1.0, 0.5, 1.0])),
        ]
    }

    fn in_bsr() -> Arrays {
        let block = [0.0, 1.0, 1.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0];
        vec![
            ("format", format(b"bsr")),
            shape(),
            ("indptr", ids(&[0, 1])),
            ("indices", ids(&[0])),
            ("data", weights("(1, 3, 3)", &block)),
        ]
    }

    fn changed(mut arrays: Arrays, name: &'static str, bytes: Vec<u8>) -> Arrays {
        arrays.retain(|(other, _)| *other != name);
        arrays.push((name, bytes));
        arrays
    }

    fn is_expected(dataset: &NodeDataset) {
        let graph = dataset.graph();
        let rows = [0, 1, 2].map(|node| graph.neighbors(node).to_vec());
        assert_eq!(rows, [vec![1, 2], vec![2], vec![]]);
    }

    #[rstest]
    #[case::csr(in_csr(), 1)]
    #[case::csc(in_csc(), 1)]
    #[case::coo(in_coo(), 1)]
    #[case::bsr(in_bsr(), 6)]
    fn a_directed_graph_is_the_same_in_every_format(
        folder: Folder,
        #[case] arrays: Arrays,
        #[case] zeros: usize,
    ) {
        for (dataset, file) in both(&folder, &arrays).iter().zip(["adj_full", "graph"]) {
            let dataset = dataset.as_ref().unwrap();
            is_expected(dataset);
            let note =
                format!("{file}.npz: {zeros} stored zeros skipped, since they are not edges");
            assert_eq!(dataset.notes(), [note]);
        }
    }

    #[rstest]
    fn diagonals_are_edges_without_notes(folder: Folder) {
        let arrays = vec![
            ("format", format(b"dia")),
            shape(),
            ("offsets", ids(&[1, 2, -1])),
            ("data", weights("(3, 3)", &[0.0, 1.0, 0.5, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])),
        ];
        for dataset in both(&folder, &arrays) {
            let dataset = dataset.unwrap();
            is_expected(&dataset);
            assert!(dataset.notes().is_empty());
        }
    }

    #[rstest]
    #[case::csr(in_csr())]
    #[case::coo(in_coo())]
    fn patterns_without_values_and_without_a_format_are_graphs(
        folder: Folder,
        #[case] arrays: Arrays,
    ) {
        let kept = |name: &str| !["data", "format"].contains(&name);
        let arrays: Arrays = arrays.into_iter().filter(|(name, _)| kept(name)).collect();
        for dataset in both(&folder, &arrays) {
            let dataset = dataset.unwrap();
            assert_eq!(dataset.graph().neighbors(2), [0]);
            assert!(dataset.notes().is_empty());
        }
    }

    #[rstest]
    fn spare_capacity_and_integers_of_every_width_are_read(folder: Folder) {
        let wide = [1u64, 2, 2, 0, 77].map(u64::to_le_bytes);
        let arrays = vec![
            ("format", format(b"csr")),
            ("shape", npy("|u1", "False", "(2,)", &[[3], [3]])),
            ("indptr", npy(">u2", "False", "(4,)", &[[0, 0], [0, 2], [0, 3], [0, 3]])),
            ("indices", npy("<u8", "False", "(5,)", &wide)),
            ("data", npy("|b1", "False", "(5,)", &[[1]; 5])),
        ];
        for dataset in both(&folder, &arrays) {
            is_expected(&dataset.unwrap());
        }
    }

    #[rstest]
    #[case::format("format", format(b"lil"), ".tocsr()")]
    #[case::format("format", format(b"\x1b[m"), "\\u{1b}")]
    #[case::shape("shape", ids(&[3, 4]), "not square")]
    #[case::shape("shape", ids(&[4, 4]), "4 rows need 5")]
    #[case::indices("indices", ids(&[1, 2, 3, 0]), "column 3 of entry 2")]
    #[case::indptr("indptr", ids(&[0, 2, 3, 5]), "ends with 5")]
    #[case::data("data", weights("(3,)", &[1.0; 3]), "3 values for 4 entries")]
    #[case::objects("data", npy("|O", "False", "(4,)", &[[0]; 4]), "pickled")]
    fn other_formats_and_broken_matrices_are_refused_by_name(
        folder: Folder,
        #[case] name: &'static str,
        #[case] bytes: Vec<u8>,
        #[case] word: &str,
    ) {
        let arrays = changed(in_csr(), name, bytes);
        for (dataset, file) in both(&folder, &arrays).iter().zip(["adj_full", "graph"]) {
            let error = dataset.as_ref().unwrap_err().to_string();
            assert!(error.contains(file) && error.contains(word), "{error}");
            assert!(error.len() < 500 && !error.contains(char::is_control), "{error}");
        }
    }

    const ROWS: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    const COLUMNS: [f64; 6] = [1.0, 3.0, 5.0, 2.0, 4.0, 6.0];

    #[rstest]
    #[case::f64(npy(">f8", "False", "(3, 2)", &ROWS.map(f64::to_be_bytes)))]
    #[case::f64(npy("<f8", "True", "(3, 2)", &COLUMNS.map(f64::to_le_bytes)))]
    #[case::u16(npy(">u2", "False", "(3, 2)", &ROWS.map(|x| (x as u16).to_be_bytes())))]
    #[case::i8(npy("|i1", "True", "(3, 2)", &COLUMNS.map(|x| [x as u8])))]
    fn features_of_every_layout_are_the_same(folder: Folder, #[case] bytes: Vec<u8>) {
        for file in ["feats.npy", "features.npy"] {
            fs::write(folder.0.join(file), &bytes).unwrap();
        }
        for dataset in both(&folder, &in_csr()) {
            assert_eq!(dataset.unwrap().features(), ROWS.map(|x| x as f32));
        }
    }

    #[rstest]
    fn features_may_be_f16(folder: Folder) {
        let f16s = [0x3c00u16, 0x3e00, 0x4000, 0x4100, 0x4200, 0x4300].map(u16::to_le_bytes);
        let bytes = npy("<f2", "False", "(3, 2)", &f16s);
        fs::write(folder.0.join("feats.npy"), bytes).unwrap();
        let [dataset, _] = both(&folder, &in_csr());
        assert_eq!(dataset.unwrap().features(), [1.0, 1.5, 2.0, 2.5, 3.0, 3.5]);
    }

    #[rstest]
    fn splits_are_no_longer_than_the_graph(folder: Folder) {
        let split = |train: &[i32]| {
            let lists = vec![("train", ids(train)), ("val", ids(&[1])), ("test", ids(&[2]))];
            write_arrays(folder.0.join("split.npz"), &lists);
            let [_, dataset] = both(&folder, &in_csr());
            dataset
        };
        assert_eq!(split(&[0]).unwrap().train(), [0]);
        let error = split(&[0; 100_000]).unwrap_err().to_string();
        assert!(error.contains("split.npz: array train: 100000 ids"), "{error}");
    }

    #[cfg(unix)]
    #[rstest]
    fn pipes_are_refused(
        folder: Folder,
        #[values("adj_full.npz", "feats.npy", "class_map.json", "role.json")] file: &str,
    ) {
        let _ = both(&folder, &in_csr());
        let path = folder.0.join(file);
        fs::remove_file(&path).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let error = graphsaint::load(&folder.0, &mut |_, _, _| {}).unwrap_err().to_string();
        assert!(error.contains(file) && error.contains("a pipe"), "{error}");
    }
}
