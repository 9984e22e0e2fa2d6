//! TUDataset folders, such as MUTAG.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    str::FromStr,
};

use sparsek::io::memory;

use super::{
    error::DatasetError,
    files::{self, Lines, NUMBERS, Watch, bad, too_much},
    graph_dataset::{GraphDataset, GraphDatasetParts},
};
use crate::graph::Graph;

const HINT: &str =
    "download MUTAG, PROTEINS, NCI1 and others from https://chrsmrrs.github.io/datasets";

const EDGES: &str = "_A.txt";

const WHOLE: &str = "is not a list of comma-separated whole numbers";

/// Node features.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TuOptions {
    /// Puts `node_attributes` before the labels, as PyG's `use_node_attr`.
    pub attributes: bool,
    /// Appends the degree's one-hot code, as Xu et al. for graphs without labels.
    pub degrees: bool,
}

/// Loads a TUDataset folder (Morris et al., 2020).
///
/// `NAME_A.txt` names the dataset and lists an edge per line, `graph_indicator` the graph of each
/// node, ascending from 1, and `graph_labels` a number per graph; classes are in its order.
/// Features are one-hot codes of `node_labels`, a code per column; 1 without any.
///
/// Repeated edges count once, loops are dropped, as in PyG. Ignores edge labels and attributes.
///
/// ```
/// use sparsek_gnn::datasets::tu::{self, TuOptions};
///
/// let folder = std::env::temp_dir().join(format!("sparsek-tu-{}", std::process::id()));
/// std::fs::create_dir_all(&folder).unwrap();
/// for (file, text) in [
///     ("PAIR_A.txt", "1, 2\n2, 1\n"),
///     ("PAIR_graph_indicator.txt", "1\n1\n2\n"),
///     ("PAIR_graph_labels.txt", "1\n-1\n"),
///     ("PAIR_node_labels.txt", "6\n7\n6\n"),
/// ] {
///     std::fs::write(folder.join(file), text).unwrap();
/// }
/// let data = tu::load(&folder, &TuOptions::default(), &mut |_, _, _| {}).unwrap();
/// assert_eq!((data.name(), data.labels()), ("PAIR", &[1, 0][..]));
/// assert_eq!(data.features(0), [1.0, 0.0, 0.0, 1.0]);
/// # std::fs::remove_dir_all(folder).unwrap();
/// ```
pub fn load(
    folder: impl AsRef<Path>,
    options: &TuOptions,
    watch: Watch,
) -> Result<GraphDataset, DatasetError> {
    let folder = files::folder(folder.as_ref(), HINT)?;
    let name = find_name(folder)?;
    let file = |part: &str| folder.join(format!("{name}_{part}.txt"));

    let labels_file = file("graph_labels");
    let (labels, _) = table::<i64>(&labels_file, Some(1), watch, WHOLE)?;
    let (labels, classes) = codes(labels.iter());
    let (first, nodes) = read_indicator(&file("graph_indicator"), labels.len(), watch)?;
    let graphs = read_graphs(&folder.join(format!("{name}{EDGES}")), &first, watch)?;

    let mut columns = Vec::new();
    let attributes_file = file("node_attributes");
    if options.attributes {
        let (values, width) = table::<f32>(&attributes_file, None, watch, NUMBERS)?;
        check_rows(&attributes_file, values.len() / width.max(1), nodes)?;
        columns.push(Columns::Values(values, width));
    }
    let labels_file = file("node_labels");
    if labels_file.exists() {
        let (values, width) = table::<i64>(&labels_file, None, watch, WHOLE)?;
        check_rows(&labels_file, values.len() / width.max(1), nodes)?;
        for column in 0..width {
            columns.push(Columns::one_hot(values.iter().skip(column).step_by(width)));
        }
    }
    if options.degrees {
        let degrees: Vec<i64> = graphs
            .iter()
            .flat_map(|graph| (0..graph.nodes()).map(|node| graph.neighbors(node).len() as i64))
            .collect();
        columns.push(Columns::one_hot(degrees.iter()));
    }
    if columns.is_empty() {
        columns.push(Columns::Values(vec![1.0; nodes], 1));
    }
    let feature_width = columns.iter().map(Columns::width).sum();
    let features = joined(&columns, nodes, feature_width).map_err(too_much(folder))?;
    GraphDataset::new(GraphDatasetParts { name, graphs, features, feature_width, labels, classes })
}

/// Files that [`load`] may read.
pub fn files(folder: impl AsRef<Path>) -> Vec<PathBuf> {
    let list = fs::read_dir(folder).into_iter().flatten().flatten();
    list.map(|file| file.path())
        .filter(|file| file.extension().is_some_and(|e| e == "txt"))
        .collect()
}

fn find_name(folder: &Path) -> Result<String, DatasetError> {
    let list = fs::read_dir(folder)
        .map_err(|source| DatasetError::Io { file: folder.to_path_buf(), source })?;
    let mut names: Vec<String> = list
        .flatten()
        .filter_map(|file| Some(file.file_name().to_str()?.strip_suffix(EDGES)?.to_string()))
        .collect();
    match (names.pop(), names.is_empty()) {
        (Some(name), true) => Ok(name),
        (found, _) => {
            let count = names.len() + usize::from(found.is_some());
            Err(bad(folder)(format!("{count} files end in {EDGES}, expected one")))
        }
    }
}

