//! Small folders written by hand, whole and broken.
use std::fs;

use super::*;
use crate::datasets::{
    Labels,
    scratch::{Folder, write_npy, write_npz},
};

/// The path 0 – 1 – 2 with two features.
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
    assert_eq!(data.graph().neighbours(1), [0, 2]);
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
    ] {
        fs::write(bad.0.join("class_map.json"), labels).unwrap();
        assert!(message(&bad).contains("class_map.json"), "{labels}");
    }

    let bad = folder("splits");
    for roles in [
        r#"{"tr": [0], "va": [2], "te": [7]}"#,
        r#"{"tr": [0], "va": [0], "te": [1]}"#,
        r#"{"tr": [0]}"#,
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
    let members = [0, 0, 0, 0, 1, 0, 1, 0, 1].map(|x| x == 1);
    assert_eq!(data.classes(), 3);
    assert_eq!(data.labels(), &Labels::Sets(members.to_vec()));
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
