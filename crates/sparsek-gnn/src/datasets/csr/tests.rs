//! Small folders written by hand, whole and broken.
use std::fs;

use super::*;
use crate::datasets::scratch::{Folder, write_npy, write_npz};

fn folder(name: &str) -> Folder {
    let folder = Folder::new(&format!("csr-{name}"));
    write_npz(
        folder.0.join("graph.npz"),
        &[0, 1, 3, 4],
        &[1, 0, 2, 1],
        [3, 3],
    );
    write_npy(folder.0.join("features.npy"), &[3, 1], &[1.0, 2.0, 3.0]);
    write_npy(folder.0.join("labels.npy"), &[3], &[1.0, 0.0, 1.0]);
    folder
}

fn read(folder: &Folder) -> Result<NodeDataset, DatasetError> {
    load(&folder.0, 4, &mut |_, _, _| {})
}

#[test]
fn a_whole_folder_loads() {
    let folder = folder("whole");
    let data = read(&folder).unwrap();
    assert_eq!(
        (data.nodes(), data.graph().edges(), data.classes()),
        (3, 4, 2)
    );
    assert_eq!(data.labels(), &Labels::Classes(vec![1, 0, 1]));
    assert_eq!(
        (data.train().len(), data.val().len(), data.test().len()),
        (1, 1, 1)
    );
    assert_eq!(data.train(), read(&folder).unwrap().train());
    write_npy(
        folder.0.join("labels.npy"),
        &[3, 2],
        &[1.0, 0.0, 1.0, 1.0, 0.0, 0.0],
    );
    assert_eq!(read(&folder).unwrap().classes(), 2);
}

#[test]
fn splits_are_drawn_in_parts() {
    let lists = drawn(1000, 3);
    assert_eq!(lists.each_ref().map(Vec::len), [600, 200, 200]);
    let mut all = lists.concat();
    all.sort_unstable();
    assert_eq!(all, (0..1000).collect::<Vec<u32>>());
}

#[test]
fn every_fault_names_its_file() {
    let bad = folder("faults");
    for (shape, values) in [
        (&[3][..], &[1.0, 0.5, 0.0][..]),
        (&[3], &[1.0, 3.0, 0.0]),
        (&[3], &[-1.0, 1.0, 0.0]),
        (&[2], &[1.0, 0.0]),
        (&[3, 1], &[1.0, 3.0, 0.0]),
        (&[3, 1], &[1.0, f64::NAN, 0.0]),
        (&[3, 2], &[1.0, 0.0, 2.0, 0.0, 0.0, 1.0]),
        (&[3, 0], &[]),
        (&[3, 1, 1], &[1.0, 0.0, 0.0]),
        (&[1, 3], &[1.0, 0.0, 0.0]),
        (&[], &[1.0]),
    ] {
        write_npy(bad.0.join("labels.npy"), shape, values);
        let message = read(&bad).unwrap_err().to_string();
        assert!(
            message.contains("labels.npy") && !message.contains('\n'),
            "{message}"
        );
    }
    for file in ["graph.npz", "features.npy", "labels.npy"] {
        let folder = folder("missing");
        fs::remove_file(folder.0.join(file)).unwrap();
        assert!(read(&folder).unwrap_err().to_string().contains(file));
    }
    assert!(
        load("no/such", 0, &mut |_, _, _| {})
            .unwrap_err()
            .to_string()
            .contains("graph.npz")
    );
}

#[test]
fn labels_of_width_1_are_classes() {
    let folder = folder("column");
    for (labels, classes) in [([1.0, 2.0, 0.0], 3), ([1.0, 0.0, 1.0], 2)] {
        write_npy(folder.0.join("labels.npy"), &[3, 1], &labels);
        let data = read(&folder).unwrap();
        let wanted = labels.map(|label| label as u32).to_vec();
        assert_eq!(data.labels(), &Labels::Classes(wanted));
        assert_eq!(data.classes(), classes);
    }
}

#[test]
fn one_stray_class_is_named() {
    let nodes = 60_000;
    let folder = folder("stray");
    let shape = [nodes as i64; 2];
    write_npz(folder.0.join("graph.npz"), &vec![0; nodes + 1], &[], shape);
    let mut values = vec![1.0; nodes];
    write_npy(folder.0.join("features.npy"), &[nodes as u64, 1], &values);
    values[41] = nodes as f64 - 1.0;
    write_npy(folder.0.join("labels.npy"), &[nodes as u64], &values);
    let found = read(&folder).unwrap_err().to_string();
    for word in ["labels.npy", "node 41 ", "59999", "only 2 ", "renumber"] {
        assert!(found.contains(word), "{found}");
    }
}
