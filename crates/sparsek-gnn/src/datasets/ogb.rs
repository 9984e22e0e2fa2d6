//! Open Graph Benchmark folders.

use std::{
    fs,
    path::{Path, PathBuf},
};

use sparsek::io::{memory, text};

use super::{
    error::DatasetError,
    files::{self, Lines, NUMBERS, Watch, bad},
    labels::{CLASS_NEEDED, Class, Labels, labels_of_rows},
    matrix::build_graph,
    node_dataset::{NodeDataset, NodeDatasetParts, Part},
};
use crate::graph::MAX_SIZE;

/// OGB options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OgbOptions {
    /// Skip symmetrization, which products and proteins need.
    pub directed: bool,
    /// Folder under `split`. Default: the only one.
    pub split: Option<String>,
}

/// Loads an OGB folder, such as ogbn-arxiv (Hu et al., 2020).
///
/// - `raw/num-node-list.csv.gz`: node count.
/// - `raw/edge.csv.gz`: source and target per line; optional `raw/num-edge-list.csv.gz` counts
///   them.
/// - `raw/node-feat.csv.gz`: features per line; else the mean of a node's edges in
///   `raw/edge-feat.csv.gz`.
/// - `raw/node-label.csv.gz`: per line a class (`2`, `2.0` or a boolean), or a 0 or 1 per class.
/// - `split/NAME/{train,valid,test}.csv.gz`: a node per line.
pub fn load(
    folder: impl AsRef<Path>,
    options: &OgbOptions,
    watch: Watch,
) -> Result<NodeDataset, DatasetError> {
    let folder = folder.as_ref();
    let folder = files::folder(folder, &hint(folder))?;
    let raw = |name: &str| folder.join("raw").join(format!("{name}.csv.gz"));
    let nodes = load_count(&raw("num-node-list"), watch)?;
    // Labels prove `nodes`.
    let labels_file = raw("node-label");
    let (labels, classes) = load_labels(&labels_file, nodes, watch)?;
    let mut reserved = match &labels {
        Labels::Classes(all) => memory::product(&[all.len(), size_of::<u32>()]),
        Labels::Sets(all) => memory::product(&[all.len()]),
    };
    let edges = Lines::open(&raw("edge"), watch)?.beside(reserved);
    let edges = load_edges(edges, nodes)?;
    reserved += memory::product(&[edges.len(), size_of::<(u32, u32)>()]);
    if raw("num-edge-list").exists() {
        let count = load_count(&raw("num-edge-list"), watch)?;
        if count != edges.len() {
            let found = edges.len();
            return Err(bad(&raw("edge"))(format!("{found} edges instead of {count}")));
        }
    }
    let mut features_file = raw("node-feat");
    let features = if features_file.exists() || !raw("edge-feat").exists() {
        let lines = Lines::open(&features_file, watch)?.beside(reserved);
        lines.rows(nodes, NUMBERS)?
    } else {
        features_file = raw("edge-feat");
        let lines = Lines::open(&features_file, watch)?.beside(reserved);
        mean_of_edges(lines, nodes, &edges)?
    };
    reserved += memory::product(&[features.0.len(), size_of::<f32>()]);
    let graph = build_graph(&raw("edge"), nodes, edges, reserved, options.directed)?;
    let splits = split_folder(folder, options)?;
    let mut split = |name: &str| -> Result<Vec<u32>, DatasetError> {
        let mut lines = Lines::open(&splits.join(format!("{name}.csv.gz")), watch)?;
        let mut list = Vec::new();
        while let Some(line) = lines.next()? {
            let Ok(node) = line.parse() else {
                return Err(lines.wrong("is not a node"));
            };
            if list.len() == nodes {
                return Err(lines.wrong(&format!("exceeds the {nodes} nodes")));
            }
            list.push(node);
        }
        match list.is_empty() {
            true => Err(lines.wrong("is the last, but the split is empty")),
            false => Ok(list),
        }
    };
    let lists = [split("train")?, split("valid")?, split("test")?];
    let parts =
        NodeDatasetParts::of(files::name(folder), graph, features, (labels, classes), lists);
    parts.into_dataset(|part| match part {
        Part::Features => features_file,
        Part::Labels => labels_file,
        Part::Splits => splits,
    })
}

