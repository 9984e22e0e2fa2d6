use rstest::rstest;

use super::*;

pub fn array(header: &str, values: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values);
    bytes
}

pub fn header(descr: &str, order: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}   \n")
}

pub fn vector<const N: usize>(descr: &str, values: &[[u8; N]]) -> Vec<u8> {
    let shape = format!("({},)", values.len());
    array(&header(descr, "False", &shape), &values.concat())
}

fn open(bytes: &[u8]) -> Result<Npy<&[u8]>, String> {
    Npy::open(bytes, bytes.len() as u64)
}

fn f64s(bytes: &[u8]) -> Vec<f64> {
    open(bytes).unwrap().into_f64().unwrap()
}

#[rstest]
#[case("|b1", &[0, 1, 7], &[0.0, 1.0, 1.0])]
#[case("|u1", &[0, 255], &[0.0, 255.0])]
#[case("|i1", &[255, 127], &[-1.0, 127.0])]
#[case("<u2", &[0, 1, 255, 255], &[256.0, 65_535.0])]
#[case(">u2", &[0, 1, 255, 255], &[1.0, 65_535.0])]
#[case("<i2", &[254, 255], &[-2.0])]
#[case(">i2", &[255, 254], &[-2.0])]
#[case("<u4", &[255; 4], &[f64::from(u32::MAX)])]
#[case(">u4", &[0, 0, 1, 2], &[258.0])]
#[case("<i4", &(-3i32).to_le_bytes(), &[-3.0])]
#[case(">i4", &(-3i32).to_be_bytes(), &[-3.0])]
#[case("<u8", &(1u64 << 40).to_le_bytes(), &[(1u64 << 40) as f64])]
#[case(">u8", &(1u64 << 40).to_be_bytes(), &[(1u64 << 40) as f64])]
#[case("<i8", &(-5i64).to_le_bytes(), &[-5.0])]
#[case(">i8", &(-5i64).to_be_bytes(), &[-5.0])]
#[case("<f2", &half::f16::from_f64(-2.5).to_le_bytes(), &[-2.5])]
#[case(">f2", &half::f16::from_f64(-2.5).to_be_bytes(), &[-2.5])]
#[case("<f4", &1.5f32.to_le_bytes(), &[1.5])]
#[case(">f4", &1.5f32.to_be_bytes(), &[1.5])]
#[case("<f8", &0.1f64.to_le_bytes(), &[0.1])]
#[case(">f8", &0.1f64.to_be_bytes(), &[0.1])]
#[case("=f8", &0.1f64.to_ne_bytes(), &[0.1])]
#[case("f4", &1.5f32.to_ne_bytes(), &[1.5])]
fn numbers_of_every_width_in_both_orders(
    #[case] descr: &str,
    #[case] bytes: &[u8],
    #[case] expected: &[f64],
) {
    let shape = format!("({},)", expected.len());
    let file = array(&header(descr, "False", &shape), bytes);
    assert_eq!(f64s(&file), expected);
    let rounded: Vec<f32> = expected.iter().map(|&x| x as f32).collect();
    assert_eq!(open(&file).unwrap().into_f32().unwrap(), rounded);
    let nonzero: Vec<bool> = expected.iter().map(|&x| x != 0.0).collect();
    assert_eq!(open(&file).unwrap().into_nonzero().unwrap(), nonzero);
}

#[test]
fn integers_are_rounded_once() {
    let odd = (1i64 << 53) + (1 << 29) + 1;
    let file = vector("<i8", &[odd.to_le_bytes()]);
    assert_eq!(open(&file).unwrap().into_f32().unwrap(), [odd as f32]);
}

#[test]
fn small_numbers_and_nan_are_not_zero() {
    let zeros = vector("<f8", &[-0.0f64, 1e-300, f64::NAN].map(f64::to_le_bytes));
    assert_eq!(open(&zeros).unwrap().into_nonzero().unwrap(), [false, true, true]);
}

