//! Hand-written arrays.
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

#[test]
fn numbers_of_every_width_in_both_orders() {
    let half = half::f16::from_f64(-2.5);
    for (descr, bytes, expected) in [
        ("|b1", [[0u8], [1], [7]].concat(), vec![0.0, 1.0, 1.0]),
        ("|u1", vec![0, 255], vec![0.0, 255.0]),
        ("|i1", vec![255, 127], vec![-1.0, 127.0]),
        ("<u2", vec![0, 1, 255, 255], vec![256.0, 65_535.0]),
        (">u2", vec![0, 1, 255, 255], vec![1.0, 65_535.0]),
        ("<i2", vec![254, 255], vec![-2.0]),
        (">i2", vec![255, 254], vec![-2.0]),
        ("<u4", vec![255; 4], vec![f64::from(u32::MAX)]),
        (">u4", vec![0, 0, 1, 2], vec![258.0]),
        ("<i4", (-3i32).to_le_bytes().to_vec(), vec![-3.0]),
        (">i4", (-3i32).to_be_bytes().to_vec(), vec![-3.0]),
        (
            "<u8",
            (1u64 << 40).to_le_bytes().to_vec(),
            vec![(1u64 << 40) as f64],
        ),
        (
            ">u8",
            (1u64 << 40).to_be_bytes().to_vec(),
            vec![(1u64 << 40) as f64],
        ),
        ("<i8", (-5i64).to_le_bytes().to_vec(), vec![-5.0]),
        (">i8", (-5i64).to_be_bytes().to_vec(), vec![-5.0]),
        ("<f2", half.to_le_bytes().to_vec(), vec![-2.5]),
        (">f2", half.to_be_bytes().to_vec(), vec![-2.5]),
        ("<f4", 1.5f32.to_le_bytes().to_vec(), vec![1.5]),
        (">f4", 1.5f32.to_be_bytes().to_vec(), vec![1.5]),
        ("<f8", 0.1f64.to_le_bytes().to_vec(), vec![0.1]),
        (">f8", 0.1f64.to_be_bytes().to_vec(), vec![0.1]),
        ("=f8", 0.1f64.to_ne_bytes().to_vec(), vec![0.1]),
        ("f4", 1.5f32.to_ne_bytes().to_vec(), vec![1.5]),
    ] {
        let shape = format!("({},)", expected.len());
        let file = array(&header(descr, "False", &shape), &bytes);
        assert_eq!(f64s(&file), expected, "{descr}");
        let rounded: Vec<f32> = expected.iter().map(|&x| x as f32).collect();
        assert_eq!(open(&file).unwrap().into_f32().unwrap(), rounded, "{descr}");
        let nonzero: Vec<bool> = expected.iter().map(|&x| x != 0.0).collect();
        assert_eq!(
            open(&file).unwrap().into_nonzero().unwrap(),
            nonzero,
            "{descr}"
        );
    }
    // Rounds once.
    let odd = (1i64 << 53) + (1 << 29) + 1;
    let file = vector("<i8", &[odd.to_le_bytes()]);
    assert_eq!(open(&file).unwrap().into_f32().unwrap(), [odd as f32]);
    let zeros = vector("<f8", &[-0.0f64, 1e-300, f64::NAN].map(f64::to_le_bytes));
    assert_eq!(
        open(&zeros).unwrap().into_nonzero().unwrap(),
        [false, true, true]
    );
}

