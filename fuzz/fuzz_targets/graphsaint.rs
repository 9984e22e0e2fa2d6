//! GraphSAINT folders: no file makes the loader panic or exceed the memory limit.
//!
//! For each of the four files a flag says whether it is raw bytes or a valid container generated
//! from them, so that inputs also reach the code behind the containers.
#![no_main]

use std::{fs, io::Cursor, path::Path};

use libfuzzer_sys::fuzz_target;
use npyz::{WriterBuilder, npz::NpzWriter};
use sparsek_gnn::datasets::{DatasetError, NodeDataset, graphsaint};

#[path = "folder.rs"]
mod folder;

use folder::Input;

/// Maximum nodes of a generated graph.
const NODES: usize = 24;

fuzz_target!(|bytes: &[u8]| {
    let Some(input) = Input::read(bytes) else {
        return;
    };
    let folder = folder::folder("graphsaint");
    let write = |name: &str, bytes: &[u8]| {
        fs::write(folder.join(name), bytes).expect("a temporary file can be written");
    };
    let nodes = input.part(0).first().map_or(3, |&b| usize::from(b) % NODES);
    let made = |flag, raw: usize, make: &dyn Fn(&[u8], usize) -> Vec<u8>| match input.flag(flag) {
        true => input.part(raw).to_vec(),
        false => make(input.part(raw), nodes),
    };
    write("adj_full.npz", &made(0, 0, &adjacency));
    write("feats.npy", &made(1, 1, &features));
    write("class_map.json", &made(2, 2, &classes));
    write("role.json", &made(3, 3, &roles));
    folder::check(load(&folder));
});

fn load(folder: &Path) -> Result<NodeDataset, DatasetError> {
    graphsaint::load(folder, &mut |_, done, size| assert!(done <= size))
}

/// A CSR matrix; a byte is an edge from its high to its low digit.
fn adjacency(bytes: &[u8], nodes: usize) -> Vec<u8> {
    let mut rows = vec![Vec::new(); nodes];
    for &byte in bytes.iter().skip(1) {
        if let Some(row) = rows.get_mut(usize::from(byte >> 4)) {
            row.push(i64::from(byte & 15));
        }
    }
    let mut indptr = vec![0i64];
    for row in &rows {
        indptr.push(indptr[indptr.len() - 1] + row.len() as i64);
    }
    let mut file = Cursor::new(Vec::new());
    let mut npz = NpzWriter::new(&mut file);
    let shape = vec![nodes as i64; 2];
    for (name, values) in [
        ("indptr", indptr),
        ("indices", rows.concat()),
        ("shape", shape),
    ] {
        let array = npz.array::<i64>(name, Default::default());
        let array = array.expect("an array can be begun").default_dtype();
        let array = array.shape(&[values.len() as u64]).begin_nd();
        let mut array = array.expect("a header can be written");
        array.extend(values).expect("values can be written");
        array.finish().expect("an array can be ended");
    }
    drop(npz);
    file.into_inner()
}

/// A feature row per node, from signed bytes.
fn features(bytes: &[u8], nodes: usize) -> Vec<u8> {
    let width = bytes.len() / nodes.max(1);
    let values = bytes[..width * nodes]
        .iter()
        .map(|&byte| f32::from(byte as i8));
    let mut file = Vec::new();
    let options = npyz::WriteOptions::<f32>::new().default_dtype();
    let options = options
        .shape(&[nodes as u64, width as u64])
        .writer(&mut file);
    let mut array = options.begin_nd().expect("a header can be written");
    array.extend(values).expect("values can be written");
    array.finish().expect("an array can be ended");
    file
}

/// A class or list of classes per node, in a notation that the byte selects.
fn classes(bytes: &[u8], nodes: usize) -> Vec<u8> {
    let value = |byte: u8| match byte >> 5 {
        0 | 1 => format!("{}", byte & 31),
        2 => format!("{}.0", byte & 31),
        3 => format!("[{}]", byte & 31),
        4 => format!("{}", byte & 1 == 1),
        5 => format!("[{},{},{}]", byte & 1, byte >> 1 & 1, byte >> 2 & 1),
        6 => format!("[{},{}]", byte & 1 == 1, byte >> 1 & 1),
        _ => format!("{}e{}", byte & 7, byte >> 3 & 3),
    };
    let byte = |node: usize| bytes.get(node % bytes.len().max(1)).copied().unwrap_or(0);
    let entries: Vec<String> = (0..nodes)
        .map(|node| format!("\"{node}\":{}", value(byte(node))))
        .collect();
    format!("{{{}}}", entries.join(",")).into_bytes()
}

/// Each byte adds a node to a list.
fn roles(bytes: &[u8], nodes: usize) -> Vec<u8> {
    let mut lists = [vec![0], vec![1], vec![2]];
    for &byte in bytes {
        lists[usize::from(byte % 3)].push(3 + usize::from(byte / 3) % (nodes + 1));
    }
    let [tr, va, te] = lists;
    format!(r#"{{"tr":{tr:?},"va":{va:?},"te":{te:?}}}"#).into_bytes()
}
