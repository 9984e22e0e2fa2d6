use std::io::Cursor;

use rstest::rstest;

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
    let members: Vec<Member> =
        arrays.iter().map(|(name, bytes)| Member::deflated(name, bytes.clone())).collect();
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
/// Explicit zero at (0, 2).
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

fn coords() -> Arrays {
    let ids = [3, 0, 3, 1, 0, 0, 1, 1, 0, 2].map(i32::to_le_bytes);
    let ids = array(&header("<i4", "False", "(2, 5)"), &ids.concat());
    with(without(without(coo(), "row"), "col"), vec![("coords", ids)])
}

fn dia() -> Arrays {
    let data = [
        9.0, 9.0, 3.0, 4.0, 9.0, 9.0, // two above the main one
        5.0, 0.0, 9.0, 9.0, 9.0, 9.0, // one below
    ]
    .map(f64::to_le_bytes);
    vec![
        ("format", format(b"dia")),
        ("shape", i32s(&[3, 4])),
        ("offsets", i32s(&[2, -1])),
        ("data", array(&header("<f8", "False", "(2, 6)"), &data.concat())),
    ]
}

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
        ("data", array(&header("<f8", "False", "(2, 2, 3)"), &blocks.concat())),
    ]
}

#[rstest]
#[case::csr(csr())]
#[case::csc(csc())]
#[case::coo(coo())]
#[case::coords(coords())]
fn every_format_becomes_the_same_rows(
    #[case] arrays: Arrays,
    #[values(false, true)] of_array_type: bool,
) {
    let arrays = match of_array_type {
        true => with(arrays, vec![("_is_array", i32s(&[1]))]),
        false => arrays,
    };
    assert_eq!(read::<f64>(&arrays, Values::Needed).unwrap(), expected());
}

#[test]
fn blocks_become_rows() {
    let blocks = read::<f64>(&bsr(), Values::Needed).unwrap();
    assert_eq!(blocks.shape, [4, 6]);
    assert_eq!(blocks.indptr, [0, 3, 6, 9, 12]);
    assert_eq!(blocks.indices, [3, 4, 5, 3, 4, 5, 0, 1, 2, 0, 1, 2]);
    let values = [1.0, 2.0, 3.0, 4.0, 0.0, 6.0, 7.0, 0.0, 0.0, 0.0, 8.0, 9.0];
    assert_eq!(blocks.values.unwrap(), values);
}

/// scipy 1.17: `dia_array((data, [2, -1]), shape=(3, 4)).tocsr()`.
#[test]
fn diagonals_become_rows() {
    let rows = read::<f64>(&dia(), Values::Needed).unwrap();
    assert_eq!(rows.shape, [3, 4]);
    assert_eq!(rows.indptr, [0, 1, 3, 3]);
    assert_eq!(rows.indices, [2, 0, 3]);
    assert_eq!(rows.values.unwrap(), [3.0, 5.0, 4.0]);
}

#[rstest]
#[case::tall([5, 4], 0, vec![(0, 0, 1.0), (1, 1, 2.0), (2, 2, 3.0), (3, 3, 4.0)])]
#[case::below([5, 4], -2, vec![(2, 0, 1.0), (3, 1, 2.0), (4, 2, 3.0)])]
#[case::corner([5, 4], -4, vec![(4, 0, 1.0)])]
#[case::beyond([5, 4], -5, vec![])]
#[case::above([5, 4], 1, vec![(0, 1, 2.0), (1, 2, 3.0), (2, 3, 4.0)])]
#[case::wider([2, 9], 2, vec![(0, 2, 3.0), (1, 3, 4.0)])]
#[case::no_rows([0, 4], 0, vec![])]
#[case::no_columns([4, 0], 0, vec![])]
#[case::far([5, 4], i64::MAX, vec![])]
#[case::far([5, 4], i64::MIN, vec![])]
fn one_diagonal_is_cut_to_the_matrix(
    #[case] shape: [i32; 2],
    #[case] offset: i64,
    #[case] entries: Vec<(usize, u32, f64)>,
) {
    let data = [1.0, 2.0, 3.0, 4.0].map(f64::to_le_bytes);
    let arrays = vec![
        ("format", format(b"dia")),
        ("shape", i32s(&shape)),
        ("offsets", vector("<i8", &[offset.to_le_bytes()])),
        ("data", array(&header("<f8", "False", "(1, 4)"), &data.concat())),
    ];
    let matrix = read::<f64>(&arrays, Values::Needed).unwrap();
    let values = matrix.values.unwrap();
    let rows = matrix.indptr.windows(2).enumerate();
    let found = rows.flat_map(|(row, ends)| {
        let entries = ends[0] as usize..ends[1] as usize;
        let (indices, values) = (&matrix.indices, &values);
        entries.map(move |entry| (row, indices[entry], values[entry]))
    });
    assert_eq!(found.collect::<Vec<_>>(), entries);
}