#[test]
fn indices_of_every_integer_type() {
    let max = u64::from(u32::MAX);
    for (file, expected) in [
        (vector("|u1", &[[7], [255]]), vec![7, 255]),
        (vector("|i1", &[[7]]), vec![7]),
        (vector("<u2", &[[1, 2]]), vec![513]),
        (vector(">i2", &[[1, 2]]), vec![258]),
        (vector("<i4", &[[1, 0, 0, 0]]), vec![1]),
        (vector("<u4", &[[255; 4]]), vec![u32::MAX]),
        (vector(">u4", &[[0, 0, 0, 9]]), vec![9]),
        (vector("<i8", &[max.to_le_bytes()]), vec![u32::MAX]),
        (vector("<u8", &[max.to_le_bytes()]), vec![u32::MAX]),
    ] {
        assert_eq!(open(&file).unwrap().into_u32().unwrap(), expected);
    }
    for (file, word) in [
        (vector("<i8", &[(-1i64).to_le_bytes()]), "-1"),
        (vector("|i1", &[[255]]), "-1"),
        (vector("<u8", &[(max + 1).to_le_bytes()]), "4294967296"),
        (vector("<u8", &[[255; 8]]), "18446744073709551615"),
        (vector("<f4", &[[0; 4]]), "float32"),
        (vector("|b1", &[[1]]), "bool"),
    ] {
        let error = open(&file).unwrap().into_u32().unwrap_err();
        assert!(error.contains(word) && !error.contains('\n'), "{error}");
    }
}

#[test]
fn fortran_order_is_transposed() {
    let values = [1.0f32, 4.0, 2.0, 5.0, 3.0, 6.0]
        .map(f32::to_le_bytes)
        .concat();
    let file = array(&header("<f4", "True", "(2, 3)"), &values);
    assert_eq!(f64s(&file), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    // Several chunks.
    let (rows, cols) = (100_003usize, 3usize);
    let values: Vec<u8> = (0..(rows * cols) as u32)
        .flat_map(u32::to_be_bytes)
        .collect();
    let file = array(&header(">u4", "True", "(100003, 3)"), &values);
    let read = open(&file).unwrap();
    assert!(read.header().fortran && read.header().big_endian);
    let transposed = read.into_u32().unwrap();
    for (row, col) in [(0, 0), (1, 0), (0, 1), (77_777, 2), (rows - 1, cols - 1)] {
        assert_eq!(transposed[row * cols + col] as usize, col * rows + row);
    }
    let vector = array(&header("|u1", "True", "(2,)"), &[3, 4]);
    assert!(!open(&vector).unwrap().header().fortran);
    assert_eq!(f64s(&vector), [3.0, 4.0]);
    for shape in ["(0, 3)", "(3, 0)"] {
        assert!(f64s(&array(&header("<f4", "True", shape), &[])).is_empty());
    }
    let cube = array(&header("|u1", "True", "(1, 2, 1)"), &[3, 4]);
    let error = open(&cube).unwrap().into_f32().unwrap_err();
    assert!(error.contains("ascontiguousarray"), "{error}");
}

#[test]
fn the_first_values_of_a_vector() {
    let file = vector("<u2", &[[1, 0], [2, 0], [3, 0]]);
    let first = |count| open(&file).unwrap().first(count).into_u32().unwrap();
    assert!(first(0).is_empty());
    assert_eq!(first(2), [1, 2]);
    assert_eq!(first(9), [1, 2, 3]);
}

#[test]
fn every_version_of_the_format() {
    let text = header("<f4", "False", "(1,)");
    for version in [1, 2, 3] {
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
}

#[test]
fn headers_are_read_as_python_does() {
    for text in [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1)}",
        "{'shape':(2,1,),'fortran_order':False,'descr':'<f4',}",
        "{\"descr\": \"<f4\",\n \"fortran_order\": False,\t\"shape\": ( 2 , 1 , ), }\n",
        "  {'descr': '<f4', 'fortran_order': False, 'shape': (2L, 1L), }  \n",
    ] {
        let file = array(text, &[0; 8]);
        assert_eq!(open(&file).unwrap().shape(), [2, 1], "{text}");
    }
    let scalar = array(&header("<f4", "False", "()"), &[0; 4]);
    assert!(open(&scalar).unwrap().shape().is_empty());
}

#[test]
fn words() {
    let read = |t: &str, bytes: &[u8]| open(&array(&header(t, "False", "()"), bytes))?.into_text();
    assert_eq!(read("|S3", b"csr").unwrap(), "csr");
    assert_eq!(read("|S4", b"csr\0").unwrap(), "csr");
    assert_eq!(read("<U2", b"c\0\0\0s\0\0\0").unwrap(), "cs");
    assert_eq!(read(">U2", b"\0\0\0c\0\0\0s").unwrap(), "cs");
    assert!(read("<U1", &[255; 4]).is_err());
    assert!(read("|S100", &[b'a'; 100]).is_err());
    assert!(read("|S0", &[]).is_err());
    assert!(read("<U9223372036854775807", &[0; 4]).is_err());
    assert!(read("<f4", &[0; 4]).is_err());
}

