//! Edge lists in text files.

use std::path::{Path, PathBuf};

use sparsek::io::memory;

use super::{
    csr::{drawn, load_split},
    error::DatasetError,
    files::{self, Lines, Watch, bad},
    labels::{CLASS_NEEDED, Class, Labels, labels_of_rows, read_labels},
    matrix::{build_graph, load_features, zeros_note},
    node_dataset::{NodeDataset, NodeDatasetParts, Part},
};
use crate::graph::Graph;

const TEXT_ENDINGS: [&str; 6] = ["csv", "tsv", "txt", "csv.gz", "tsv.gz", "txt.gz"];

const ARRAY_ENDING: &str = "npy";

const SPLIT: &str = "split.npz";

const HINT: &str = "expected a folder with edges.csv, features.csv or features.npy, labels.csv or \
                    labels.npy, and optionally split.npz";

/// Edge list options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgeListOptions {
    /// Skip symmetrization.
    pub directed: bool,
    /// Draws a missing split.
    pub seed: u64,
}

/// Loads a folder of text and NumPy files.
///
/// - `edges.csv`: `source,target` per line, optionally a weight: [`NodeDataset::notes`] counts
///   skipped zeros, other weights are dropped.
/// - `features.csv`, or `features.npy` as in [`csr::load`](super::csr::load).
/// - `labels.csv`: per line a class, or a 0 or 1 per class; or `labels.npy`.
/// - `split.npz`: as in `csr::load`.
///
/// Nodes count from 0, in the order of features and labels. Text files end in `.csv`, `.tsv` or
/// `.txt`, optionally `.gz`. Commas, else white space, separate fields. Skips empty lines, `#`
/// lines, and a first line without numbers.
///
/// ```
/// use sparsek_gnn::datasets::edge_list::{self, EdgeListOptions};
///
/// let folder = std::env::temp_dir().join(format!("sparsek-edges-{}", std::process::id()));
/// std::fs::create_dir_all(&folder).unwrap();
/// for (file, text) in [
///     ("edges.csv", "source,target\n0,1\n1,2\n"),
///     ("features.csv", "1,0\n0,1\n1,1\n"),
///     ("labels.csv", "0\n1\n1\n"),
/// ] {
///     std::fs::write(folder.join(file), text).unwrap();
/// }
/// let data = edge_list::load(&folder, &EdgeListOptions::default(), &mut |_, _, _| {}).unwrap();
/// assert_eq!((data.nodes(), data.graph().edges(), data.classes()), (3, 4, 2));
/// # std::fs::remove_dir_all(folder).unwrap();
/// ```
pub fn load(
    folder: impl AsRef<Path>,
    options: &EdgeListOptions,
    watch: Watch,
) -> Result<NodeDataset, DatasetError> {
    let folder = files::folder(folder.as_ref(), HINT)?;
    let edges_file = find(folder, "edges", false)?;
    let features_file = find(folder, "features", true)?;
    let labels_file = find(folder, "labels", true)?;
    // Labels prove `nodes`.
    let (labels, classes, nodes) = load_labels(&labels_file, watch)?;
    let mut reserved = match &labels {
        Labels::Classes(all) => memory::product(&[all.len(), size_of::<u32>()]),
        Labels::Sets(all) => memory::product(&[all.len()]),
    };
    let features = match is_array(&features_file) {
        true => load_features(&features_file, nodes, watch)?,
        false => {
            let lines = Lines::open_any(&features_file, watch)?.beside(reserved);
            let (features, width, _) = rows(lines, Some(nodes), "is not a list of numbers")?;
            (features, width)
        }
    };
    reserved += memory::product(&[features.0.len(), size_of::<f32>()]);
    let lines = Lines::open_any(&edges_file, watch)?.beside(reserved);
    let (graph, notes) = read_graph(&edges_file, lines, Some(nodes), reserved, options.directed)?;
    let split_file = folder.join(SPLIT);
    let lists = match split_file.exists() {
        true => load_split(&split_file, nodes, watch)?,
        false => drawn(nodes, options.seed),
    };
    let parts =
        NodeDatasetParts::of(files::name(folder), graph, features, (labels, classes), lists);
    let dataset = parts.into_dataset(|part| match part {
        Part::Features => features_file,
        Part::Labels => labels_file,
        Part::Splits => split_file,
    })?;
    Ok(dataset.with_notes(notes))
}