#[rstest]
#[case::empty([0, 0])]
#[case::no_rows([0, 7])]
#[case::no_columns([2, 0])]
#[case::some([4, 3])]
fn what_is_written_is_read(#[case] shape: [usize; 2]) {
    let expected = match shape {
        [4, 3] => expected(),
        _ => Matrix {
            shape,
            indptr: vec![0; shape[0] + 1],
            indices: Vec::new(),
            values: Some(Vec::new()),
        },
    };
    let values = expected.values.clone().unwrap();
    let written = bytes(shape, &expected.indptr, &expected.indices, &values);
    let mut npz = Npz::new(Cursor::new(&written)).unwrap();
    assert_eq!(Matrix::<f64>::read(&mut npz, Values::Needed).unwrap(), expected);
    // NumPy maps elements at multiples of 64.
    assert_eq!(npz.header("data").unwrap().start % 64, 0);
    assert_eq!(bytes(shape, &expected.indptr, &expected.indices, &values), written);
}

#[test]
fn values_are_rounded_to_f32() {
    let f32s = read::<f32>(&csc(), Values::Needed).unwrap();
    assert_eq!(f32s.values.unwrap(), [5.0, 0.0, 6.0, -1.5, 7.0]);
}

#[rstest]
#[case::csr(csr())]
#[case::coo(coo())]
fn files_without_a_format_are_csr_or_coo(#[case] arrays: Arrays) {
    let old = without(arrays, "format");
    assert_eq!(read::<f64>(&old, Values::Needed).unwrap(), expected());
}

#[rstest]
#[case::csr(csr())]
#[case::csc(csc())]
#[case::coo(coo())]
#[case::coords(coords())]
fn patterns_need_no_values(#[case] arrays: Arrays) {
    let pattern = without(arrays, "data");
    let read_pattern = read::<bool>(&pattern, Values::Optional).unwrap();
    assert_eq!(read_pattern.values, None);
    assert_eq!(read_pattern.indptr, expected().indptr);
    assert_eq!(read_pattern.indices, expected().indices);
    let error = read::<f64>(&pattern, Values::Needed).unwrap_err();
    assert!(error.contains("array data"), "{error}");
}