/// Numbers and their count per line; skips empty lines.
fn table<T: FromStr>(
    file: &Path,
    width: Option<usize>,
    watch: Watch,
    what: &str,
) -> Result<(Vec<T>, usize), DatasetError> {
    let mut lines = Lines::open_any(file, watch)?;
    let (mut all, mut width) = (Vec::new(), width);
    while lines.advance()? {
        if lines.text().is_empty() {
            continue;
        }
        let before = all.len();
        lines.fields(&mut all, what)?;
        let found = all.len() - before;
        let wanted = *width.get_or_insert(found);
        if found != wanted {
            return Err(lines.wrong(&format!("has {found} numbers, expected {wanted}")));
        }
    }
    Ok((all, width.unwrap_or(0)))
}

fn check_rows(file: &Path, found: usize, nodes: usize) -> Result<(), DatasetError> {
    match found == nodes {
        true => Ok(()),
        false => Err(bad(file)(format!("{found} lines for {nodes} nodes"))),
    }
}

/// Graph offsets and node count.
fn read_indicator(
    file: &Path,
    graphs: usize,
    watch: Watch,
) -> Result<(Vec<usize>, usize), DatasetError> {
    let (ids, _) = table::<usize>(file, Some(1), watch, WHOLE)?;
    if !ids.is_sorted() {
        return Err(bad(file)("graphs do not ascend".to_string()));
    }
    if let Some(id) = ids.iter().find(|id| !(1..=graphs).contains(*id)) {
        return Err(bad(file)(format!("there is no graph {id} of {graphs}")));
    }
    let first = (0..=graphs).map(|graph| ids.partition_point(|&id| id <= graph));
    Ok((first.collect(), ids.len()))
}

fn read_graphs(file: &Path, first: &[usize], watch: Watch) -> Result<Vec<Graph>, DatasetError> {
    let nodes = first[first.len() - 1];
    let (ends, _) = table::<usize>(file, Some(2), watch, WHOLE)?;
    let mut edges = vec![Vec::new(); first.len() - 1];
    for pair in ends.chunks_exact(2) {
        let [source, target] = [pair[0], pair[1]].map(|id| id.wrapping_sub(1));
        if source >= nodes || target >= nodes {
            let reason =
                format!("edge {}, {} is not between nodes 1 and {nodes}", pair[0], pair[1]);
            return Err(bad(file)(reason));
        }
        let graph = first.partition_point(|&first| first <= source) - 1;
        let own = first[graph]..first[graph + 1];
        if !own.contains(&target) {
            let reason = format!("edge {}, {} joins two graphs", pair[0], pair[1]);
            return Err(bad(file)(reason));
        }
        if source != target {
            edges[graph].push(((source - own.start) as u32, (target - own.start) as u32));
        }
    }
    let graph = |(graph, mut edges): (usize, Vec<(u32, u32)>)| {
        edges.sort_unstable();
        edges.dedup();
        Graph::from_edges(first[graph + 1] - first[graph], edges)
            .map_err(|source| DatasetError::Graph { file: file.to_path_buf(), source })
    };
    edges.into_iter().enumerate().map(graph).collect()
}

/// Ranks among different values, and their count.
fn codes<'a>(values: impl Iterator<Item = &'a i64> + Clone) -> (Vec<u32>, usize) {
    let different: Vec<i64> =
        values.clone().copied().collect::<BTreeSet<i64>>().into_iter().collect();
    let rank = |value: &i64| different.partition_point(|other| other < value) as u32;
    (values.map(rank).collect(), different.len())
}

enum Columns {
    /// Row-major values, and columns.
    Values(Vec<f32>, usize),
    /// Place of each row's 1, and columns.
    OneHot(Vec<u32>, usize),
}

impl Columns {
    fn one_hot<'a>(values: impl Iterator<Item = &'a i64> + Clone) -> Self {
        let (codes, count) = codes(values);
        Self::OneHot(codes, count)
    }

    fn width(&self) -> usize {
        match self {
            Self::Values(_, width) | Self::OneHot(_, width) => *width,
        }
    }
}

fn joined(
    columns: &[Columns],
    nodes: usize,
    width: usize,
) -> Result<Vec<f32>, memory::MemoryError> {
    let bytes = memory::product(&[nodes, width, size_of::<f32>()]);
    memory::check(format_args!("{width} features of {nodes} nodes"), bytes)?;
    let mut features = vec![0.0; nodes * width];
    let mut start = 0;
    for part in columns {
        for (node, row) in features.chunks_exact_mut(width).enumerate() {
            let row = &mut row[start..start + part.width()];
            match part {
                Columns::Values(values, width) => {
                    row.copy_from_slice(&values[node * width..][..*width]);
                }
                Columns::OneHot(codes, _) => row[codes[node] as usize] = 1.0,
            }
        }
        start += part.width();
    }
    Ok(features)
}

