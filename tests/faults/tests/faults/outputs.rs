//! `knn`, `topk` and `topk generate`: an output file is the old or the new one.
use std::{fs, io};

use npyz::{WriterBuilder, npz::NpzWriter};

use super::{
    command::{Folder, KINDS, points},
    counts::Counts,
};

const OLD: &[u8] = b"the old file";

/// Tries every fault of a command that writes `output`; `prepare` makes its inputs.
fn every_fault(name: &str, line: &str, prepare: impl Fn(&Folder), output: &str) {
    let folder = Folder::new(name);
    prepare(&folder);
    folder.runs(line).unwrap();
    let new = fs::read(folder.file(output)).unwrap();
    let names = folder.names();
    let mut counts = Counts::default();
    for kind in KINDS {
        for old in [None, Some(OLD)] {
            for at in points(kind) {
                folder.clear();
                prepare(&folder);
                if let Some(old) = old {
                    fs::write(folder.file(output), old).unwrap();
                }
                let Some(failed) = folder.faulty(line, kind, at) else {
                    break;
                };
                let check = || {
                    failed?;
                    let found = fs::read(folder.file(output)).ok();
                    let whole = [old, Some(&new[..])].contains(&found.as_deref());
                    if !whole {
                        return Err(format!("partial file: {:?} bytes", found.map(|f| f.len())));
                    }
                    folder.runs(line)?;
                    if fs::read(folder.file(output)).ok().as_ref() != Some(&new) {
                        return Err("the repeated run wrote another file".to_string());
                    }
                    match folder.names() == names {
                        true => Ok(()),
                        false => Err(format!("leftovers: {:?}", folder.names())),
                    }
                };
                counts.add(format!("{name}, {kind:?} at {at}, old {}", old.is_some()), check());
            }
        }
    }
    counts.finish(name);
}

#[test]
fn a_generated_vector_is_whole() {
    let line = "topk generate --length 50000 --output x.npy";
    every_fault("generate", line, |_| {}, "x.npy");
}

#[test]
fn a_selection_is_whole() {
    let generate = |folder: &Folder| {
        let line = "topk generate --length 3000 --output x.npy";
        folder.runs(line).unwrap();
    };
    let line = "topk --input x.npy --k 1000 --output top.npz --backend flex";
    every_fault("topk", line, generate, "top.npz");
}

#[test]
fn neighbors_are_whole() {
    let line = "knn --data x.npz --metric cosine --k 3 --output near.npz --backend flex";
    every_fault("knn", line, |folder| matrix(folder).unwrap(), "near.npz");
}

/// A sparse matrix of 40 rows in scipy's format.
fn matrix(folder: &Folder) -> io::Result<()> {
    let mut npz = NpzWriter::create(folder.file("x.npz"))?;
    let rows: i64 = 40;
    let indices: Vec<i32> =
        (0..rows as i32).flat_map(|row| [row % 7, 7 + row % 5, 12 + row % 3]).collect();
    let data: Vec<f32> = (0..indices.len()).map(|at| 1.0 + (at % 11) as f32).collect();
    let indptr: Vec<i32> = (0..=rows as i32).map(|row| 3 * row).collect();
    macro_rules! put {
        ($name:literal, $values:expr) => {
            let values = $values;
            let mut array = npz
                .array($name, Default::default())?
                .default_dtype()
                .shape(&[values.len() as u64])
                .begin_nd()?;
            array.extend(values.iter().copied())?;
            array.finish()?;
        };
    }
    put!("data", &data);
    put!("indices", &indices);
    put!("indptr", &indptr);
    put!("shape", &[rows, 15]);
    // The format is a string of dtype `|S3`.
    use npyz::zip::write::FileOptions;
    use std::io::Write;
    let zip = npz.zip_writer();
    zip.start_file("format.npy", FileOptions::default())?;
    let mut header = b"{'descr': '|S3', 'fortran_order': False, 'shape': (), }".to_vec();
    header.resize(117, b' ');
    header.push(b'\n');
    zip.write_all(b"\x93NUMPY\x01\x00")?;
    zip.write_all(&(header.len() as u16).to_le_bytes())?;
    zip.write_all(&header)?;
    zip.write_all(b"csr")?;
    zip.finish()?;
    Ok(())
}
