//! Matrices in npz files: arbitrary bytes, and files of every format, valid or changed.
//!
//! Nothing may panic or exceed the memory limit. Results are valid matrices; an unchanged file
//! gives its values.

#![no_main]

// Shared with the unit tests.
#[allow(dead_code)]
#[path = "../../crates/sparsek/src/io/npy/container.rs"]
mod container;

use std::io::Cursor;

use container::{Member, container};
use libfuzzer_sys::{
    arbitrary::{Result, Unstructured},
    fuzz_target,
};
use sparsek::io::{
    memory,
    npy::Npz,
    scipy::{Matrix, Values},
};

fuzz_target!(|bytes: &[u8]| {
    memory::set_limit(64 << 20);
    check(bytes);
    if let Ok(request) = Request::read(bytes) {
        let found = check(&request.file);
        if let Some(expected) = request.values {
            let mut values = found.expect("a whole file").values.expect("with values");
            values.sort_by(f64::total_cmp);
            assert_eq!(values, expected);
        }
    }
});

struct Request {
    file: Vec<u8>,
    /// Sorted values, if the file is valid.
    values: Option<Vec<f64>>,
}

impl Request {
    fn read(bytes: &[u8]) -> Result<Self> {
        let mut input = Unstructured::new(bytes);
        let format = *input.choose(&[b"csr", b"csc", b"coo", b"bsr", b"dia"])?;
        let [rows, cols] = [input.int_in_range(0..=9)?, input.int_in_range(0..=9)?];
        let [height, width] = [input.int_in_range(1..=3)?, input.int_in_range(1..=3)?];
        let blocks = format == b"bsr";
        let [height, width] = if blocks { [height, width] } else { [1, 1] };
        let (major, minor) = match format {
            b"csc" => (cols, rows),
            _ => (rows, cols),
        };
        let mut offsets = vec![0u64];
        let (mut ids, mut others) = (Vec::new(), Vec::new());
        for at in 0..major {
            let count = if minor > 0 {
                input.int_in_range(0..=4)?
            } else {
                0
            };
            for _ in 0..count {
                ids.push(input.int_in_range(0..=minor - 1)?);
                others.push(at);
            }
            offsets.push(ids.len() as u64);
        }
        let mut values = vec![0.0; ids.len() * (height * width) as usize];
        for value in &mut values {
            *value = f64::from(input.arbitrary::<i8>().unwrap_or(0));
        }
        let wide = input.arbitrary()?;
        let shape = [rows * height, cols * width];
        let count = ids.len() as u64;
        let mut arrays = vec![("shape", integers(&shape, wide))];
        if format == b"coo" {
            arrays.extend([
                ("row", integers(&others, wide)),
                ("col", integers(&ids, wide)),
            ]);
        } else {
            arrays.extend([
                ("indptr", integers(&offsets, wide)),
                ("indices", integers(&ids, wide)),
            ]);
        }
        let data_shape = match blocks {
            true => vec![count, height, width],
            false => vec![count],
        };
        let data = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        arrays.push(("data", npy("<f8", &data_shape, data)));
        if format != b"csr" || input.arbitrary()? {
            arrays.push(("format", npy("|S3", &[], format.to_vec())));
        }
        let mut members = Vec::new();
        for (name, bytes) in arrays {
            let mut member = match input.arbitrary()? {
                true => Member::stored(name, bytes),
                false => Member::deflated(name, bytes),
            };
            member.large = input.arbitrary()?;
            members.push(member);
        }
        let whole = format != b"dia";
        let changes = input.int_in_range(0..=3usize)?;
        let mut broken = false;
        for _ in 0..changes {
            let at = input.choose_index(members.len())?;
            let member = &mut members[at];
            broken = true;
            match input.int_in_range(0..=6u8)? {
                0 => member.flags ^= 1,
                1 => member.method = input.arbitrary()?,
                2 => member.size = input.arbitrary()?,
                3 => member.checksum = input.arbitrary()?,
                4 => {
                    members.swap_remove(at);
                }
                // Other values with a valid checksum.
                _ => {
                    let mut bytes = vec![0; member.bytes.len()];
                    input.fill_buffer(&mut bytes)?;
                    let keep = member.bytes.len().min(input.int_in_range(0..=200)?);
                    bytes[..keep].copy_from_slice(&member.bytes[..keep]);
                    if member.method == 0 {
                        let name = String::from_utf8_lossy(&member.name).into_owned();
                        let name = name.trim_end_matches(".npy");
                        *member = Member::stored(name, bytes);
                    } else {
                        member.bytes = bytes;
                    }
                }
            }
            if members.is_empty() {
                break;
            }
        }
        let mut file = container(&members);
        for _ in 0..input.int_in_range(0..=2usize)? {
            let at = input.choose_index(file.len())?;
            file[at] = input.arbitrary()?;
            broken = true;
        }
        values.sort_by(f64::total_cmp);
        Ok(Self {
            file,
            values: (whole && !broken).then_some(values),
        })
    }
}

fn integers(values: &[u64], wide: bool) -> Vec<u8> {
    let (descr, size) = if wide { ("<i8", 8) } else { ("<u2", 2) };
    let bytes = values.iter().flat_map(|x| x.to_le_bytes()[..size].to_vec());
    npy(descr, &[values.len() as u64], bytes.collect())
}

fn npy(descr: &str, shape: &[u64], values: Vec<u8>) -> Vec<u8> {
    let shape: String = shape.iter().map(|size| format!("{size}, ")).collect();
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values);
    bytes
}

/// Reads a file as graph and as matrix; returns the matrix if it is valid.
fn check(file: &[u8]) -> Option<Matrix<f64>> {
    let mut npz = Npz::new(Cursor::new(file)).map_err(one_line).ok()?;
    if let Ok(mut graph) = Matrix::<bool>::read(&mut npz, Values::Optional) {
        is_whole(&graph);
        let (entries, some) = (graph.indices.len(), graph.values.is_some());
        let dropped = graph.drop_zeros();
        assert!(some || dropped == 0);
        assert_eq!(graph.indices.len() + dropped, entries);
        is_whole(&graph);
    }
    let matrix = Matrix::<f64>::read(&mut npz, Values::Needed)
        .map_err(one_line)
        .ok()?;
    is_whole(&matrix);
    Some(matrix)
}

fn one_line(reason: String) {
    assert!(
        !reason.contains(char::is_control) && reason.len() < 4_000,
        "{reason:?}"
    );
}

fn is_whole<T>(matrix: &Matrix<T>) {
    let [rows, cols] = matrix.shape;
    let entries = matrix.indices.len();
    assert_eq!(matrix.indptr.len(), rows + 1);
    assert_eq!((matrix.indptr[0], matrix.indptr[rows]), (0, entries as u32));
    assert!(matrix.indptr.is_sorted());
    assert!(
        matrix
            .indices
            .iter()
            .all(|&column| (column as usize) < cols)
    );
    assert!(
        matrix
            .values
            .as_ref()
            .is_none_or(|values| values.len() == entries)
    );
}
