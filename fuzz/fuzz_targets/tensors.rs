//! Files of tensors: no file makes the loader panic or exceed the memory limit.
//!
//! The first part is the whole file, or a flag makes it safetensors of signed bytes, a part each.
#![no_main]

#[path = "folder.rs"]
mod folder;

use std::fs;

use folder::Input;
use libfuzzer_sys::fuzz_target;
use safetensors::{Dtype, tensor::TensorView};
use sparsek_gnn::datasets::{ArchiveOptions, ArchiveSplit, tensors};

/// Names, and numbers per row.
const TENSORS: [(&str, usize); 6] =
    [("edge_index", 0), ("x", 2), ("y", 1), ("train_mask", 1), ("val_mask", 1), ("test_mask", 1)];

fuzz_target!(|bytes: &[u8]| {
    let Some(input) = Input::read(bytes) else {
        return;
    };
    let folder = folder::folder("tensors");
    let file = match input.flag(0) {
        true => folder.join("data.pt"),
        false => folder.join("data.safetensors"),
    };
    let bytes = match input.flag(1) {
        true => input.part(0).to_vec(),
        false => safetensors(&input),
    };
    fs::write(&file, bytes).expect("the file can be written");
    let options = ArchiveOptions {
        directed: input.flag(2),
        split: input.flag(3).then_some(ArchiveSplit::Stored(1)),
    };
    folder::check(tensors::load(&file, &options));
});

fn safetensors(input: &Input) -> Vec<u8> {
    let views = TENSORS.iter().enumerate().map(|(at, &(name, width))| {
        let values = input.part(at);
        let shape = match width {
            0 => vec![2, values.len() / 2],
            1 => vec![values.len()],
            _ => vec![values.len() / width, width],
        };
        let values = &values[..shape.iter().product()];
        (name, TensorView::new(Dtype::I8, shape, values).expect("as many values"))
    });
    safetensors::serialize(views, None).expect("distinct names")
}
