//! Archives of datasets: no file makes the loader panic or exceed the memory limit.
//!
//! Parts of the input are the values of arrays, each a signed byte. Flags choose the kind of
//! archive and drop, shorten or replace arrays by raw bytes.
#![no_main]

// Shared with the unit tests.
#[allow(dead_code)]
#[path = "../../crates/sparsek/src/io/npy/container.rs"]
mod container;
#[path = "folder.rs"]
mod folder;

use std::fs;

use container::{Member, container};
use folder::Input;
use libfuzzer_sys::fuzz_target;
use sparsek_gnn::datasets::{ArchiveOptions, ArchiveSplit, npz};

const ADJACENCY: [&str; 9] = [
    "adj_indptr",
    "adj_indices",
    "adj_data",
    "adj_shape",
    "attr_indptr",
    "attr_indices",
    "attr_data",
    "attr_shape",
    "labels",
];

/// Arrays, and whether rows have the width of the first part or of 2.
const EDGES: [(&str, bool); 6] = [
    ("edges", false),
    ("node_features", false),
    ("train_masks", true),
    ("val_masks", true),
    ("test_masks", true),
    ("node_labels", false),
];

fuzz_target!(|bytes: &[u8]| {
    let Some(input) = Input::read(bytes) else {
        return;
    };
    let file = folder::folder("archive").join("data.npz");
    let members = match input.flag(0) {
        true => ADJACENCY
            .iter()
            .enumerate()
            .map(|(at, name)| member(name, list(input.part(at))))
            .collect(),
        false => edges(&input),
    };
    let mut members: Vec<Member> = members;
    if input.flag(1) {
        members.pop();
    }
    let bytes = match input.flag(2) {
        true => input.part(0).to_vec(),
        false => container(&members),
    };
    fs::write(&file, bytes).expect("a temporary file can be written");
    let options = ArchiveOptions {
        directed: input.flag(3),
        split: input.flag(4).then_some(ArchiveSplit::Stored(1)),
    };
    folder::check(npz::load(&file, &options, &mut |_, done, size| {
        assert!(done <= size)
    }));
});

fn edges(input: &Input) -> Vec<Member> {
    let nodes = input.part(5).len();
    let array = |(at, (name, wide)): (usize, (&str, bool))| {
        let bytes = input.part(at);
        let width = if wide { nodes } else { 2 };
        let rows = bytes.len().checked_div(width).unwrap_or(0);
        member(
            name,
            match name {
                "node_labels" => list(bytes),
                _ => npy(&format!("({rows}, {width})"), &bytes[..rows * width]),
            },
        )
    };
    EDGES.into_iter().enumerate().map(array).collect()
}

fn member(name: &str, bytes: Vec<u8>) -> Member {
    Member::stored(name, bytes)
}

fn list(bytes: &[u8]) -> Vec<u8> {
    npy(&format!("({},)", bytes.len()), bytes)
}

fn npy(shape: &str, values: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '|i1', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut array = b"\x93NUMPY\x01\x00".to_vec();
    array.extend((header.len() as u16).to_le_bytes());
    array.extend(header.as_bytes());
    array.extend(values);
    array
}
