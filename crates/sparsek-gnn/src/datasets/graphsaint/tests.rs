//! Small folders written by hand, whole and broken.
use std::{fs, path::PathBuf};

use npyz::WriterBuilder;

use super::*;

/// A folder that is removed when dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn write_npz(file: PathBuf, indptr: &[i32], indices: &[i32], shape: [i64; 2]) {
    let mut npz = npyz::npz::NpzWriter::create(file).unwrap();
    for (name, values) in [("indptr", indptr), ("indices", indices)] {
        let builder = npz.array::<i32>(name, Default::default()).unwrap();
        let mut writer = builder
            .default_dtype()
            .shape(&[values.len() as u64])
            .begin_nd()
            .unwrap();
        writer.extend(values.iter().copied()).unwrap();
        writer.finish().unwrap();
    }
    let mut writer = npz
        .array::<i64>("shape", Default::default())
        .unwrap()
        .default_dtype()
        .shape(&[2])
        .begin_nd()
        .unwrap();
    writer.extend(shape).unwrap();
    writer.finish().unwrap();
}

/// The path 0 – 1 – 2 with two features.
fn folder(name: &str) -> Folder {
    let path = std::env::temp_dir().join(format!("sparsek-gnn-{}-{name}", std::process::id()));
    fs::create_dir_all(&path).unwrap();
    write_npz(
        path.join("adj_full.npz"),
        &[0, 1, 3, 4],
        &[1, 0, 2, 1],
        [3, 3],
    );
    let file = File::create(path.join("feats.npy")).unwrap();
    let mut writer = npyz::WriteOptions::<f64>::new()
        .default_dtype()
        .shape(&[3, 2])
        .writer(file)
        .begin_nd()
        .unwrap();
    writer.extend([1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    writer.finish().unwrap();
    fs::write(path.join("class_map.json"), r#"{"0": 1, "1": 0, "2": 1}"#).unwrap();
    fs::write(
        path.join("role.json"),
        r#"{"tr": [0], "va": [2], "te": [1]}"#,
    )
    .unwrap();
    Folder(path)
}

fn message(folder: &Folder) -> String {
    let message = load(&folder.0).unwrap_err().to_string();
    assert!(!message.contains('\n'), "{message}");
    message
}

#[test]
fn a_whole_folder_loads() {
    let folder = folder("whole");
    let data = load(&folder.0).unwrap();
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
    assert_eq!((data.labels(), data.test()), (&[1, 0, 1][..], &[1][..]));
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
            let _ = load(&folder.0);
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
    fs::write(
        bad.0.join("class_map.json"),
        r#"{"0": [1, 0], "1": [0, 1], "2": [1, 1]}"#,
    )
    .unwrap();
    assert!(matches!(load(&bad.0), Err(DatasetError::MultiLabel { .. })));
    fs::write(
        bad.0.join("class_map.json"),
        r#"{"0": 4000000000, "1": 0, "2": 1}"#,
    )
    .unwrap();
    assert!(message(&bad).contains("class_map.json"));

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
