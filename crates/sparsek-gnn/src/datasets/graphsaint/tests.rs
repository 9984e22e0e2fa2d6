use std::fs;

use super::*;
use crate::datasets::{
    Labels,
    scratch::{Folder, write_npy, write_npz},
};

fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    let path = &folder.0;
    write_npz(
        path.join("adj_full.npz"),
        &[0, 1, 3, 4],
        &[1, 0, 2, 1],
        [3, 3],
    );
    write_npy(
        path.join("feats.npy"),
        &[3, 2],
        &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    );
    fs::write(path.join("class_map.json"), r#"{"0": 1, "1": 0, "2": 1}"#).unwrap();
    fs::write(
        path.join("role.json"),
        r#"{"tr": [0], "va": [2], "te": [1]}"#,
    )
    .unwrap();
    folder
}

fn read(folder: &Folder) -> Result<NodeDataset, DatasetError> {
    load(&folder.0, &mut |_, _, _| {})
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
        (
            data.nodes(),
            data.graph().edges(),
            data.classes(),
            data.feature_width()
        ),
        (3, 4, 2, 2)
    );
    assert_eq!(data.graph().neighbors(1), [0, 2]);
    assert_eq!(data.features(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(data.labels(), &Labels::Classes(vec![1, 0, 1]));
    assert_eq!(data.test(), [1]);
}

#[test]
fn every_missing_file_is_named() {
    for file in ["adj_full.npz", "feats.npy", "class_map.json", "role.json"] {
        let folder = folder("missing");
        fs::remove_file(folder.0.join(file)).unwrap();
        assert!(message(&folder).contains(file));
    }
}

#[test]
fn every_truncation_is_an_error() {
    for file in ["adj_full.npz", "feats.npy", "class_map.json", "role.json"] {
        let folder = folder("truncated");
        let bytes = fs::read(folder.0.join(file)).unwrap();
        for len in 0..bytes.len() {
            fs::write(folder.0.join(file), &bytes[..len]).unwrap();
            assert!(message(&folder).contains(file), "{file} cut to {len} bytes");
        }
    }
}

#[test]
fn no_flipped_byte_panics() {
    for file in ["adj_full.npz", "feats.npy"] {
        let folder = folder("flipped");
        let bytes = fs::read(folder.0.join(file)).unwrap();
        for at in 0..bytes.len() {
            let mut broken = bytes.clone();
            broken[at] ^= 0xff;
            fs::write(folder.0.join(file), broken).unwrap();
            let _ = read(&folder);
        }
    }
}

#[test]
fn bad_graphs_labels_and_splits_are_named() {
    let bad = folder("graph");
    write_npz(
        bad.0.join("adj_full.npz"),
        &[0, 1, 3, 4],
        &[1, 0, 3, 1],
        [3, 3],
    );
    assert!(message(&bad).contains("adj_full.npz"));
    write_npz(
        bad.0.join("adj_full.npz"),
        &[0, 3, 1, 4],
        &[1, 0, 2, 1],
        [3, 3],
    );
    assert!(message(&bad).contains("adj_full.npz"));
    write_npz(
        bad.0.join("adj_full.npz"),
        &[0, 1, 3, 4],
        &[1, 0, -2, 1],
        [3, 3],
    );
    assert!(message(&bad).contains("-2"));
    write_npz(
        bad.0.join("adj_full.npz"),
        &[0, 1, 3, 4, 4],
        &[1, 0, 2, 1],
        [4, 4],
    );
    assert!(message(&bad).contains("feats.npy"));

    let bad = folder("labels");
    for labels in [
        r#"{"0": 4000000000, "1": 0, "2": 1}"#,
        r#"{"0": 1, "1": 0}"#,
        r#"{"0": 1, "1": 0, "2": 1, "02": 1}"#,
        r#"{"0": [1, 0], "1": [0, 1], "2": [1]}"#,
        r#"{"0": [1, 0], "1": [0, 2], "2": [1, 1]}"#,
        r#"{"0": [1, 0], "1": 1, "2": [1, 1]}"#,
        r#"{"0": 1, "1": 0, "2": 1} 5"#,
        r#"{"0": 1.5, "1": 0, "2": 1}"#,
        r#"{"0": -1, "1": 0, "2": 1}"#,
        r#"{"0": 1e300, "1": 0, "2": 1}"#,
        r#"{"0": "1", "1": 0, "2": 1}"#,
        r#"{"0": null, "1": 0, "2": 1}"#,
        r#"{"0": [2], "1": [0, 1], "2": [1]}"#,
        r#"{"0": [2, 1], "1": [0, 1], "2": [1, 1]}"#,
        r#"{"0": [], "1": [], "2": [], "": 4}"#,
        r#"{"0": [], "1": [], "2": []}"#,
        r#"{"0": 1, "1": 0, "2": 1, "0": 1}"#,
        "[1, 0, 1, 0, 1, 0, 1, 0, 1, 0]",
        "{}",
    ] {
        fs::write(bad.0.join("class_map.json"), labels).unwrap();
        assert!(message(&bad).contains("class_map.json"), "{labels}");
    }

    let bad = folder("splits");
    for roles in [
        r#"{"tr": [0], "va": [2], "te": [7]}"#,
        r#"{"tr": [0], "va": [0], "te": [1]}"#,
        r#"{"tr": [0]}"#,
        r#"{"tr": [0], "va": [2], "te": []}"#,
        r#"{"tr": [0], "va": [2], "te": [1], "tr": [0]}"#,
        r#"{"tr": [0, 0, 0, 0], "va": [2], "te": [1]}"#,
        r#"{"tr": [[[[0]]]], "va": [2], "te": [1]}"#,
        r#"{"tr": [-1], "va": [2], "te": [1]}"#,
        r#"{"tr": 0, "va": [2], "te": [1]}"#,
    ] {
        fs::write(bad.0.join("role.json"), roles).unwrap();
        assert!(message(&bad).contains("role.json"), "{roles}");
    }
}

#[test]
fn nodes_may_have_several_classes() {
    let folder = folder("sets");
    let sets = r#"{"2": [1, 0, 1], "0": [0, 0, 0], "1": [0, 1.0, 0]}"#;
    fs::write(folder.0.join("class_map.json"), sets).unwrap();
    let data = read(&folder).unwrap();
    let sets = [0, 0, 0, 0, 1, 0, 1, 0, 1].map(|x| x == 1);
    assert_eq!(data.classes(), 3);
    assert_eq!(data.labels(), &Labels::Sets(sets.to_vec()));
}

#[test]
fn a_missing_folder_says_where_to_get_it() {
    let error = load("no/such/flickr", &mut |_, _, _| {})
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("no/such/flickr") && error.contains("https://"),
        "{error}"
    );
}

