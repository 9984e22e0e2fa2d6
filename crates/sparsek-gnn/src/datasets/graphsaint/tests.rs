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
    write_npz(path.join("adj_full.npz"), &[0, 1, 3, 4], &[1, 0, 2, 1], [3, 3]);
    write_npy(path.join("feats.npy"), &[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    fs::write(path.join("class_map.json"), r#"{"0": 1, "1": 0, "2": 1}"#).unwrap();
    fs::write(path.join("role.json"), r#"{"tr": [0], "va": [2], "te": [1]}"#).unwrap();
    empty_folder
}

fn read(folder: &Folder) -> Result<NodeDataset, DatasetError> {
    load(&folder.0, &mut |_, _, _| {})
}

fn message(folder: &Folder) -> String {
    let message = read(folder).unwrap_err().to_string();
    assert!(!message.contains('\n'), "{message}");
    message
}

#[rstest]
fn a_whole_folder_loads(folder: Folder) {
    let data = read(&folder).unwrap();
    assert_eq!(
        (data.nodes(), data.graph().edges(), data.classes(), data.feature_width()),
        (3, 4, 2, 2)
    );
    assert_eq!(data.graph().neighbors(1), [0, 2]);
    assert_eq!(data.features(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(data.labels(), &Labels::Classes(vec![1, 0, 1]));
    assert_eq!(data.test(), [1]);
}

#[rstest]
fn every_missing_file_is_named(
    folder: Folder,
    #[values("adj_full.npz", "feats.npy", "class_map.json", "role.json")] file: &str,
) {
    fs::remove_file(folder.0.join(file)).unwrap();
    assert!(message(&folder).contains(file));
}

#[rstest]
fn every_truncation_is_an_error(
    folder: Folder,
    #[values("adj_full.npz", "feats.npy", "class_map.json", "role.json")] file: &str,
) {
    let bytes = fs::read(folder.0.join(file)).unwrap();
    for len in 0..bytes.len() {
        fs::write(folder.0.join(file), &bytes[..len]).unwrap();
        assert!(message(&folder).contains(file), "cut to {len} bytes");
    }
}

#[rstest]
fn no_flipped_byte_panics(folder: Folder, #[values("adj_full.npz", "feats.npy")] file: &str) {
    let bytes = fs::read(folder.0.join(file)).unwrap();
    for at in 0..bytes.len() {
        let mut broken = bytes.clone();
        broken[at] ^= 0xff;
        fs::write(folder.0.join(file), broken).unwrap();
        let _ = read(&folder);
    }
}

#[rstest]
#[case::column(&[0, 1, 3, 4], &[1, 0, 3, 1], 3, "adj_full.npz")]
#[case::decreasing(&[0, 3, 1, 4], &[1, 0, 2, 1], 3, "adj_full.npz")]
#[case::negative(&[0, 1, 3, 4], &[1, 0, -2, 1], 3, "-2")]
#[case::more_nodes_than_features(&[0, 1, 3, 4, 4], &[1, 0, 2, 1], 4, "feats.npy")]
fn bad_graphs_are_named(
    folder: Folder,
    #[case] indptr: &[i32],
    #[case] indices: &[i32],
    #[case] nodes: i64,
    #[case] word: &str,
) {
    write_npz(folder.0.join("adj_full.npz"), indptr, indices, [nodes, nodes]);
    assert!(message(&folder).contains(word));
}

#[rstest]
#[case::large(r#"{"0": 4000000000, "1": 0, "2": 1}"#)]
#[case::missing(r#"{"0": 1, "1": 0}"#)]
#[case::twice(r#"{"0": 1, "1": 0, "2": 1, "02": 1}"#)]
#[case::short_set(r#"{"0": [1, 0], "1": [0, 1], "2": [1]}"#)]
#[case::no_truth_value(r#"{"0": [1, 0], "1": [0, 2], "2": [1, 1]}"#)]
#[case::class_among_sets(r#"{"0": [1, 0], "1": 1, "2": [1, 1]}"#)]
#[case::trailing(r#"{"0": 1, "1": 0, "2": 1} 5"#)]
#[case::fraction(r#"{"0": 1.5, "1": 0, "2": 1}"#)]
#[case::negative(r#"{"0": -1, "1": 0, "2": 1}"#)]
#[case::large(r#"{"0": 1e300, "1": 0, "2": 1}"#)]
#[case::text(r#"{"0": "1", "1": 0, "2": 1}"#)]
#[case::null(r#"{"0": null, "1": 0, "2": 1}"#)]
#[case::long_set(r#"{"0": [2], "1": [0, 1], "2": [1]}"#)]
#[case::no_truth_value(r#"{"0": [2, 1], "1": [0, 1], "2": [1, 1]}"#)]
#[case::no_node(r#"{"0": [], "1": [], "2": [], "": 4}"#)]
#[case::empty_sets(r#"{"0": [], "1": [], "2": []}"#)]
#[case::twice(r#"{"0": 1, "1": 0, "2": 1, "0": 1}"#)]
#[case::list("[1, 0, 1, 0, 1, 0, 1, 0, 1, 0]")]
#[case::empty("{}")]
fn bad_labels_are_named(folder: Folder, #[case] labels: &str) {
    fs::write(folder.0.join("class_map.json"), labels).unwrap();
    assert!(message(&folder).contains("class_map.json"));
}

#[rstest]
#[case::large(r#"{"tr": [0], "va": [2], "te": [7]}"#)]
#[case::in_two_lists(r#"{"tr": [0], "va": [0], "te": [1]}"#)]
#[case::missing(r#"{"tr": [0]}"#)]
#[case::empty(r#"{"tr": [0], "va": [2], "te": []}"#)]
#[case::two_lists(r#"{"tr": [0], "va": [2], "te": [1], "tr": [0]}"#)]
#[case::repeated(r#"{"tr": [0, 0, 0, 0], "va": [2], "te": [1]}"#)]
#[case::nested(r#"{"tr": [[[[0]]]], "va": [2], "te": [1]}"#)]
#[case::negative(r#"{"tr": [-1], "va": [2], "te": [1]}"#)]
#[case::number(r#"{"tr": 0, "va": [2], "te": [1]}"#)]
fn bad_splits_are_named(folder: Folder, #[case] roles: &str) {
    fs::write(folder.0.join("role.json"), roles).unwrap();
    assert!(message(&folder).contains("role.json"));
}

#[rstest]
fn nodes_may_have_several_classes(folder: Folder) {
    let sets = r#"{"2": [1, 0, 1], "0": [0, 0, 0], "1": [0, 1.0, 0]}"#;
    fs::write(folder.0.join("class_map.json"), sets).unwrap();
    let data = read(&folder).unwrap();
    let sets = [0, 0, 0, 0, 1, 0, 1, 0, 1].map(|x| x == 1);
    assert_eq!(data.classes(), 3);
    assert_eq!(data.labels(), &Labels::Sets(sets.to_vec()));
}

#[test]
fn a_missing_folder_says_where_to_get_it() {
    let error = load("no/such/flickr", &mut |_, _, _| {}).unwrap_err().to_string();
    assert!(error.contains("no/such/flickr") && error.contains("https://"), "{error}");
}

#[rstest]
fn reading_is_watched_to_the_end(folder: Folder) {
    let mut ended = Vec::new();
    load(&folder.0, &mut |file, done, all| {
        assert!(done <= all);
        if done == all {
            ended.push(file.file_name().unwrap().to_owned());
        }
    })
    .unwrap();
    for file in ["feats.npy", "class_map.json", "role.json"] {
        assert!(ended.iter().any(|name| name == file), "{file}");
    }
}

#[rstest]
#[case::floats(r#"{"0": 1.0, "1": 0, "2": 1}"#)]
#[case::truth_values(r#"{"0": true, "1": false, "2": true}"#)]
#[case::lists(r#"{"0": [1], "1": [0], "2": [1.0]}"#)]
#[case::mixed(r#"{"0": [true], "1": -0.0, "2": 1}"#)]
fn classes_may_be_floats_truth_values_or_lists_of_one(folder: Folder, #[case] labels: &str) {
    fs::write(folder.0.join("class_map.json"), labels).unwrap();
    let data = read(&folder).unwrap();
    assert_eq!(data.labels(), &Labels::Classes(vec![1, 0, 1]));
    assert_eq!(data.classes(), 2);
}

#[rstest]
fn sets_may_be_truth_values(folder: Folder) {
    let sets = r#"{"0": [true, false], "1": [0, 1], "2": [1, 1]}"#;
    fs::write(folder.0.join("class_map.json"), sets).unwrap();
    let sets = [1, 0, 0, 1, 1, 1].map(|x| x == 1);
    let data = read(&folder).unwrap();
    assert_eq!(data.labels(), &Labels::Sets(sets.to_vec()));
}

#[rstest]
fn one_stray_class_is_named(folder: Folder) {
    let nodes = 60_000usize;
    let indptr = vec![0; nodes + 1];
    let shape = [nodes as i64; 2];
    write_npz(folder.0.join("adj_full.npz"), &indptr, &[], shape);
    let features = vec![1.0; nodes];
    write_npy(folder.0.join("feats.npy"), &[nodes as u64, 1], &features);
    let class = |node: usize| if node == 9 { nodes - 1 } else { node % 3 };
    let labels: Vec<String> =
        (0..nodes).map(|node| format!("\"{node}\": {}", class(node))).collect();
    let labels = format!("{{{}}}", labels.join(", "));
    fs::write(folder.0.join("class_map.json"), labels).unwrap();
    let found = message(&folder);
    for word in ["class_map.json", "node 9 ", "59999", "only 4 ", "renumber"] {
        assert!(found.contains(word), "{found}");
    }
}

fn long() -> String {
    "x\\u001b[2J".repeat(1 << 16)
}

fn deep() -> String {
    "[".repeat(1 << 20)
}

#[rstest]
#[case::long_key(format!(r#"{{"{}": 1, "1": 0, "2": 1}}"#, long()))]
#[case::long_values(format!(r#"{{"0": "{0}", "tr": "{0}", "va": [2], "te": [1]}}"#, long()))]
#[case::deep_label(format!(r#"{{"0": {}"#, deep()))]
#[case::deep_list(format!(r#"{{"tr": {}"#, deep()))]
#[case::deep(deep())]
fn hostile_json_is_one_short_line(
    folder: Folder,
    #[values("class_map.json", "role.json")] file: &str,
    #[case] text: String,
) {
    fs::write(folder.0.join(file), text).unwrap();
    let found = message(&folder);
    assert!(found.contains(file) && found.len() < 2000, "{found}");
    assert!(!found.contains(char::is_control), "{found:?}");
}