fn hint(folder: &Path) -> String {
    let name = files::name(folder).to_lowercase();
    let short = name.trim_start_matches("ogbn").trim_start_matches(['_', '-']);
    match short {
        "products" | "proteins" | "arxiv" => format!(
            "download and unpack http://snap.stanford.edu/ogb/data/nodeproppred/{short}.zip"
        ),
        _ => "see https://ogb.stanford.edu/docs/nodeprop/".to_string(),
    }
}

fn load_count(file: &Path, watch: Watch) -> Result<usize, DatasetError> {
    let (count, width) = Lines::open(file, watch)?.rows::<usize>(1, NUMBERS)?;
    match (width, count[0]) {
        (1, count) if count <= MAX_SIZE => Ok(count),
        _ => Err(bad(file)(format!("is not a number up to {MAX_SIZE}"))),
    }
}

fn load_labels(file: &Path, nodes: usize, watch: Watch) -> Result<(Labels, usize), DatasetError> {
    let what = format!("is no class; {CLASS_NEEDED}, or a 0 or 1 per class");
    let (numbers, width) = Lines::open(file, watch)?.rows::<Class>(nodes, &what)?;
    labels_of_rows(numbers, width, |row| format!("line {}", row + 1)).map_err(bad(file))
}

fn load_edges(mut lines: Lines, nodes: usize) -> Result<Vec<(u32, u32)>, DatasetError> {
    let mut edges = Vec::new();
    while let Some(line) = lines.next()? {
        let ends = line.split_once(',');
        let ends = ends.and_then(|(a, b)| Some((a.trim().parse().ok()?, b.trim().parse().ok()?)));
        match ends {
            Some((a, b)) if (a as usize) < nodes && (b as usize) < nodes => {
                lines.make_room(&mut edges, 1)?;
                edges.push((a, b));
            }
            _ => return Err(lines.wrong(&format!("is not a pair of nodes below {nodes}"))),
        }
    }
    Ok(edges)
}

fn mean_of_edges(
    mut lines: Lines,
    nodes: usize,
    edges: &[(u32, u32)],
) -> Result<(Vec<f32>, usize), DatasetError> {
    let (mut sums, mut counts) = (Vec::<f32>::new(), vec![0f32; nodes]);
    let (mut row, mut width) = (Vec::new(), 0);
    for (at, &(a, b)) in edges.iter().enumerate() {
        row.clear();
        lines.numbers::<f32>(&mut row, NUMBERS)?;
        if at == 0 {
            width = row.len();
            let bytes = memory::product(&[nodes, width, size_of::<f32>()]);
            let asked = format_args!("a mean of {width} numbers for each of {nodes} nodes");
            lines.check(asked, bytes)?;
            sums = vec![0.0; nodes * width];
        } else if row.len() != width {
            return Err(lines.wrong(&format!("does not have {width} numbers like the first")));
        }
        for end in [a as usize, b as usize] {
            counts[end] += 1.0;
            let own = &mut sums[end * width..][..width];
            own.iter_mut().zip(&row).for_each(|(sum, x)| *sum += x);
        }
    }
    lines.ends()?;
    for (row, count) in sums.chunks_exact_mut(width.max(1)).zip(counts) {
        row.iter_mut().for_each(|x| *x /= count.max(1.0));
    }
    Ok((sums, width))
}