#[test]
fn reading_is_watched_to_the_end() {
    let folder = folder("watched");
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

#[test]
fn classes_may_be_floats_truth_values_or_lists_of_one() {
    let folder = folder("spellings");
    for labels in [
        r#"{"0": 1.0, "1": 0, "2": 1}"#,
        r#"{"0": true, "1": false, "2": true}"#,
        r#"{"0": [1], "1": [0], "2": [1.0]}"#,
        r#"{"0": [true], "1": -0.0, "2": 1}"#,
    ] {
        fs::write(folder.0.join("class_map.json"), labels).unwrap();
        let data = read(&folder).unwrap();
        assert_eq!(data.labels(), &Labels::Classes(vec![1, 0, 1]), "{labels}");
        assert_eq!(data.classes(), 2, "{labels}");
    }
    let sets = r#"{"0": [true, false], "1": [0, 1], "2": [1, 1]}"#;
    fs::write(folder.0.join("class_map.json"), sets).unwrap();
    let sets = [1, 0, 0, 1, 1, 1].map(|x| x == 1);
    let data = read(&folder).unwrap();
    assert_eq!(data.labels(), &Labels::Sets(sets.to_vec()));
}

#[test]
fn one_stray_class_is_named() {
    let nodes = 60_000usize;
    let folder = folder("stray");
    let indptr = vec![0; nodes + 1];
    let shape = [nodes as i64; 2];
    write_npz(folder.0.join("adj_full.npz"), &indptr, &[], shape);
    let features = vec![1.0; nodes];
    write_npy(folder.0.join("feats.npy"), &[nodes as u64, 1], &features);
    let class = |node: usize| if node == 9 { nodes - 1 } else { node % 3 };
    let labels: Vec<String> = (0..nodes)
        .map(|node| format!("\"{node}\": {}", class(node)))
        .collect();
    let labels = format!("{{{}}}", labels.join(", "));
    fs::write(folder.0.join("class_map.json"), labels).unwrap();
    let found = message(&folder);
    for word in ["class_map.json", "node 9 ", "59999", "only 4 ", "renumber"] {
        assert!(found.contains(word), "{found}");
    }
}

#[test]
fn hostile_json_is_one_short_line() {
    let long = "x\\u001b[2J".repeat(1 << 16);
    let deep = "[".repeat(1 << 20);
    for file in ["class_map.json", "role.json"] {
        let folder = folder("hostile");
        for text in [
            format!(r#"{{"{long}": 1, "1": 0, "2": 1}}"#),
            format!(r#"{{"0": "{long}", "tr": "{long}", "va": [2], "te": [1]}}"#),
            format!(r#"{{"0": {deep}"#),
            format!(r#"{{"tr": {deep}"#),
            deep.clone(),
        ] {
            fs::write(folder.0.join(file), text).unwrap();
            let found = message(&folder);
            assert!(found.contains(file) && found.len() < 2000, "{found}");
            assert!(!found.contains(char::is_control), "{found:?}");
        }
    }
}