/// Loads edges as [`load`]. `nodes` defaults to the greatest id plus 1.
pub fn load_graph(
    file: impl AsRef<Path>,
    nodes: Option<usize>,
    options: &EdgeListOptions,
    watch: Watch,
) -> Result<Graph, DatasetError> {
    let file = file.as_ref();
    let lines = Lines::open_any(file, watch)?;
    let (graph, _) = read_graph(file, lines, nodes, 0, options.directed)?;
    Ok(graph)
}

/// Files that [`load`] may read.
pub fn files(folder: impl AsRef<Path>) -> Vec<PathBuf> {
    let folder = folder.as_ref();
    let stems = [("edges", false), ("features", true), ("labels", true)];
    let files = stems.into_iter().flat_map(|(stem, arrays)| names(folder, stem, arrays));
    files.chain([folder.join(SPLIT)]).collect()
}

fn names(folder: &Path, stem: &str, arrays: bool) -> impl Iterator<Item = PathBuf> {
    let endings = TEXT_ENDINGS.into_iter().chain(arrays.then_some(ARRAY_ENDING));
    endings.map(move |ending| folder.join(format!("{stem}.{ending}")))
}

fn find(folder: &Path, stem: &str, arrays: bool) -> Result<PathBuf, DatasetError> {
    let mut found = names(folder, stem, arrays).filter(|file| file.exists());
    match (found.next(), found.next()) {
        (Some(file), None) => Ok(file),
        (Some(one), Some(other)) => {
            Err(bad(&other)(format!("is there beside {}; keep one", files::name(&one))))
        }
        (None, _) => Err(bad(folder)(format!("has no {stem}.csv; {HINT}"))),
    }
}

fn is_array(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ending == ARRAY_ENDING)
}

fn load_labels(file: &Path, watch: Watch) -> Result<(Labels, usize, usize), DatasetError> {
    if is_array(file) {
        return files::read_npy(file, watch, |array| {
            let nodes = array.shape().first().copied().unwrap_or(0);
            let (labels, classes) = read_labels(array, nodes)?;
            Ok((labels, classes, nodes))
        });
    }
    let what = format!("is no class; {CLASS_NEEDED}, or a 0 or 1 per class");
    let lines = Lines::open_any(file, watch)?;
    let (numbers, width, nodes) = rows::<Class>(lines, None, &what)?;
    let labels = labels_of_rows(numbers, width, |row| format!("node {row}"));
    let (labels, classes) = labels.map_err(bad(file))?;
    Ok((labels, classes, nodes))
}

fn fields(line: &str) -> impl Iterator<Item = &str> {
    let comma = line.contains(',');
    let commas = comma.then(|| line.split(',').map(str::trim));
    let spaces = (!comma).then(|| line.split_whitespace());
    commas.into_iter().flatten().chain(spaces.into_iter().flatten())
}