fn split_folder(folder: &Path, options: &OgbOptions) -> Result<PathBuf, DatasetError> {
    let all = folder.join("split");
    if let Some(name) = &options.split {
        return Ok(all.join(name));
    }
    let entries =
        fs::read_dir(&all).map_err(|source| DatasetError::Io { file: all.clone(), source })?;
    let mut found: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()).collect();
    found.sort();
    match found.as_slice() {
        [only] => Ok(only.clone()),
        several => {
            let names: Vec<String> = several.iter().map(|path| files::name(path)).collect();
            let reason =
                format!("{} splits ({}); name one", names.len(), text::excerpt(&names.join(", ")));
            Err(bad(&all)(reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::{fixture, rstest};

    use super::*;
    use crate::datasets::scratch::{Folder, empty_folder, write_gz};

    const FILES: [(&str, &str); 8] = [
        ("raw/num-node-list", "4\n"),
        ("raw/num-edge-list", "3\n"),
        ("raw/edge", "0,1\n1,2\n2,1\n"),
        ("raw/node-feat", "1.0,2.5\n-3,4e-1\n5,6\n7,8\n"),
        ("raw/node-label", "1\n0\n2\n0\n"),
        ("split/first/train", "0\n"),
        ("split/first/valid", "2\n"),
        ("split/first/test", "1\n3\n"),
    ];

    #[fixture]
    fn folder(empty_folder: Folder) -> Folder {
        for (name, text) in FILES {
            write(&empty_folder, name, text);
        }
        empty_folder
    }

    fn write(folder: &Folder, name: &str, text: &str) {
        write_gz(folder.0.join(format!("{name}.csv.gz")), text);
    }

    fn read(folder: &Folder) -> Result<NodeDataset, DatasetError> {
        load(&folder.0, &OgbOptions::default(), &mut |_, _, _| {})
    }

    fn message(folder: &Folder) -> String {
        let message = read(folder).unwrap_err().to_string();
        assert!(!message.contains('\n'), "{message}");
        message
    }

    #[rstest]
    fn a_whole_folder_loads(folder: Folder) {
        let data = read(&folder).unwrap();
        assert_eq!((data.nodes(), data.graph().edges(), data.classes()), (4, 4, 3));
        assert_eq!(data.graph().neighbors(1), [0, 2]);
        assert_eq!(data.features(), [1.0, 2.5, -3.0, 0.4, 5.0, 6.0, 7.0, 8.0]);
        assert_eq!(data.labels(), &Labels::Classes(vec![1, 0, 2, 0]));
        assert_eq!((data.train(), data.val(), data.test()), (&[0][..], &[2][..], &[1, 3][..]));

        let options = OgbOptions { directed: true, split: Some("first".to_string()) };
        let data = load(&folder.0, &options, &mut |_, _, _| {}).unwrap();
        assert_eq!(data.graph().neighbors(0), [0u32; 0]);
        assert_eq!(data.graph().neighbors(1), [0, 2]);
    }

    #[rstest]
    fn features_of_edges_stand_in_for_those_of_nodes(folder: Folder) {
        fs::remove_file(folder.0.join("raw/node-feat.csv.gz")).unwrap();
        write(&folder, "raw/edge-feat", "1,2\n4,0\n7,1\n");
        write(&folder, "raw/node-label", "1,0\n0,0\n1,1\n0,1\n");
        let data = read(&folder).unwrap();
        assert_eq!(data.features(), [1.0, 2.0, 4.0, 1.0, 5.5, 0.5, 0.0, 0.0]);
        let sets = [1, 0, 0, 0, 1, 1, 0, 1].map(|x| x == 1);
        assert_eq!((data.labels(), data.classes()), (&Labels::Sets(sets.to_vec()), 2));
        write(&folder, "raw/edge-feat", "1,2\n4,0\n7\n");
        assert!(message(&folder).contains("line 3"));
    }

    #[rstest]
    #[case::nodes("raw/num-node-list", "5\n", "4 lines")]
    #[case::nodes("raw/num-node-list", "3\n", "more than")]
    #[case::nodes("raw/num-node-list", "99999999999\n", "2147479552")]
    #[case::nodes("raw/num-node-list", "18446744073709551615\n", "2147479552")]
    #[case::nodes("raw/num-node-list", "18446744073709551616\n", "line 1")]
    #[case::edges("raw/num-edge-list", "4\n", "3 edges")]
    #[case::edges("raw/edge", "0,1\n1,4\n2,1\n", "line 2")]
    #[case::edges("raw/edge", "0,1\n1\n2,1\n", "line 2")]
    #[case::features("raw/node-feat", "1,2\n3,4\n5,x\n7,8\n", "line 3")]
    #[case::features("raw/node-feat", "1,2\n3,4\n5\n7,8\n", "line 3")]
    #[case::features("raw/node-feat", "1,2\n3,4\n5,nan\n7,8\n", "finite")]
    #[case::labels("raw/node-label", "1\n0\n9\n0\n", "class 9")]
    #[case::labels("raw/node-label", "1,0\n0,1\n3,0\n0,0\n", "line 3")]
    #[case::labels("raw/node-label", "1\n0\n-1\n0\n", "line 3")]
    #[case::labels("raw/node-label", "1\n0\nnan\n0\n", "line 3 is no class")]
    #[case::labels("raw/node-label", "1\n0\n0.5\n0\n", "line 3 is no class")]
    #[case::labels("raw/node-label", "1\n0\n\n0\n", "line 3 is no class")]
    #[case::split("split/first/train", "zero\n", "line 1")]
    #[case::split("split/first/train", "2\n", "again")]
    #[case::split("split/first/train", "7\n", "7")]
    #[case::split("split/first/train", "0\n0\n0\n0\n0\n", "line 5")]
    fn every_fault_names_its_file_and_line(
        folder: Folder,
        #[case] name: &str,
        #[case] text: &str,
        #[case] word: &str,
    ) {
        write(&folder, name, text);
        let found = message(&folder);
        assert!(found.contains(word), "{found}");
    }

    #[rstest]
    fn several_splits_are_named(folder: Folder) {
        write(&folder, "split/second/train", "0\n");
        assert!(message(&folder).contains("first, second"));
    }

    #[rstest]
    fn a_file_that_is_cut_or_missing_is_named(
        folder: Folder,
        #[values(
            "raw/num-node-list",
            "raw/num-edge-list",
            "raw/edge",
            "raw/node-feat",
            "raw/node-label",
            "split/first/train",
            "split/first/valid",
            "split/first/test"
        )]
        name: &str,
    ) {
        let file = folder.0.join(format!("{name}.csv.gz"));
        let bytes = fs::read(&file).unwrap();
        for len in 0..bytes.len() {
            fs::write(&file, &bytes[..len]).unwrap();
            let found = message(&folder);
            assert!(found.contains(".csv.gz") || found.contains("split"), "{found}");
        }
        fs::remove_file(&file).unwrap();
        match name {
            "raw/num-edge-list" => assert_eq!(read(&folder).unwrap().graph().edges(), 4),
            _ => assert!(message(&folder).contains(name)),
        }
    }

    #[rstest]
    #[case::known(
        "no/ogbn_products",
        "http://snap.stanford.edu/ogb/data/nodeproppred/products.zip"
    )]
    #[case::unknown("no/such", "https://ogb.stanford.edu")]
    fn a_missing_folder_says_where_to_get_it(#[case] path: &str, #[case] url: &str) {
        let found = load(path, &OgbOptions::default(), &mut |_, _, _| {});
        assert!(found.unwrap_err().to_string().contains(url));
    }

    #[rstest]
    #[case::floats("1.0\n0.0\n2.0\n0.0\n")]
    #[case::truth_values("true\nFalse\n2\n0\n")]
    fn classes_may_be_floats_or_truth_values(folder: Folder, #[case] labels: &str) {
        write(&folder, "raw/node-label", labels);
        let data = read(&folder).unwrap();
        assert_eq!(data.labels(), &Labels::Classes(vec![1, 0, 2, 0]));
        assert_eq!(data.classes(), 3);
    }

    #[rstest]
    fn one_stray_class_is_named(folder: Folder) {
        let mut labels = vec!["3"; 60_000];
        labels[20] = "59999";
        write(&folder, "raw/num-node-list", "60000\n");
        write(&folder, "raw/node-label", &labels.join("\n"));
        let found = message(&folder);
        for word in ["node-label", "line 21 ", "59999", "only 2 ", "renumber"] {
            assert!(found.contains(word), "{found}");
        }
    }

    #[rstest]
    fn declared_sizes_are_not_allocated(folder: Folder) {
        write(&folder, "raw/num-node-list", "2147479552\n");
        let wide = "1,".repeat(1 << 18) + "1\n";
        write(&folder, "raw/node-label", &wide);
        let found = message(&folder);
        for word in ["node-label", "2147479552 rows and 262145 columns", "SPARSEK_MAX_MEMORY"] {
            assert!(found.contains(word), "{found}");
        }
    }

    #[rstest]
    fn lists_that_the_limit_forbids_do_not_grow(folder: Folder) {
        let watch = &mut |_: &Path, _, _| {};
        let lines = Lines::open(&folder.0.join("raw/edge.csv.gz"), watch).unwrap();
        let mut list = vec![[0u8; 64]];
        lines.make_room(&mut list, 3).unwrap();
        assert!(list.capacity() >= 4);
        let before = list.capacity();
        let error = lines.make_room(&mut list, usize::MAX).unwrap_err();
        assert!(matches!(error, DatasetError::Memory { .. }), "{error}");
        assert_eq!(list.capacity(), before);
    }

    #[rstest]
    fn names_reach_no_terminal_as_commands(folder: Folder) {
        for split in ["a\x1b[2J", "b\nc"] {
            fs::create_dir(folder.0.join("split").join(split)).unwrap();
        }
        let found = message(&folder);
        assert!(found.contains("3 splits"), "{found}");
        assert!(!found.contains(char::is_control), "{found:?}");
    }
}
