//! Expected values: `scipy.io.mmread(file).tocsr()`, scipy 1.17.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use rstest::rstest;

use super::*;

fn file(kind: &str, lines: &[&str]) -> Vec<u8> {
    format!("%%MatrixMarket matrix {kind}\n{}\n", lines.join("\n")).into_bytes()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn dense(matrix: &Matrix<f64>) -> Vec<Vec<f64>> {
    let values = matrix.values.as_ref().unwrap();
    let row = |ends: &[u32]| {
        let mut row = vec![0.0; matrix.shape[1]];
        for entry in ends[0] as usize..ends[1] as usize {
            row[matrix.indices[entry] as usize] += values[entry];
        }
        row
    };
    matrix.indptr.windows(2).map(row).collect()
}

#[rstest]
#[case::general(
    "coordinate real general",
    &["2 3 3", "1 3 1.5", "2 1 -2e1", "1 1 0"],
    vec![vec![0.0, 0.0, 1.5], vec![-20.0, 0.0, 0.0]],
)]
#[case::repeated(
    "coordinate real general",
    &["1 2 3", "1 2 1", "1 1 4", "1 2 2"],
    vec![vec![4.0, 3.0]],
)]
#[case::lower("coordinate real symmetric", &["2 2 2", "2 1 3", "2 2 4"], vec![
    vec![0.0, 3.0],
    vec![3.0, 4.0],
])]
#[case::upper("coordinate real symmetric", &["2 2 2", "1 2 3", "2 2 4"], vec![
    vec![0.0, 3.0],
    vec![3.0, 4.0],
])]
#[case::both("coordinate real symmetric", &["2 2 2", "1 2 3", "2 1 4"], vec![
    vec![0.0, 7.0],
    vec![7.0, 0.0],
])]
#[case::skew("coordinate real skew-symmetric", &["2 2 2", "1 1 3", "2 1 4"], vec![
    vec![3.0, -4.0],
    vec![4.0, 0.0],
])]
#[case::pattern("coordinate pattern general", &["2 3 3", "1 2", "2 2", "2 2"], vec![
    vec![0.0, 1.0, 0.0],
    vec![0.0, 2.0, 0.0],
])]
#[case::symmetric_pattern("coordinate pattern symmetric", &["2 2 1", "2 1"], vec![
    vec![0.0, 1.0],
    vec![1.0, 0.0],
])]
#[case::integer("coordinate integer general", &["1 2 2", "1 1 -7", "1 2 +9007199254740993"], vec![
    vec![-7.0, 9007199254740992.0],
])]
#[case::words("COORDINATE Double General", &["1 1 1", "1 1 2"], vec![vec![2.0]])]
#[case::comments(
    "coordinate real general",
    &["% a", "", "%\u{e4}", " 1 2 1 ", "%", "", "\t1  2\t3\r", "% the end", ""],
    vec![vec![0.0, 3.0]],
)]
#[case::infinity("coordinate real general", &["1 2 2", "1 1 -Inf", "1 2 1e400"], vec![
    vec![f64::NEG_INFINITY, f64::INFINITY],
])]
#[case::no_entries("coordinate real general", &["2 1 0"], vec![vec![0.0], vec![0.0]])]
#[case::no_rows("coordinate real general", &["0 3 0"], vec![])]
fn every_kind_of_matrix_is_read(
    #[case] kind: &str,
    #[case] lines: &[&str],
    #[case] expected: Vec<Vec<f64>>,
    #[values(false, true)] zipped: bool,
) {
    let plain = file(kind, lines);
    let bytes = if zipped { gzipped(&plain) } else { plain };
    let matrix = read::<f64>(bytes.as_slice()).unwrap();
    assert_eq!(dense(&matrix), expected);
}

#[test]
fn explicit_zeros_and_the_order_of_a_row_are_kept() {
    let bytes = file("coordinate real general", &["2 3 3", "2 3 1", "1 2 0", "2 1 5"]);
    let matrix = read::<f64>(bytes.as_slice()).unwrap();
    assert_eq!(matrix.indptr, [0, 1, 3]);
    assert_eq!(matrix.indices, [1, 2, 0]);
    assert_eq!(matrix.values.unwrap(), [0.0, 1.0, 5.0]);
}

#[test]
fn zipped_parts_follow_each_other() {
    let [start, end] = ["1 2 2\n1 1 1\n", "1 2 2\n"];
    let mut bytes = gzipped(&file("coordinate real general", &[start.trim_end()]));
    bytes.extend(gzipped(end.as_bytes()));
    assert_eq!(dense(&read(bytes.as_slice()).unwrap()), [[1.0, 2.0]]);
}

