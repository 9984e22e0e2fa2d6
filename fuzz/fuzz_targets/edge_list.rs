//! Edge lists: no text makes the loader panic or exceed the memory limit.
//!
//! Parts of the input are the texts of files. Flags compress them.
#![no_main]

use std::{fs, io::Write, path::Path};

use flate2::{Compression, write::GzEncoder};
use libfuzzer_sys::fuzz_target;
use sparsek_gnn::datasets::{
    DatasetError, NodeDataset,
    edge_list::{self, EdgeListOptions},
};

#[path = "folder.rs"]
mod folder;

use folder::Input;

const STEMS: [&str; 3] = ["edges", "features", "labels"];

fuzz_target!(|bytes: &[u8]| {
    let Some(input) = Input::read(bytes) else {
        return;
    };
    let folder = folder::folder("edge-list");
    for (at, stem) in STEMS.into_iter().enumerate() {
        let text = input.part(at);
        let bytes = match input.flag(at as u32) {
            true => packed(text),
            false => text.to_vec(),
        };
        let file = folder.join(format!("{stem}.csv"));
        fs::write(file, bytes).expect("a temporary file can be written");
    }
    let options = EdgeListOptions {
        directed: input.flag(3),
        seed: 0,
    };
    folder::check(load(&folder, &options));
    // An id alone may ask for a graph above the limit.
    let _ = edge_list::load_graph(folder.join("edges.csv"), None, &options, &mut |_, _, _| {});
});

fn load(folder: &Path, options: &EdgeListOptions) -> Result<NodeDataset, DatasetError> {
    edge_list::load(folder, options, &mut |_, done, size| assert!(done <= size))
}

fn packed(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
    encoder.write_all(text).expect("a list takes all bytes");
    encoder.finish().expect("a list takes all bytes")
}
