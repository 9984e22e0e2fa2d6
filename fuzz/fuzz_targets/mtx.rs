//! Matrix Market files: arbitrary bytes, and whole files, some of them changed or gzipped.
//!
//! Nothing may panic or exceed the memory limit. Results are valid matrices; an unchanged file
//! gives its values.

#![no_main]

use std::{fmt::Write as _, io::Write as _};

use flate2::{Compression, write::GzEncoder};
use libfuzzer_sys::{
    arbitrary::{Result, Unstructured},
    fuzz_target,
};
use sparsek::io::{memory, mtx, scipy::Matrix};

fuzz_target!(|bytes: &[u8]| {
    memory::set_limit(64 << 20);
    check(bytes);
    if let Ok((file, values)) = request(bytes) {
        let found = check(&file);
        if let Some(expected) = values {
            let mut values = found.expect("a whole file").values.expect("with values");
            values.sort_by(f64::total_cmp);
            assert_eq!(values, expected);
        }
    }
});

/// A file, and its sorted values if it is whole.
fn request(bytes: &[u8]) -> Result<(Vec<u8>, Option<Vec<f64>>)> {
    let mut input = Unstructured::new(bytes);
    let field = *input.choose(&["real", "integer", "pattern"])?;
    let symmetry = *input.choose(&["general", "symmetric", "skew-symmetric"])?;
    let rows = input.int_in_range(1..=9u32)?;
    let cols = match symmetry {
        "general" => input.int_in_range(1..=9u32)?,
        _ => rows,
    };
    let count = input.int_in_range(0..=20u32)?;
    let mut text = format!("%%MatrixMarket matrix coordinate {field} {symmetry}\n%\n");
    let _ = writeln!(text, "{rows} {cols} {count}");
    let mut values = Vec::new();
    for _ in 0..count {
        let (row, col) = (input.int_in_range(1..=rows)?, input.int_in_range(1..=cols)?);
        let value = match field {
            "pattern" => 1,
            _ => input.arbitrary::<i8>()?,
        };
        let _ = match field {
            "pattern" => writeln!(text, "{row} {col}"),
            _ => writeln!(text, "{row} {col} {value}"),
        };
        values.push(f64::from(value));
        match symmetry {
            "symmetric" if row != col => values.push(f64::from(value)),
            "skew-symmetric" if row != col => values.push(-f64::from(value)),
            _ => {}
        }
    }
    let mut file = text.into_bytes();
    if input.arbitrary()? {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&file).expect("memory");
        file = encoder.finish().expect("memory");
    }
    let mut broken = false;
    for _ in 0..input.int_in_range(0..=2usize)? {
        let at = input.choose_index(file.len())?;
        file[at] = input.arbitrary()?;
        broken = true;
    }
    values.sort_by(f64::total_cmp);
    Ok((file, (!broken).then_some(values)))
}

fn check(file: &[u8]) -> Option<Matrix<f64>> {
    let matrix = mtx::read::<f64>(file);
    let matrix = matrix.map_err(|reason| {
        assert!(!reason.contains(char::is_control) && reason.len() < 4_000, "{reason:?}");
    });
    let matrix = matrix.ok()?;
    let [rows, cols] = matrix.shape;
    assert_eq!(matrix.indptr.len(), rows + 1);
    assert!(matrix.indptr.is_sorted());
    assert_eq!(matrix.indptr[rows] as usize, matrix.indices.len());
    assert!(matrix.indices.iter().all(|&column| (column as usize) < cols));
    Some(matrix)
}