const GENERAL: &str = "coordinate real general";

#[rstest]
#[case::array("array real general", &["1 1", "5"], "line 1: the format is \"array\"; coordinate")]
#[case::complex("coordinate complex general", &["1 1 0"], "the field is \"complex\"; real,")]
#[case::hermitian("coordinate real hermitian", &["1 1 0"], "the symmetry is \"hermitian\"")]
#[case::words("coordinate real", &["1 1 0"], "line 1: ")]
#[case::no_sizes(GENERAL, &["% only a comment"], "the line of sizes is missing")]
#[case::sizes(GENERAL, &["1 1"], "line 2: rows, columns and entries are needed")]
#[case::sizes(GENERAL, &["1 1 -1"], "line 2: rows, columns and entries are needed")]
#[case::not_square("coordinate real symmetric", &["2 3 0"], "2 × 3 is not square")]
#[case::rows(GENERAL, &["2147483648 1 0"], "rows: 2147483648 exceed the limit of 2147")]
#[case::columns(GENERAL, &["1 99999999999 0"], "columns: 99999999999 exceed the limit of 2147")]
#[case::entries(GENERAL, &["9 9 99999999999"], "99999999999 exceed the limit of 2147")]
#[case::twice(
    "coordinate real symmetric",
    &["2000 2000 2000001"],
    "4000002 entries for the 4000000 places"
)]
#[case::fewer(GENERAL, &["2 2 2", "1 1 1"], "2 entries are declared, 1 are there")]
#[case::more(GENERAL, &["2 2 1", "1 1 1", "%", "2 2 2"], "line 5: more than the 1 declared")]
#[case::row(GENERAL, &["2 2 1", "0 1 1"], "line 3: row \"0\" is out of range: the matrix has 2")]
#[case::row(GENERAL, &["2 2 1", "3 1 1"], "row \"3\" is out of range")]
#[case::column(GENERAL, &["2 1 1", "2 2 1"], "column \"2\" is out of range")]
#[case::column(GENERAL, &["2 2 1", "2 x 1"], "column \"x\" is out of range")]
#[case::value(GENERAL, &["2 2 1", "2 2"], "line 3: the value is missing")]
#[case::value(GENERAL, &["2 2 1", "2 2 a"], "the value \"a\" is no number")]
#[case::integer("coordinate integer general", &["2 2 1", "2 2 1.5"], "\"1.5\" is no integer")]
#[case::pattern("coordinate pattern general", &["2 2 1", "2 2 1"], "\"1\" follows the entry")]
#[case::control(GENERAL, &["2 2 1", "2 2 \u{1b}[2J"], "\\u{1b}")]
fn broken_files_are_one_line(#[case] kind: &str, #[case] lines: &[&str], #[case] word: &str) {
    let error = read::<f64>(file(kind, lines).as_slice()).unwrap_err();
    assert!(error.contains(word), "{word}: {error}");
    assert!(error.len() < 500 && !error.contains(char::is_control), "{error}");
}

#[rstest]
#[case::empty(b"".to_vec(), "does not begin with %%MatrixMarket")]
#[case::text(b"1 2 3\n".to_vec(), "does not begin with %%MatrixMarket")]
#[case::bytes(b"\xff\xfe".to_vec(), "not text")]
#[case::long(vec![b'%'; 1 << 17], "longer than 65536 bytes")]
#[case::long([file(GENERAL, &["1 1 1"]), vec![b'1'; 1 << 17]].concat(), "line 3: longer")]
#[case::zip(b"\x1f\x8b\x08nothing".to_vec(), "line 1: ")]
fn other_bytes_are_one_line(#[case] bytes: Vec<u8>, #[case] word: &str) {
    let error = read::<f64>(bytes.as_slice()).unwrap_err();
    assert!(error.contains(word), "{word}: {error}");
    assert!(error.len() < 500 && !error.contains(char::is_control), "{error}");
}

#[rstest]
fn truncated_files_are_refused(#[values(false, true)] zipped: bool) {
    let plain = file(GENERAL, &["2 2 2", "1 1 1.5", "2 2 7.25"]);
    let bytes = if zipped { gzipped(&plain) } else { plain.clone() };
    // Cuts within the last number go unnoticed.
    let needed = if zipped { bytes.len() } else { plain.len() - "7.25\n".len() };
    for length in 0..needed {
        assert!(read::<f64>(&bytes[..length]).is_err(), "{length} bytes");
    }
}