const MAX: u64 = u32::MAX as u64;

#[rstest]
#[case::u8(vector("|u1", &[[7], [255]]), &[7, 255])]
#[case::i8(vector("|i1", &[[7]]), &[7])]
#[case::u16(vector("<u2", &[[1, 2]]), &[513])]
#[case::i16(vector(">i2", &[[1, 2]]), &[258])]
#[case::i32(vector("<i4", &[[1, 0, 0, 0]]), &[1])]
#[case::u32(vector("<u4", &[[255; 4]]), &[u32::MAX])]
#[case::u32(vector(">u4", &[[0, 0, 0, 9]]), &[9])]
#[case::i64(vector("<i8", &[MAX.to_le_bytes()]), &[u32::MAX])]
#[case::u64(vector("<u8", &[MAX.to_le_bytes()]), &[u32::MAX])]
fn indices_of_every_integer_type(#[case] file: Vec<u8>, #[case] expected: &[u32]) {
    assert_eq!(open(&file).unwrap().into_u32().unwrap(), expected);
}

#[rstest]
#[case::negative_i64(vector("<i8", &[(-1i64).to_le_bytes()]), "-1")]
#[case::negative_i8(vector("|i1", &[[255]]), "-1")]
#[case::large(vector("<u8", &[(MAX + 1).to_le_bytes()]), "4294967296")]
#[case::largest(vector("<u8", &[[255; 8]]), "18446744073709551615")]
#[case::float(vector("<f4", &[[0; 4]]), "float32")]
#[case::bool(vector("|b1", &[[1]]), "bool")]
fn other_numbers_are_no_indices(#[case] file: Vec<u8>, #[case] word: &str) {
    let error = open(&file).unwrap().into_u32().unwrap_err();
    assert!(error.contains(word) && !error.contains('\n'), "{error}");
}