fn advance(lines: &mut Lines, first: &mut bool) -> Result<bool, DatasetError> {
    while lines.advance()? {
        let line = lines.text().trim_start();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let is_number =
            |field: &str| field.parse::<Class>().is_ok() || field.parse::<f64>().is_ok();
        if !std::mem::replace(first, false) || fields(line).any(is_number) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn rows<T: std::str::FromStr>(
    mut lines: Lines,
    expected: Option<usize>,
    what: &str,
) -> Result<(Vec<T>, usize, usize), DatasetError> {
    let (mut all, mut width, mut count) = (Vec::new(), 0, 0);
    let mut first = true;
    while advance(&mut lines, &mut first)? {
        let found = fields(lines.text()).count();
        if count == 0 {
            width = found;
            let least = expected.unwrap_or(1);
            let bytes = memory::product(&[least, width, size_of::<T>()]);
            lines.check(format_args!("a table of {least} rows and {width} columns"), bytes)?;
        } else if found != width {
            return Err(lines.wrong(&format!("has {found} fields, but the first row {width}")));
        }
        if expected == Some(count) {
            return Err(lines.wrong(&format!("exceeds the {count} nodes that have labels")));
        }
        lines.make_room(&mut all, width)?;
        for field in fields(lines.text()) {
            match field.parse() {
                Ok(number) => all.push(number),
                Err(_) => return Err(lines.wrong(what)),
            }
        }
        count += 1;
    }
    match expected {
        Some(rows) if rows != count => {
            Err(lines.wrong(&format!("is the last: {count} rows for {rows} nodes with labels")))
        }
        _ if count == 0 => Err(lines.wrong("is the last, but there are no rows")),
        _ => Ok((all, width, count)),
    }
}

fn read_graph(
    file: &Path,
    mut lines: Lines,
    nodes: Option<usize>,
    reserved: u128,
    directed: bool,
) -> Result<(Graph, Vec<String>), DatasetError> {
    let (mut edges, mut zeros, mut greatest) = (Vec::new(), 0, None);
    let mut first = true;
    while advance(&mut lines, &mut first)? {
        let Some((source, target, weight)) = edge(lines.text()) else {
            return Err(lines.wrong("is not source,target or source,target,weight"));
        };
        let larger = source.max(target);
        if let Some(nodes) = nodes.filter(|&nodes| larger as usize >= nodes) {
            return Err(lines.wrong(&format!("has node {larger}, which is not below {nodes}")));
        }
        greatest = greatest.max(Some(larger));
        if weight == 0.0 {
            zeros += 1;
            continue;
        }
        lines.make_room(&mut edges, 1)?;
        edges.push((source, target));
    }
    let notes = match zeros {
        0 => Vec::new(),
        count => vec![zeros_note(&files::name(file), count)],
    };
    let counted = greatest.map_or(0, |node: u32| node as usize + 1);
    let nodes = nodes.unwrap_or(counted);
    let graph = build_graph(file, nodes, edges, reserved, directed)?;
    Ok((graph, notes))
}

fn edge(line: &str) -> Option<(u32, u32, f64)> {
    let mut fields = fields(line);
    let (source, target) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let weight: f64 = fields.next().map_or(Some(1.0), |field| field.parse().ok())?;
    (fields.next().is_none() && weight.is_finite()).then_some((source, target, weight))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rstest::{fixture, rstest};

    use super::*;
    use crate::datasets::scratch::{Folder, empty_folder, ids, weights, write_arrays, write_gz};

    const FILES: [(&str, &str); 3] = [
        ("edges.csv", "source,target,weight\n0,1,0.5\n\n# two\n1,2,-3\n 3 , 0 , 0\n"),
        ("features.csv", "a,b\n1.0,2.5\n-3,4e-1\n5,6\n7,8\n"),
        ("labels.csv", "# classes\nlabel\n1\n0\n2.0\nTrue\n"),
    ];

    const FEATURES: [f32; 8] = [1.0, 2.5, -3.0, 0.4, 5.0, 6.0, 7.0, 8.0];

    #[fixture]
    fn folder(empty_folder: Folder) -> Folder {
        for (file, text) in FILES {
            fs::write(empty_folder.0.join(file), text).unwrap();
        }
        empty_folder
    }

    fn read(folder: &Folder) -> Result<NodeDataset, DatasetError> {
        let options = EdgeListOptions { directed: true, seed: 4 };
        load(&folder.0, &options, &mut |_, done, size| assert!(done <= size))
    }

    fn is_expected(data: &NodeDataset) {
        let rows = [0, 1, 2, 3].map(|node| data.graph().neighbors(node).to_vec());
        assert_eq!(rows, [vec![], vec![0], vec![1], vec![]]);
        assert_eq!(data.features(), FEATURES);
        assert_eq!(data.labels(), &Labels::Classes(vec![1, 0, 2, 1]));
        assert_eq!(data.classes(), 3);
    }

    #[rstest]
    fn a_folder_of_text_loads(folder: Folder) {
        let data = read(&folder).unwrap();
        is_expected(&data);
        assert_eq!(data.notes(), ["edges.csv: 1 stored zeros skipped, since they are not edges"]);
        assert_eq!((data.train().len(), data.val().len(), data.test().len()), (2, 1, 1));
        assert_eq!(data.train(), read(&folder).unwrap().train());
        let symmetric = load(&folder.0, &EdgeListOptions::default(), &mut |_, _, _| {}).unwrap();
        assert_eq!(symmetric.graph().neighbors(1), [0, 2]);
        let lists = vec![("train", ids(&[3])), ("val", ids(&[1])), ("test", ids(&[0, 2]))];
        write_arrays(folder.0.join("split.npz"), &lists);
        assert_eq!(read(&folder).unwrap().train(), [3]);
    }

    #[rstest]
    #[case::tabs("tsv", ",", "\t")]
    #[case::spaces("txt", ",", "  ")]
    #[case::lines_of_windows("csv", "\n", "\r\n")]
    fn every_separator_is_read(
        folder: Folder,
        #[case] ending: &str,
        #[case] from: &str,
        #[case] to: &str,
        #[values(false, true)] packed: bool,
    ) {
        for (file, text) in FILES {
            let path = folder.0.join(file);
            fs::remove_file(&path).unwrap();
            let text = text.replace(" , ", ",").replace(from, to);
            match packed {
                true => write_gz(path.with_extension(format!("{ending}.gz")), &text),
                false => fs::write(path.with_extension(ending), &text).unwrap(),
            }
        }
        is_expected(&read(&folder).unwrap());
    }

    #[rstest]
    fn arrays_and_sets_are_read(folder: Folder) {
        for file in ["features.csv", "labels.csv"] {
            fs::remove_file(folder.0.join(file)).unwrap();
        }
        let numbers = weights("(4, 2)", &FEATURES.map(f64::from));
        fs::write(folder.0.join("features.npy"), numbers).unwrap();
        fs::write(folder.0.join("labels.npy"), ids(&[1, 0, 2, 1])).unwrap();
        is_expected(&read(&folder).unwrap());
        fs::remove_file(folder.0.join("labels.npy")).unwrap();
        fs::write(folder.0.join("labels.txt"), "0 1\n1 1\n0 0\n1 0\n").unwrap();
        let data = read(&folder).unwrap();
        let sets = vec![false, true, true, true, false, false, true, false];
        assert_eq!((data.labels(), data.classes()), (&Labels::Sets(sets), 2));
    }

    #[rstest]
    #[case::one_field("edges.csv", "0,1\n2\n", "line 2 is not source,target")]
    #[case::four_fields("edges.csv", "0,1,1,1\n", "line 1 is not source,target")]
    #[case::negative("edges.csv", "0,-1\n", "line 1 is not source,target")]
    #[case::second_header("edges.csv", "a,b\na,b\n", "line 2 is not source,target")]
    #[case::node("edges.csv", "# x\n0,1\n4,0\n", "line 3 has node 4")]
    #[case::weight("edges.csv", "0,1,inf\n", "line 1")]
    #[case::empty("edges.csv", "", "is empty")]
    #[case::features("features.csv", "1,2\n3,x\n5,6\n7,8\n", "line 2 is not a list of numbers")]
    #[case::ragged("features.csv", "1,2\n3\n5,6\n7,8\n", "line 2 has 1 fields")]
    #[case::few("features.csv", "1,2\n3,4\n5,6\n", "3 rows for 4 nodes")]
    #[case::many("features.csv", "1\n2\n3\n4\n5\n", "line 5 exceeds the 4 nodes")]
    #[case::infinite("features.csv", "1\n2\ninf\n4\n", "node 2 is not finite")]
    #[case::no_rows("labels.csv", "label\n", "no rows")]
    #[case::label("labels.csv", "1\n0\n0.5\n0\n", "line 3 is no class")]
    #[case::set("labels.csv", "1,0\n0,2\n0,0\n0,0\n", "node 1 has 2, neither")]
    #[case::stray("labels.csv", "1\n0\n9\n0\n", "node 2 has class 9")]
    fn broken_files_are_named(
        folder: Folder,
        #[case] file: &str,
        #[case] text: &str,
        #[case] word: &str,
    ) {
        fs::write(folder.0.join(file), text).unwrap();
        let error = read(&folder).unwrap_err().to_string();
        assert!(error.contains(file) && error.contains(word), "{error}");
        assert!(!error.contains(char::is_control), "{error}");
    }

    #[rstest]
    fn files_are_there_once(
        folder: Folder,
        #[values("edges.csv", "features.csv", "labels.csv")] file: &str,
    ) {
        let path = folder.0.join(file);
        write_gz(path.with_extension("tsv.gz"), "0\n");
        assert!(read(&folder).unwrap_err().to_string().contains("keep one"));
        fs::remove_file(path.with_extension("tsv.gz")).unwrap();
        fs::remove_file(&path).unwrap();
        let error = read(&folder).unwrap_err().to_string();
        assert!(error.contains(file) && error.contains("split.npz"), "{error}");
    }

    #[rstest]
    fn graphs_are_read_alone(folder: Folder) {
        let file = folder.0.join("edges.csv");
        let options = EdgeListOptions { directed: true, seed: 0 };
        let graph = |nodes| load_graph(&file, nodes, &options, &mut |_, _, _| {});
        assert_eq!((graph(None).unwrap().nodes(), graph(None).unwrap().edges()), (4, 2));
        assert_eq!(graph(Some(9)).unwrap().nodes(), 9);
        assert!(graph(Some(3)).unwrap_err().to_string().contains("line 6 has node 3"));
        fs::write(&file, "4294967295 0\n").unwrap();
        assert!(graph(None).unwrap_err().to_string().contains("edges.csv"));
        fs::write(&file, "# nothing\n").unwrap();
        assert_eq!(graph(None).unwrap().nodes(), 0);
    }
}