#[rstest]
#[case::csr(csr(), 1)]
#[case::csc(csc(), 1)]
#[case::coo(coo(), 1)]
#[case::bsr(bsr(), 4)]
fn stored_zeros_are_dropped_and_counted(#[case] arrays: Arrays, #[case] count: usize) {
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

#[test]
fn nan_and_values_beyond_f32_are_not_zero() {
    let small = vec![("data", f64s(&[1e-300, -0.0, f64::NAN, 1.0, f64::INFINITY]))];
    let mut matrix = read::<bool>(&with(csr(), small), Values::Needed).unwrap();
    assert_eq!(matrix.drop_zeros(), 1);
}

#[rstest]
#[case::csr(csr())]
#[case::csc(csc())]
fn spare_capacity_is_ignored(#[case] arrays: Arrays) {
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

fn big_endian(values: &[i64]) -> Vec<u8> {
    let bytes: Vec<_> = values.iter().map(|x| x.to_be_bytes()).collect();
    vector(">i8", &bytes)
}

fn u32s(values: &[u32]) -> Vec<u8> {
    let bytes: Vec<_> = values.iter().map(|x| x.to_le_bytes()).collect();
    vector("<u4", &bytes)
}

fn halves() -> Vec<u8> {
    let values = [5.0, 0.0, 6.0, -1.5, 7.0].map(|x| half::f16::from_f64(x).to_be_bytes());
    vector(">f2", &values)
}

#[rstest]
#[case::i64(vec![
    ("indices", big_endian(&[1, 2, 0, 0, 1])),
    ("indptr", big_endian(&[0, 2, 3, 3, 5])),
])]
#[case::mixed(vec![
    ("indices", u32s(&[1, 2, 0, 0, 1])),
    ("shape", big_endian(&[4, 3])),
])]
#[case::i8(vec![("indices", vector("|i1", &[[1], [2], [0], [0], [1]]))])]
#[case::f16(vec![("data", halves())])]
#[case::unicode(vec![(
    "format",
    array(&header("<U3", "False", "()"), b"c\0\0\0s\0\0\0r\0\0\0"),
)])]
fn numbers_of_every_type_are_read(#[case] changes: Arrays) {
    let arrays = with(csr(), changes);
    assert_eq!(read::<f64>(&arrays, Values::Needed).unwrap(), expected());
}