#[test]
fn fortran_order_is_transposed() {
    let values = [1.0f32, 4.0, 2.0, 5.0, 3.0, 6.0].map(f32::to_le_bytes).concat();
    let file = array(&header("<f4", "True", "(2, 3)"), &values);
    assert_eq!(f64s(&file), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let (rows, cols) = (100_003usize, 3usize);
    let values: Vec<u8> = (0..(rows * cols) as u32).flat_map(u32::to_be_bytes).collect();
    let file = array(&header(">u4", "True", "(100003, 3)"), &values);
    let read = open(&file).unwrap();
    assert!(read.header().fortran && read.header().big_endian);
    let transposed = read.into_u32().unwrap();
    for (row, col) in [(0, 0), (1, 0), (0, 1), (77_777, 2), (rows - 1, cols - 1)] {
        assert_eq!(transposed[row * cols + col] as usize, col * rows + row);
    }
}

#[rstest]
fn empty_matrices_in_fortran_order_are_read(#[values("(0, 3)", "(3, 0)")] shape: &str) {
    assert!(f64s(&array(&header("<f4", "True", shape), &[])).is_empty());
}

#[test]
fn only_matrices_in_fortran_order_are_transposed() {
    let vector = array(&header("|u1", "True", "(2,)"), &[3, 4]);
    assert!(!open(&vector).unwrap().header().fortran);
    assert_eq!(f64s(&vector), [3.0, 4.0]);
    let cube = array(&header("|u1", "True", "(1, 2, 1)"), &[3, 4]);
    let error = open(&cube).unwrap().into_f32().unwrap_err();
    assert!(error.contains("ascontiguousarray"), "{error}");
}

#[rstest]
#[case::none(0, &[])]
#[case::some(2, &[1, 2])]
#[case::more_than_all(9, &[1, 2, 3])]
fn the_first_values_of_a_vector(#[case] count: usize, #[case] expected: &[u32]) {
    let file = vector("<u2", &[[1, 0], [2, 0], [3, 0]]);
    let first = open(&file).unwrap().first(count);
    assert_eq!(first.into_u32().unwrap(), expected);
}

#[rstest]
fn every_version_of_the_format(#[values(1, 2, 3)] version: u8) {
    let text = header("<f4", "False", "(1,)");
    let mut file = b"\x93NUMPY".to_vec();
    file.extend([version, 0]);
    let length = (text.len() as u32).to_le_bytes();
    file.extend(&length[..if version == 1 { 2 } else { 4 }]);
    file.extend(text.as_bytes());
    let start = file.len();
    file.extend(1.5f32.to_le_bytes());
    assert_eq!(open(&file).unwrap().header().start, start);
    assert_eq!(f64s(&file), [1.5]);
    file[6] = 4;
    assert!(open(&file).unwrap_err().contains("version 4.0"));
}

#[rstest]
#[case::numpy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1)}")]
#[case::dense("{'shape':(2,1,),'fortran_order':False,'descr':'<f4',}")]
#[case::spaced("{\"descr\": \"<f4\",\n \"fortran_order\": False,\t\"shape\": ( 2 , 1 , ), }\n")]
#[case::python_2("  {'descr': '<f4', 'fortran_order': False, 'shape': (2L, 1L), }  \n")]
fn headers_are_read_as_python_does(#[case] text: &str) {
    let file = array(text, &[0; 8]);
    assert_eq!(open(&file).unwrap().shape(), [2, 1]);
}

#[test]
fn a_scalar_has_no_dimensions() {
    let scalar = array(&header("<f4", "False", "()"), &[0; 4]);
    assert!(open(&scalar).unwrap().shape().is_empty());
}

fn text(descr: &str, bytes: &[u8]) -> Result<String, String> {
    open(&array(&header(descr, "False", "()"), bytes))?.into_text()
}

#[rstest]
#[case("|S3", b"csr", "csr")]
#[case::padded("|S4", b"csr\0", "csr")]
#[case::little_endian("<U2", b"c\0\0\0s\0\0\0", "cs")]
#[case::big_endian(">U2", b"\0\0\0c\0\0\0s", "cs")]
fn words(#[case] descr: &str, #[case] bytes: &[u8], #[case] word: &str) {
    assert_eq!(text(descr, bytes).unwrap(), word);
}

#[rstest]
#[case::no_character("<U1", &[255; 4])]
#[case::long("|S100", &[b'a'; 100])]
#[case::empty("|S0", &[])]
#[case::overflow("<U9223372036854775807", &[0; 4])]
#[case::number("<f4", &[0; 4])]
fn other_arrays_are_no_words(#[case] descr: &str, #[case] bytes: &[u8]) {
    assert!(text(descr, bytes).is_err());
}

fn deep(token: &str) -> String {
    token.repeat(9_000 / token.len())
}

fn plain(shape: &str) -> String {
    header("<f4", "False", shape)
}

fn descr(descr: &str) -> String {
    header(descr, "False", "(2,)")
}

#[rstest]
#[case::shape(plain("(3,)"), "shape [3] of float32, but 8 bytes")]
#[case::shape(plain("(1,)"), "8 bytes")]
#[case::shape(plain("(18446744073709551615, 2)"), "shape")]
#[case::shape(plain("(4294967296, 4294967296)"), "shape")]
#[case::shape(plain("(1000000000000,)"), "shape")]
#[case::shape(plain("(99999999999999999999999,)"), "shape")]
#[case::shape(plain("(-1,)"), "shape")]
#[case::shape(plain("3"), "shape")]
#[case::shape(plain("(3)"), "shape")]
#[case::shape(plain("[2]"), "shape")]
#[case::shape(plain("(2 1)"), "shape")]
#[case::shape(plain("(,)"), "shape")]
#[case::shape(plain("(2,,)"), "shape")]
#[case::shape(plain("(2.0,)"), "shape")]
#[case::shape(plain("(True,)"), "shape")]
#[case::shape(plain("(2"), "shape")]
#[case::shape(plain(&format!("({})", "1, ".repeat(65))), "shape")]
#[case::deep(deep("["), "dictionary")]
#[case::deep(deep("{'descr': "), "string")]
#[case::deep(plain(&deep("[")), "shape")]
#[case::deep(plain(&deep("(")), "shape")]
#[case::deep(descr(&deep("[")), "dtype [[[")]
#[case::deep(
    format!("{{'descr': {}, 'fortran_order': False}}", deep("[")),
    "structured"
)]
#[case::dictionary("", "dictionary")]
#[case::dictionary("{", "key")]
#[case::dictionary("{}", "descr")]
#[case::dictionary("{'descr': '<f4', }", "fortran_order")]
#[case::dictionary("{'descr': '<f4', 'fortran_order': False}", "shape")]
#[case::dictionary("{'descr': '<f4', 'descr': '<f4'}", "descr twice")]
#[case::dictionary("{'x\x1b[2J': 1}", "\\u{1b}[2J")]
#[case::dictionary("{'descr' '<f4'}", "value")]
#[case::dictionary("{'descr': '<f4' 'shape': (2,)}", "broken")]
#[case::dictionary(format!("{} 7", plain("(2,)")), "goes on")]
#[case::order(header("<f4", "1", "(2,)"), "fortran_order")]
#[case::order(header("<f4", "TrueFalse", "(2,)"), "fortran_order")]
#[case::dtype(descr("<c8"), "dtype <c8")]
#[case::dtype(descr("|O"), "pickled")]
#[case::dtype(descr("<M8[ns]"), "dtype <M8[ns]")]
#[case::dtype(descr("<f16"), "dtype <f16")]
#[case::dtype(descr("|V4"), "dtype |V4")]
#[case::dtype(descr("<S+4"), "dtype <S+4")]
#[case::dtype(descr(""), "dtype")]
#[case::dtype(descr("<"), "dtype")]
#[case::dtype(descr("ü4"), "dtype")]
#[case::dtype(descr("\\x3cf4"), "string")]
#[case::dtype(descr(&"x\x1b".repeat(4_000)), "\\u{1b}")]
#[case::structured("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", "a[\"x\"]")]
fn hostile_headers_are_refused(#[case] text: String, #[case] word: &str) {
    let error = open(&array(&text, &[0; 8])).unwrap_err();
    assert!(error.contains(word), "{text:.60}: {error}");
    assert!(error.len() < 1_500 && !error.contains(char::is_control), "{text:.60}: {error}");
}