#[test]
fn hostile_headers_are_refused() {
    let deep = |token: &str| token.repeat(9_000 / token.len());
    let plain = |shape: &str| header("<f4", "False", shape);
    let descr = |descr: &str| header(descr, "False", "(2,)");
    for (text, word) in [
        (plain("(3,)"), "shape [3] of float32, but 8 bytes"),
        (plain("(1,)"), "8 bytes"),
        (plain("(18446744073709551615, 2)"), "shape"),
        (plain("(4294967296, 4294967296)"), "shape"),
        (plain("(1000000000000,)"), "shape"),
        (plain("(99999999999999999999999,)"), "shape"),
        (plain("(-1,)"), "shape"),
        (plain("3"), "shape"),
        (plain("(3)"), "shape"),
        (plain("[2]"), "shape"),
        (plain("(2 1)"), "shape"),
        (plain("(,)"), "shape"),
        (plain("(2,,)"), "shape"),
        (plain("(2.0,)"), "shape"),
        (plain("(True,)"), "shape"),
        (plain("(2"), "shape"),
        (plain(&format!("({})", "1, ".repeat(65))), "shape"),
        (deep("["), "dictionary"),
        (deep("{'descr': "), "string"),
        (plain(&deep("[")), "shape"),
        (plain(&deep("(")), "shape"),
        (header(&deep("["), "False", "(2,)"), "dtype [[["),
        (
            format!("{{'descr': {}, 'fortran_order': False}}", deep("[")),
            "structured",
        ),
        (String::new(), "dictionary"),
        ("{".to_string(), "key"),
        ("{}".to_string(), "descr"),
        ("{'descr': '<f4', }".to_string(), "fortran_order"),
        (
            "{'descr': '<f4', 'fortran_order': False}".to_string(),
            "shape",
        ),
        (
            "{'descr': '<f4', 'descr': '<f4'}".to_string(),
            "descr twice",
        ),
        ("{'x\x1b[2J': 1}".to_string(), "\\u{1b}[2J"),
        ("{'descr' '<f4'}".to_string(), "value"),
        ("{'descr': '<f4' 'shape': (2,)}".to_string(), "broken"),
        (format!("{} 7", plain("(2,)")), "goes on"),
        (header("<f4", "1", "(2,)"), "fortran_order"),
        (header("<f4", "TrueFalse", "(2,)"), "fortran_order"),
        (descr("<c8"), "dtype <c8"),
        (descr("|O"), "pickled"),
        (descr("<M8[ns]"), "dtype <M8[ns]"),
        (descr("<f16"), "dtype <f16"),
        (descr("|V4"), "dtype |V4"),
        (descr("<S+4"), "dtype <S+4"),
        (descr(""), "dtype"),
        (descr("<"), "dtype"),
        (descr("ü4"), "dtype"),
        (descr("\\x3cf4"), "string"),
        (descr(&"x\x1b".repeat(4_000)), "\\u{1b}"),
        (
            "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}".to_string(),
            "a[\"x\"]",
        ),
    ] {
        let error = open(&array(&text, &[0; 8])).unwrap_err();
        assert!(error.contains(word), "{text:.60}: {error}");
        assert!(
            error.len() < 1_500 && !error.contains(char::is_control),
            "{text:.60}: {error}"
        );
    }
    for (file, word) in [
        (&b""[..], "truncated"),
        (b"\x93NUMPX\x01\x00", "npy"),
        (b"\x93NUMPY\x01\x00", "truncated"),
        (b"\x93NUMPY\x01\x00\x10\x00{", "truncated"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "declares"),
        (b"\x93NUMPY\x01\x00\x11\x27", "declares 10001 bytes"),
    ] {
        let error = open(file).unwrap_err();
        assert!(error.contains(word), "{error}");
    }
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
