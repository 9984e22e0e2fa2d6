//! Small folders written by hand, whole and broken.
use super::*;
use crate::datasets::scratch::{Folder, write_gz};

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

fn folder(name: &str) -> Folder {
    let folder = Folder::new(&format!("ogb-{name}"));
    for (name, text) in FILES {
        write(&folder, name, text);
    }
    folder
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

#[test]
fn a_whole_folder_loads() {
    let folder = folder("whole");
    let data = read(&folder).unwrap();
    assert_eq!(
        (data.nodes(), data.graph().edges(), data.classes()),
        (4, 4, 3)
    );
    assert_eq!(data.graph().neighbours(1), [0, 2]);
    assert_eq!(data.features(), [1.0, 2.5, -3.0, 0.4, 5.0, 6.0, 7.0, 8.0]);
    assert_eq!(data.labels(), &Labels::Classes(vec![1, 0, 2, 0]));
    assert_eq!(
        (data.train(), data.val(), data.test()),
        (&[0][..], &[2][..], &[1, 3][..])
    );

    let options = OgbOptions {
        directed: true,
        split: Some("first".to_string()),
    };
    let data = load(&folder.0, &options, &mut |_, _, _| {}).unwrap();
    assert_eq!(data.graph().neighbours(0), [0u32; 0]);
    assert_eq!(data.graph().neighbours(1), [0, 2]);
}

#[test]
fn features_of_edges_stand_in_for_those_of_nodes() {
    let folder = folder("edge-features");
    fs::remove_file(folder.0.join("raw/node-feat.csv.gz")).unwrap();
    write(&folder, "raw/edge-feat", "1,2\n4,0\n7,1\n");
    write(&folder, "raw/node-label", "1,0\n0,0\n1,1\n0,1\n");
    let data = read(&folder).unwrap();
    assert_eq!(data.features(), [1.0, 2.0, 4.0, 1.0, 5.5, 0.5, 0.0, 0.0]);
    let members = [1, 0, 0, 0, 1, 1, 0, 1].map(|x| x == 1);
    assert_eq!(
        (data.labels(), data.classes()),
        (&Labels::Sets(members.to_vec()), 2)
    );
    write(&folder, "raw/edge-feat", "1,2\n4,0\n7\n");
    assert!(message(&folder).contains("line 3"));
}

#[test]
fn every_fault_names_its_file_and_line() {
    for (name, text, word) in [
        ("raw/num-node-list", "5\n", "4 lines"),
        ("raw/num-node-list", "3\n", "more than"),
        ("raw/num-node-list", "99999999999\n", "2147479552"),
        ("raw/num-edge-list", "4\n", "3 edges"),
        ("raw/edge", "0,1\n1,4\n2,1\n", "line 2"),
        ("raw/edge", "0,1\n1\n2,1\n", "line 2"),
        ("raw/node-feat", "1,2\n3,4\n5,x\n7,8\n", "line 3"),
        ("raw/node-feat", "1,2\n3,4\n5\n7,8\n", "line 3"),
        ("raw/node-feat", "1,2\n3,4\n5,nan\n7,8\n", "finite"),
        ("raw/node-label", "1\n0\n9\n0\n", "class 9"),
        ("raw/node-label", "1,0\n0,1\n3,0\n0,0\n", "line 3"),
        ("raw/node-label", "1\n0\n-1\n0\n", "line 3"),
        ("raw/node-label", "1\n0\nnan\n0\n", "line 3 is no class"),
        ("raw/node-label", "1\n0\n0.5\n0\n", "line 3 is no class"),
        ("raw/node-label", "1\n0\n\n0\n", "line 3 is no class"),
        ("split/first/train", "zero\n", "line 1"),
        ("split/first/train", "2\n", "again"),
        ("split/first/train", "7\n", "7"),
        ("split/first/train", "0\n0\n0\n0\n0\n", "line 5"),
        ("raw/num-node-list", "18446744073709551615\n", "2147479552"),
        ("raw/num-node-list", "18446744073709551616\n", "line 1"),
    ] {
        let folder = folder("faults");
        write(&folder, name, text);
        let found = message(&folder);
        assert!(found.contains(word), "{name} {text:?}: {found}");
    }
}

#[test]
fn every_missing_file_is_named() {
    for (name, _) in FILES
        .iter()
        .filter(|(name, _)| *name != "raw/num-edge-list")
    {
        let folder = folder("missing");
        fs::remove_file(folder.0.join(format!("{name}.csv.gz"))).unwrap();
        let found = message(&folder);
        assert!(found.contains(name), "{name}: {found}");
    }
    let folder = folder("splits");
    write(&folder, "split/second/train", "0\n");
    assert!(message(&folder).contains("first, second"));
}

#[test]
fn every_truncation_is_an_error() {
    for (name, _) in FILES {
        let folder = folder("truncated");
        let file = folder.0.join(format!("{name}.csv.gz"));
        let bytes = fs::read(&file).unwrap();
        for len in 0..bytes.len() {
            fs::write(&file, &bytes[..len]).unwrap();
            let found = message(&folder);
            assert!(
                found.contains(".csv.gz") || found.contains("split"),
                "{found}"
            );
        }
    }
}

#[test]
fn a_missing_folder_says_where_to_get_it() {
    let error = |path| {
        let found = load(path, &OgbOptions::default(), &mut |_, _, _| {});
        found.unwrap_err().to_string()
    };
    let products = "http://snap.stanford.edu/ogb/data/nodeproppred/products.zip";
    assert!(error("no/ogbn_products").contains(products));
    assert!(error("no/such").contains("https://ogb.stanford.edu"));
}

#[test]
fn classes_may_be_floats_or_truth_values() {
    let folder = folder("spellings");
    for labels in ["1.0\n0.0\n2.0\n0.0\n", "true\nFalse\n2\n0\n"] {
        write(&folder, "raw/node-label", labels);
        let data = read(&folder).unwrap();
        assert_eq!(data.labels(), &Labels::Classes(vec![1, 0, 2, 0]));
        assert_eq!(data.classes(), 3);
    }
}

#[test]
fn one_stray_class_is_named() {
    let folder = folder("stray");
    let mut labels = vec!["3"; 60_000];
    labels[20] = "59999";
    write(&folder, "raw/num-node-list", "60000\n");
    write(&folder, "raw/node-label", &labels.join("\n"));
    let found = message(&folder);
    for word in ["node-label", "line 21 ", "59999", "only 2 ", "renumber"] {
        assert!(found.contains(word), "{found}");
    }
}

#[test]
fn declared_sizes_are_not_allocated() {
    // 2^31 rows as wide as a line can be: more than any machine has.
    let folder = folder("declared");
    write(&folder, "raw/num-node-list", "2147479552\n");
    let wide = "1,".repeat(1 << 18) + "1\n";
    write(&folder, "raw/node-label", &wide);
    let found = message(&folder);
    for word in [
        "node-label",
        "2147479552 rows and 262145 columns",
        "SPARSEK_MAX_MEMORY",
    ] {
        assert!(found.contains(word), "{found}");
    }
}

#[test]
fn lists_that_the_limit_forbids_do_not_grow() {
    let folder = folder("growth");
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

#[test]
fn names_reach_no_terminal_as_commands() {
    let folder = folder("names");
    for split in ["a\x1b[2J", "b\nc"] {
        fs::create_dir(folder.0.join("split").join(split)).unwrap();
    }
    let found = message(&folder);
    assert!(found.contains("3 splits"), "{found}");
    assert!(!found.contains(char::is_control), "{found:?}");
}