#[rstest]
#[case::empty(b"", "truncated")]
#[case::magic(b"\x93NUMPX\x01\x00", "npy")]
#[case::no_length(b"\x93NUMPY\x01\x00", "truncated")]
#[case::short_header(b"\x93NUMPY\x01\x00\x10\x00{", "truncated")]
#[case::long_header(b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "declares")]
#[case::long_header(b"\x93NUMPY\x01\x00\x11\x27", "declares 10001 bytes")]
fn broken_files_are_refused(#[case] file: &[u8], #[case] word: &str) {
    let error = open(file).unwrap_err();
    assert!(error.contains(word), "{error}");
}

#[test]
fn declared_sizes_take_no_memory() {
    let text = header("<f4", "False", "(250000000000000,)");
    let file = array(&text, &[0; 8]);
    let size = (10 + text.len()) as u64 + 1_000_000_000_000_000;
    let error = Npy::open(&file[..], size).unwrap().into_f32().unwrap_err();
    assert!(error.contains("SPARSEK_MAX_MEMORY"), "{error}");
    let text = header("<f4", "True", "(1000, 1000)");
    let file = array(&text, &[0; 8]);
    let open = Npy::open(&file[..], (10 + text.len()) as u64 + 4_000_000);
    assert_eq!(open.unwrap().into_f32().unwrap_err(), "truncated");
}