#[rstest]
fn matrices_without_rows_columns_or_entries(
    #[values([0, 0], [0, 7], [3, 0], [3, 7])] shape: [i32; 2],
) {
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

#[rstest]
#[case::csr(csr())]
#[case::coo(coo())]
fn memory_does_not_follow_columns(#[case] arrays: Arrays) {
    let wide = vec![("shape", i32s(&[4, i32::MAX - 4095]))];
    let matrix = read::<f64>(&with(arrays, wide), Values::Needed).unwrap();
    assert_eq!(matrix.indptr, expected().indptr);
}

fn changed(arrays: Arrays, name: &'static str, bytes: Vec<u8>) -> Arrays {
    with(arrays, vec![(name, bytes)])
}

fn blocks(shape: &str) -> Vec<u8> {
    array(&header("<f8", "False", shape), &[0; 96])
}

fn huge() -> Vec<u8> {
    zeros("<i4", 4, 3 << 20)
}

fn huge_data() -> Vec<u8> {
    zeros("|b1", 1, 3 << 20)
}

#[rstest]
#[case::format(changed(csr(), "format", format(b"lil")), "\"lil\"")]
#[case::format(changed(csr(), "format", format(b"lil")), ".tocsr()")]
#[case::format(changed(csr(), "format", format(b"\x1b[m")), "\\u{1b}")]
#[case::format(changed(csr(), "format", i32s(&[3])), "int32")]
#[case::format(changed(csr(), "format", format(b"bsr")), "array data: shape [5]")]
#[case::format(changed(csr(), "format", format(b"coo")), "array row")]
#[case::format(changed(csr(), "format", format(b"csc")), "3 columns need 4")]
#[case::format(changed(coo(), "format", format(b"csr")), "array indices")]
#[case::missing(without(csr(), "shape"), "array shape: it is missing")]
#[case::missing(without(csr(), "indptr"), "array indptr: it is missing")]
#[case::missing(without(csr(), "indices"), "array indices: it is missing")]
#[case::missing(without(csr(), "data"), "array data: it is missing")]
#[case::missing(without(coo(), "col"), "array col: it is missing")]
#[case::missing(without(bsr(), "data"), "array data: it is missing")]
#[case::shape(changed(csr(), "shape", i32s(&[4])), "1 numbers, a matrix has 2")]
#[case::shape(changed(csr(), "shape", i32s(&[4, 3, 1])), "3 numbers")]
#[case::shape(changed(csr(), "shape", i32s(&[4, -3])), "-3")]
#[case::shape(changed(csr(), "shape", f64s(&[4.0, 3.0])), "integers")]
#[case::shape(changed(csr(), "shape", i32s(&[i32::MAX, 3])), "2147479552")]
#[case::shape(changed(csr(), "shape", i32s(&[4, i32::MAX])), "columns")]
#[case::shape(changed(csr(), "shape", zeros("<i4", 4, 3 << 20)), "shape")]
#[case::shape(
    changed(csr(), "shape", i32s(&[1_000_000_000, 3])),
    "1000000000 rows need"
)]
#[case::offsets(changed(csr(), "indptr", i32s(&[0, 5])), "4 rows need 5")]
#[case::offsets(
    changed(csr(), "indptr", i32s(&[0, 3, 2, 3, 5])),
    "decreases after 1 rows"
)]
#[case::offsets(changed(csr(), "indptr", i32s(&[0, 2, 3, 3, -5])), "-5")]
#[case::offsets(changed(csr(), "indptr", i32s(&[1, 2, 3, 3, 5])), "begins with 1")]
#[case::offsets(changed(csr(), "indptr", i32s(&[0, 2, 3, 3, 6])), "ends with 6")]
#[case::offsets(changed(csr(), "indptr", f64s(&[0.0; 5])), "float64")]
#[case::indices(
    changed(csr(), "indices", i32s(&[1, 2, 3, 0, 1])),
    "column 3 of entry 2"
)]
#[case::indices(changed(csr(), "indices", i32s(&[1, 2, -1, 0, 1])), "-1")]
#[case::indices(changed(csc(), "indices", i32s(&[1, 3, 4, 3, 0])), "row 4 of entry 2")]
#[case::indices(changed(coo(), "row", i32s(&[3, 0, 4, 1, 0])), "row 4 of entry 2")]
#[case::indices(changed(coo(), "col", i32s(&[3, 0, 1, 1, 0])), "column 3 of entry 0")]
#[case::indices(changed(bsr(), "indices", i32s(&[1, 2])), "block column 2")]
#[case::indices(changed(csr(), "indices", f64s(&[1.0; 5])), "integers")]
#[case::lengths(changed(csr(), "data", f64s(&[1.0; 4])), "4 values for 5 entries")]
#[case::lengths(changed(coo(), "col", i32s(&[0; 4])), "4 columns for the 5 rows")]
#[case::lengths(changed(coo(), "data", f64s(&[0.0; 4])), "4 values for 5 entries")]
#[case::blocks(changed(bsr(), "indices", i32s(&[1])), "2 blocks")]
#[case::blocks(changed(bsr(), "data", blocks("(2, 3, 2)")), "blocks of 3 × 2")]
#[case::blocks(changed(bsr(), "data", blocks("(2, 6, 1)")), "do not fill")]
#[case::blocks(changed(bsr(), "data", zeros("<f8", 8, 2)), "[blocks, height, width]")]
#[case::blocks(
    changed(bsr(), "data", array(&header("<f8", "False", "(2, 0, 3)"), &[])),
    "blocks of 0 × 3"
)]
#[case::diagonals(changed(dia(), "offsets", i32s(&[2, 2])), "diagonal 2 is there twice")]
#[case::diagonals(changed(dia(), "offsets", i32s(&[2])), "2 diagonals")]
#[case::diagonals(changed(dia(), "offsets", f64s(&[2.0, 1.0])), "integers are needed")]
#[case::diagonals(changed(dia(), "data", f64s(&[2.0])), "[diagonals, columns]")]
#[case::coords(changed(coords(), "coords", i32s(&[1, 2])), "[2, entries]")]
#[case::coords(changed(coords(), "data", f64s(&[1.0])), "1 values for 5 entries")]
#[case::coords(changed(coords(), "shape", i32s(&[3, 3])), "row 3 of entry 0")]
#[case::huge(changed(csr(), "data", huge_data()), "3145728 values for 5")]
#[case::huge(changed(csr(), "indptr", huge()), "3145728 offsets")]
#[case::huge(
    with(coo(), vec![("row", huge()), ("col", huge()), ("data", huge_data())]),
    "3145728 entries for the 12 places"
)]
fn hostile_matrices_are_refused(#[case] arrays: Arrays, #[case] word: &str) {
    let error = read::<f64>(&arrays, Values::Needed).unwrap_err();
    assert!(error.contains(word), "{word}: {error}");
    assert!(error.len() < 500 && !error.contains(char::is_control), "{error}");
}
