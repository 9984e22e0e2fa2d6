//! Hand-written matrices.

use std::io::Cursor;

use super::*;
use crate::io::npy::{
    container::{Member, container},
    tests::{array, header, vector},
};

type Arrays = Vec<(&'static str, Vec<u8>)>;

fn i32s(values: &[i32]) -> Vec<u8> {
    let bytes: Vec<_> = values.iter().map(|x| x.to_le_bytes()).collect();
    vector("<i4", &bytes)
}

fn f64s(values: &[f64]) -> Vec<u8> {
    let bytes: Vec<_> = values.iter().map(|x| x.to_le_bytes()).collect();
    vector("<f8", &bytes)
}

fn format(name: &[u8; 3]) -> Vec<u8> {
    array(&header("|S3", "False", "()"), name)
}

fn zeros(descr: &str, size: usize, count: usize) -> Vec<u8> {
    let shape = format!("({count},)");
    array(&header(descr, "False", &shape), &vec![0; size * count])
}

fn read<T: Value>(arrays: &Arrays, values: Values) -> Result<Matrix<T>, String> {
    let members: Vec<Member> = arrays
        .iter()
        .map(|(name, bytes)| Member::deflated(name, bytes.clone()))
        .collect();
    Matrix::read(&mut Npz::new(Cursor::new(container(&members)))?, values)
}

fn with(mut arrays: Arrays, changes: Arrays) -> Arrays {
    for (name, bytes) in changes {
        arrays.retain(|(other, _)| *other != name);
        arrays.push((name, bytes));
    }
    arrays
}

fn without(mut arrays: Arrays, name: &str) -> Arrays {
    arrays.retain(|(other, _)| *other != name);
    arrays
}

/// ```text
/// [  .  5  0]
/// [  6  .  .]
/// [  .  .  .]
/// [-1.5 7  .]
/// ```
/// with an explicit zero at (0, 2).
fn expected() -> Matrix<f64> {
    Matrix {
        shape: [4, 3],
        indptr: vec![0, 2, 3, 3, 5],
        indices: vec![1, 2, 0, 0, 1],
        values: Some(vec![5.0, 0.0, 6.0, -1.5, 7.0]),
    }
}

fn csr() -> Arrays {
    vec![
        ("format", format(b"csr")),
        ("shape", i32s(&[4, 3])),
        ("indptr", i32s(&[0, 2, 3, 3, 5])),
        ("indices", i32s(&[1, 2, 0, 0, 1])),
        ("data", f64s(&[5.0, 0.0, 6.0, -1.5, 7.0])),
    ]
}

fn csc() -> Arrays {
    vec![
        ("format", format(b"csc")),
        ("shape", i32s(&[4, 3])),
        ("indptr", i32s(&[0, 2, 4, 5])),
        ("indices", i32s(&[1, 3, 0, 3, 0])),
        ("data", f64s(&[6.0, -1.5, 5.0, 7.0, 0.0])),
    ]
}

fn coo() -> Arrays {
    vec![
        ("format", format(b"coo")),
        ("shape", i32s(&[4, 3])),
        ("row", i32s(&[3, 0, 3, 1, 0])),
        ("col", i32s(&[0, 1, 1, 0, 2])),
        ("data", f64s(&[-1.5, 5.0, 7.0, 6.0, 0.0])),
    ]
}

/// 2 × 3 blocks at (0, 1) and (1, 0).
fn bsr() -> Arrays {
    let blocks = [
        1.0, 2.0, 3.0, 4.0, 0.0, 6.0, // block row 0
        7.0, 0.0, 0.0, 0.0, 8.0, 9.0, // block row 1
    ]
    .map(f64::to_le_bytes);
    vec![
        ("format", format(b"bsr")),
        ("shape", i32s(&[4, 6])),
        ("indptr", i32s(&[0, 1, 2])),
        ("indices", i32s(&[1, 0])),
        (
            "data",
            array(&header("<f8", "False", "(2, 2, 3)"), &blocks.concat()),
        ),
    ]
}

#[test]
fn every_format_becomes_the_same_rows() {
    for arrays in [csr(), csc(), coo()] {
        for arrays in [
            arrays.clone(),
            with(arrays, vec![("_is_array", i32s(&[1]))]),
        ] {
            assert_eq!(read::<f64>(&arrays, Values::Needed).unwrap(), expected());
        }
    }
    let blocks = read::<f64>(&bsr(), Values::Needed).unwrap();
    assert_eq!(blocks.shape, [4, 6]);
    assert_eq!(blocks.indptr, [0, 3, 6, 9, 12]);
    assert_eq!(blocks.indices, [3, 4, 5, 3, 4, 5, 0, 1, 2, 0, 1, 2]);
    let values = [1.0, 2.0, 3.0, 4.0, 0.0, 6.0, 7.0, 0.0, 0.0, 0.0, 8.0, 9.0];
    assert_eq!(blocks.values.unwrap(), values);
    let f32s = read::<f32>(&csc(), Values::Needed).unwrap();
    assert_eq!(f32s.values.unwrap(), [5.0, 0.0, 6.0, -1.5, 7.0]);
}

#[test]
fn files_without_a_format_are_csr_or_coo() {
    for arrays in [csr(), coo()] {
        let old = without(arrays, "format");
        assert_eq!(read::<f64>(&old, Values::Needed).unwrap(), expected());
    }
}

#[test]
fn patterns_need_no_values() {
    for arrays in [csr(), csc(), coo()] {
        let pattern = without(arrays, "data");
        let read_pattern = read::<bool>(&pattern, Values::Optional).unwrap();
        assert_eq!(read_pattern.values, None);
        assert_eq!(read_pattern.indptr, expected().indptr);
        assert_eq!(read_pattern.indices, expected().indices);
        let error = read::<f64>(&pattern, Values::Needed).unwrap_err();
        assert!(error.contains("array data"), "{error}");
    }
}

#[test]
fn stored_zeros_are_dropped_and_counted() {
    for (arrays, count) in [(csr(), 1), (csc(), 1), (coo(), 1), (bsr(), 4)] {
        let mut matrix = read::<bool>(&arrays, Values::Optional).unwrap();
        let entries = matrix.indices.len();
        assert_eq!(matrix.drop_zeros(), count);
        assert_eq!(matrix.indices.len(), entries - count);
        assert_eq!(last(&matrix.indptr), entries - count);
        assert_eq!(matrix.drop_zeros(), 0);
        if count == 1 {
            assert_eq!(matrix.indptr, [0, 1, 2, 2, 4]);
            assert_eq!(matrix.indices, [1, 0, 0, 1]);
        }
    }
    // NaN and values beyond f32 are not zero.
    let small = vec![("data", f64s(&[1e-300, -0.0, f64::NAN, 1.0, f64::INFINITY]))];
    let mut matrix = read::<bool>(&with(csr(), small), Values::Needed).unwrap();
    assert_eq!(matrix.drop_zeros(), 1);
}

#[test]
fn spare_capacity_is_ignored() {
    for arrays in [csr(), csc()] {
        let (_, indices) = arrays.iter().find(|(name, _)| *name == "indices").unwrap();
        let (_, data) = arrays.iter().find(|(name, _)| *name == "data").unwrap();
        let mut longer = [indices, data].map(|bytes| {
            let mut bytes = bytes.clone();
            let at = bytes.windows(4).position(|four| four == b"(5,)").unwrap();
            bytes[at + 1] = b'7';
            bytes
        });
        longer[0].extend([0xff; 8]);
        longer[1].extend([0xff; 16]);
        let [indices, data] = longer;
        let spare = with(arrays, vec![("indices", indices), ("data", data)]);
        assert_eq!(read::<f64>(&spare, Values::Needed).unwrap(), expected());
    }
}

#[test]
fn numbers_of_every_type_are_read() {
    let be = |values: &[i64]| {
        let bytes: Vec<_> = values.iter().map(|x| x.to_be_bytes()).collect();
        vector(">i8", &bytes)
    };
    let u32s = |values: &[u32]| {
        let bytes: Vec<_> = values.iter().map(|x| x.to_le_bytes()).collect();
        vector("<u4", &bytes)
    };
    let halves = [5.0, 0.0, 6.0, -1.5, 7.0].map(|x| half::f16::from_f64(x).to_be_bytes());
    for changes in [
        vec![
            ("indices", be(&[1, 2, 0, 0, 1])),
            ("indptr", be(&[0, 2, 3, 3, 5])),
        ],
        vec![("indices", u32s(&[1, 2, 0, 0, 1])), ("shape", be(&[4, 3]))],
        vec![("indices", vector("|i1", &[[1], [2], [0], [0], [1]]))],
        vec![("data", vector(">f2", &halves))],
        vec![(
            "format",
            array(&header("<U3", "False", "()"), b"c\0\0\0s\0\0\0r\0\0\0"),
        )],
    ] {
        let arrays = with(csr(), changes);
        assert_eq!(read::<f64>(&arrays, Values::Needed).unwrap(), expected());
    }
}

#[test]
fn matrices_without_rows_columns_or_entries() {
    for shape in [[0, 0], [0, 7], [3, 0], [3, 7]] {
        let [rows, cols] = shape;
        for (name, offsets) in [(b"csr", rows), (b"csc", cols)] {
            let arrays = vec![
                ("format", format(name)),
                ("shape", i32s(&shape)),
                ("indptr", i32s(&vec![0; offsets as usize + 1])),
                ("indices", i32s(&[])),
                ("data", f64s(&[])),
            ];
            let matrix = read::<f64>(&arrays, Values::Needed).unwrap();
            assert_eq!(matrix.indptr, vec![0; rows as usize + 1]);
        }
        let arrays = vec![
            ("format", format(b"coo")),
            ("shape", i32s(&shape)),
            ("row", i32s(&[])),
            ("col", i32s(&[])),
            ("data", f64s(&[])),
        ];
        let matrix = read::<f64>(&arrays, Values::Needed).unwrap();
        assert_eq!(matrix.indptr, vec![0; rows as usize + 1]);
    }
}

#[test]
fn memory_does_not_follow_columns() {
    let wide = vec![("shape", i32s(&[4, i32::MAX - 4095]))];
    for arrays in [csr(), coo()] {
        let matrix = read::<f64>(&with(arrays, wide.clone()), Values::Needed).unwrap();
        assert_eq!(matrix.indptr, expected().indptr);
    }
}

#[test]
fn hostile_matrices_are_refused() {
    let huge = zeros("<i4", 4, 3 << 20);
    let huge_data = zeros("|b1", 1, 3 << 20);
    let blocks = |shape: &str| array(&header("<f8", "False", shape), &[0; 96]);
    for (arrays, word) in [
        (with(csr(), vec![("format", format(b"dia"))]), "\"dia\""),
        (with(csr(), vec![("format", format(b"lil"))]), ".tocsr()"),
        (with(csr(), vec![("format", format(b"\x1b[m"))]), "\\u{1b}"),
        (with(csr(), vec![("format", i32s(&[3]))]), "int32"),
        (
            with(csr(), vec![("format", format(b"bsr"))]),
            "array data: shape [5]",
        ),
        (with(csr(), vec![("format", format(b"coo"))]), "array row"),
        (
            with(csr(), vec![("format", format(b"csc"))]),
            "3 columns need 4",
        ),
        (
            with(coo(), vec![("format", format(b"csr"))]),
            "array indices",
        ),
        (without(csr(), "shape"), "array shape: it is missing"),
        (without(csr(), "indptr"), "array indptr: it is missing"),
        (without(csr(), "indices"), "array indices: it is missing"),
        (without(csr(), "data"), "array data: it is missing"),
        (without(coo(), "col"), "array col: it is missing"),
        (without(bsr(), "data"), "array data: it is missing"),
        (
            with(csr(), vec![("shape", i32s(&[4]))]),
            "1 numbers, a matrix has 2",
        ),
        (with(csr(), vec![("shape", i32s(&[4, 3, 1]))]), "3 numbers"),
        (with(csr(), vec![("shape", i32s(&[4, -3]))]), "-3"),
        (with(csr(), vec![("shape", f64s(&[4.0, 3.0]))]), "integers"),
        (
            with(csr(), vec![("shape", i32s(&[i32::MAX, 3]))]),
            "2147479552",
        ),
        (
            with(csr(), vec![("shape", i32s(&[4, i32::MAX]))]),
            "columns",
        ),
        (
            with(csr(), vec![("shape", zeros("<i4", 4, 3 << 20))]),
            "shape",
        ),
        (
            with(csr(), vec![("shape", i32s(&[1_000_000_000, 3]))]),
            "1000000000 rows need",
        ),
        (
            with(csr(), vec![("indptr", i32s(&[0, 5]))]),
            "4 rows need 5",
        ),
        (
            with(csr(), vec![("indptr", i32s(&[0, 3, 2, 3, 5]))]),
            "decreases after 1 rows",
        ),
        (with(csr(), vec![("indptr", i32s(&[0, 2, 3, 3, -5]))]), "-5"),
        (
            with(csr(), vec![("indptr", i32s(&[1, 2, 3, 3, 5]))]),
            "begins with 1",
        ),
        (
            with(csr(), vec![("indptr", i32s(&[0, 2, 3, 3, 6]))]),
            "ends with 6",
        ),
        (with(csr(), vec![("indptr", f64s(&[0.0; 5]))]), "float64"),
        (
            with(csr(), vec![("indices", i32s(&[1, 2, 3, 0, 1]))]),
            "column 3 of entry 2",
        ),
        (
            with(csr(), vec![("indices", i32s(&[1, 2, -1, 0, 1]))]),
            "-1",
        ),
        (
            with(csc(), vec![("indices", i32s(&[1, 3, 4, 3, 0]))]),
            "row 4 of entry 2",
        ),
        (
            with(coo(), vec![("row", i32s(&[3, 0, 4, 1, 0]))]),
            "row 4 of entry 2",
        ),
        (
            with(coo(), vec![("col", i32s(&[3, 0, 1, 1, 0]))]),
            "column 3 of entry 0",
        ),
        (
            with(bsr(), vec![("indices", i32s(&[1, 2]))]),
            "block column 2",
        ),
        (with(csr(), vec![("indices", f64s(&[1.0; 5]))]), "integers"),
        (
            with(csr(), vec![("data", f64s(&[1.0; 4]))]),
            "4 values for 5 entries",
        ),
        (
            with(coo(), vec![("col", i32s(&[0; 4]))]),
            "4 columns for the 5 rows",
        ),
        (
            with(coo(), vec![("data", f64s(&[0.0; 4]))]),
            "4 values for 5 entries",
        ),
        (with(bsr(), vec![("indices", i32s(&[1]))]), "2 blocks"),
        (
            with(bsr(), vec![("data", blocks("(2, 3, 2)"))]),
            "blocks of 3 × 2",
        ),
        (
            with(bsr(), vec![("data", blocks("(2, 6, 1)"))]),
            "do not fill",
        ),
        (
            with(bsr(), vec![("data", zeros("<f8", 8, 2))]),
            "[blocks, height, width]",
        ),
        (
            with(
                bsr(),
                vec![("data", array(&header("<f8", "False", "(2, 0, 3)"), &[]))],
            ),
            "blocks of 0 × 3",
        ),
        // Kilobytes that expand to megabytes.
        (
            with(csr(), vec![("data", huge_data.clone())]),
            "3145728 values for 5",
        ),
        (
            with(csr(), vec![("indptr", huge.clone())]),
            "3145728 offsets",
        ),
        (
            with(
                coo(),
                vec![
                    ("row", huge.clone()),
                    ("col", huge.clone()),
                    ("data", huge_data),
                ],
            ),
            "3145728 entries for the 12 places",
        ),
    ] {
        let error = read::<f64>(&arrays, Values::Needed).unwrap_err();
        assert!(error.contains(word), "{word}: {error}");
        assert!(
            error.len() < 500 && !error.contains(char::is_control),
            "{error}"
        );
    }
}
