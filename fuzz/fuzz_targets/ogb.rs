//! OGB folders: no file makes the loader panic or exceed the memory limit.
//!
//! Parts of the input are the texts of files. Flags drop files, or use the first part as raw gzip
//! bytes.
#![no_main]

use std::{fs, io::Write, path::Path};

use flate2::{Compression, write::GzEncoder};
use libfuzzer_sys::fuzz_target;
use sparsek_gnn::datasets::{
    DatasetError, NodeDataset,
    ogb::{self, OgbOptions},
};

#[path = "folder.rs"]
mod folder;

use folder::Input;

/// Files, and the flag that drops each.
const FILES: [(&str, Option<u32>); 9] = [
    ("raw/node-label", None),
    ("raw/edge", None),
    ("raw/node-feat", Some(0)),
    ("raw/edge-feat", Some(1)),
    ("split/a/train", None),
    ("split/a/valid", None),
    ("split/a/test", None),
    ("raw/num-node-list", None),
    ("raw/num-edge-list", Some(2)),
];

fuzz_target!(|bytes: &[u8]| {
    let Some(input) = Input::read(bytes) else {
        return;
    };
    let folder = folder::folder("ogb");
    for name in ["raw", "split/a"] {
        fs::create_dir_all(folder.join(name)).expect("a temporary folder can be made");
    }
    for (at, (name, missing)) in FILES.into_iter().enumerate() {
        let file = folder.join(format!("{name}.csv.gz"));
        if missing.is_some_and(|flag| input.flag(flag)) {
            // It may not exist.
            let _ = fs::remove_file(&file);
            continue;
        }
        let bytes = match (at, name) {
            (0, _) if input.flag(3) => input.part(0).to_vec(),
            // By default the number of lines.
            (_, "raw/num-node-list") if !input.flag(4) => packed(&lines(input.part(0))),
            (_, "raw/num-edge-list") if !input.flag(4) => packed(&lines(input.part(1))),
            _ => packed(input.part(at)),
        };
        fs::write(&file, bytes).expect("a temporary file can be written");
    }
    let options = OgbOptions {
        directed: input.flag(5),
        split: input.flag(6).then(|| "a".to_string()),
    };
    folder::check(load(&folder, &options));
});

fn load(folder: &Path, options: &OgbOptions) -> Result<NodeDataset, DatasetError> {
    ogb::load(folder, options, &mut |_, done, size| assert!(done <= size))
}

/// Number of lines of a text.
fn lines(text: &[u8]) -> Vec<u8> {
    let ends = text.iter().filter(|&&byte| byte == b'\n').count();
    let open = usize::from(text.last().is_some_and(|&byte| byte != b'\n'));
    (ends + open).to_string().into_bytes()
}

fn packed(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
    encoder.write_all(text).expect("a list takes all bytes");
    encoder.finish().expect("a list takes all bytes")
}
