//! HDF5 files: arbitrary bytes, and files of AnnData and 10x Genomics with changed bytes.
//!
//! Nothing may panic or exceed the memory limit. Results are valid matrices.

#![no_main]

use std::io::Cursor;

use libfuzzer_sys::{
    arbitrary::{Result, Unstructured},
    fuzz_target,
};
use sparsek::io::{hdf5, memory, scipy::Matrix};

const FILES: [&[u8]; 3] = [
    include_bytes!("../../tests/hdf5/old.h5ad"),
    include_bytes!("../../tests/hdf5/cellranger-2.h5"),
    include_bytes!("../../tests/hdf5/cellranger-3.h5"),
];

fuzz_target!(|bytes: &[u8]| {
    memory::set_limit(64 << 20);
    check(bytes.to_vec());
    if let Ok(file) = changed(bytes) {
        check(file);
    }
});

fn changed(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut input = Unstructured::new(bytes);
    let mut file = input.choose(&FILES)?.to_vec();
    for _ in 0..input.int_in_range(0..=4usize)? {
        let at = input.choose_index(file.len())?;
        file[at] = input.arbitrary()?;
    }
    if input.arbitrary()? {
        file.truncate(input.choose_index(file.len())?);
    }
    Ok(file)
}

fn check(file: Vec<u8>) {
    let matrix: std::result::Result<Matrix<f64>, _> = hdf5::read(Cursor::new(file), None);
    match matrix {
        Ok(matrix) => {
            let [rows, cols] = matrix.shape;
            assert_eq!(matrix.indptr.len(), rows + 1);
            assert!(matrix.indptr.is_sorted());
            assert_eq!(matrix.indptr[rows] as usize, matrix.indices.len());
            assert!(matrix.indices.iter().all(|&column| (column as usize) < cols));
        }
        Err(reason) => {
            assert!(!reason.contains(char::is_control) && reason.len() < 4_000, "{reason:?}");
        }
    }
}