#[cfg(test)]
mod tests {
    use rstest::{fixture, rstest};

    use super::{
        super::scratch::{Folder, empty_folder},
        *,
    };

    #[fixture]
    fn folder(empty_folder: Folder) -> Folder {
        for (file, text) in [
            ("A", "1, 2\n2, 1\n2, 1\n2,3\n3, 3\n5, 4\n"),
            ("graph_indicator", "1\n1\n1\n3\n3\n"),
            ("graph_labels", "3\n-1\n3\n\n"),
            ("node_labels", "5, 0\n5, 1\n2, 1\n5, 0\n9, 1\n"),
            ("node_attributes", "0.5\n1\n-2e0\n3\n4\n"),
        ] {
            write(&empty_folder, file, text);
        }
        empty_folder
    }

    fn write(folder: &Folder, file: &str, text: &str) {
        fs::write(folder.0.join(format!("set_{file}.txt")), text).unwrap();
    }

    fn load(folder: &Folder, options: &TuOptions) -> Result<GraphDataset, DatasetError> {
        super::load(&folder.0, options, &mut |_, _, _| {})
    }

    #[rstest]
    fn graphs_labels_and_features_are_read(folder: Folder) {
        let data = load(&folder, &TuOptions::default()).unwrap();
        assert_eq!((data.name(), data.classes(), data.nodes()), ("set", 2, 5));
        assert_eq!(data.labels(), [1, 0, 1]);
        let sizes: Vec<_> =
            data.graphs().iter().map(|graph| (graph.nodes(), graph.edges())).collect();
        assert_eq!(sizes, [(3, 3), (0, 0), (2, 1)]);
        let [first, _, third] = data.graphs() else { unreachable!() };
        assert_eq!(
            [first.neighbors(0), first.neighbors(1), first.neighbors(2)],
            [&[1][..], &[0], &[1]]
        );
        assert_eq!([third.neighbors(0), third.neighbors(1)], [&[1][..], &[]]);
        // Labels 2, 5, 9 and 0, 1.
        assert_eq!(data.feature_width(), 5);
        assert_eq!(data.features(2), [0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0]);
    }

    #[rstest]
    fn attributes_come_first_and_degrees_last(folder: Folder) {
        let data = load(&folder, &TuOptions { attributes: true, degrees: true }).unwrap();
        // Attribute, codes of labels and degrees.
        assert_eq!(data.feature_width(), 1 + 5 + 2);
        assert_eq!(data.features(2)[..8], [3.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
        assert_eq!(data.features(2)[8..], [4.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0]);
    }

    #[rstest]
    fn nodes_without_labels_have_one_feature(folder: Folder) {
        fs::remove_file(folder.0.join("set_node_labels.txt")).unwrap();
        let data = load(&folder, &TuOptions::default()).unwrap();
        assert_eq!((data.feature_width(), data.features(0)), (1, &[1.0; 3][..]));
    }

    #[rstest]
    #[case("A", "1, 9\n", "edge 1, 9 is not between nodes 1 and 5")]
    #[case("A", "0, 1\n", "edge 0, 1 is not between nodes 1 and 5")]
    #[case("A", "1, 4\n", "edge 1, 4 joins two graphs")]
    #[case("A", "1, 2, 3\n", "line 1 has 3 numbers, expected 2")]
    #[case("A", "1, x\n", "line 1 is not a list of comma-separated whole numbers")]
    #[case("graph_indicator", "1\n1\n3\n1\n3\n", "graphs do not ascend")]
    #[case("graph_indicator", "1\n1\n1\n3\n4\n", "there is no graph 4 of 3")]
    #[case("graph_indicator", "0\n1\n1\n3\n3\n", "there is no graph 0 of 3")]
    #[case("graph_labels", "", "is empty")]
    #[case("graph_labels", "0.5\n", "line 1 is not a list")]
    #[case("node_labels", "1\n", "1 lines for 5 nodes")]
    #[case("node_labels", "1\n1, 2\n", "line 2 has 2 numbers, expected 1")]
    #[case("node_attributes", "1\n2\n3\nnan\n5\n", "feature 0 of node 3 is not finite")]
    fn malformed_files_are_refused(
        folder: Folder,
        #[case] file: &str,
        #[case] text: &str,
        #[case] words: &str,
    ) {
        write(&folder, file, text);
        let options = TuOptions { attributes: true, degrees: false };
        let error = load(&folder, &options).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }

    #[rstest]
    fn other_folders_are_refused(folder: Folder) {
        fs::write(folder.0.join("other_A.txt"), "1, 1\n").unwrap();
        let error = load(&folder, &TuOptions::default()).unwrap_err().to_string();
        assert!(error.contains("2 files end in _A.txt, expected one"), "{error}");
        let none = super::load("no-such-folder", &TuOptions::default(), &mut |_, _, _| {});
        assert!(none.unwrap_err().to_string().contains("https://"));
    }
}
