//! npy arrays: arbitrary bytes, and arbitrary values behind valid headers.
//!
//! Nothing may panic or exceed the memory limit; results have the declared length.

#![no_main]

use std::io::Read;

use libfuzzer_sys::{arbitrary::Unstructured, fuzz_target};
use sparsek::io::{memory, npy::Npy};

const DESCRS: [&str; 18] = [
    "|b1", "|u1", "<u2", ">u4", "<u8", "|i1", ">i2", "<i4", "<i8", ">i8", "<f2", ">f4", "<f8",
    "=f8", "|S3", "<U2", "<c8", "|O",
];

fuzz_target!(|bytes: &[u8]| {
    memory::set_limit(64 << 20);
    check(bytes);
    if let Some(file) = array(bytes) {
        check(&file);
    }
});

/// A header decoded from the first bytes, then the others as values.
fn array(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut input = Unstructured::new(bytes);
    let descr = input.choose(&DESCRS).ok()?;
    let order = input.choose(&["True", "False"]).ok()?;
    let version = input.int_in_range(1..=3u8).ok()?;
    let dims = input.int_in_range(0..=3usize).ok()?;
    let shape: Vec<u16> = (0..dims)
        .map(|_| input.int_in_range(0..=40).unwrap_or(0))
        .collect();
    let size: usize = descr[2..].parse().unwrap_or(1);
    let fits: bool = input.arbitrary().ok()?;
    let text: Vec<String> = shape.iter().map(|size| format!("{size}, ")).collect();
    let header = format!(
        "{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({}), }}\n",
        text.concat()
    );
    let mut file = b"\x93NUMPY".to_vec();
    file.extend([version, 0]);
    let length = (header.len() as u32).to_le_bytes();
    file.extend(&length[..if version == 1 { 2 } else { 4 }]);
    file.extend(header.as_bytes());
    let start = file.len();
    file.extend(input.take_rest());
    if fits {
        let len: usize = shape.iter().map(|&size| usize::from(size)).product();
        file.resize(start + len * size, 7);
    }
    Some(file)
}

fn check(file: &[u8]) {
    let open = || Npy::open(file, file.len() as u64);
    let Ok(array) = open() else { return };
    let header = array.header().clone();
    assert_eq!(header.shape.iter().product::<usize>(), header.len);
    let bytes = header.dtype.size().expect("it was counted") * header.len;
    assert_eq!(header.start + bytes, file.len());
    same_length(header.len, array.into_f32());
    let nonzero = open().and_then(Npy::into_nonzero);
    let doubles = open().and_then(Npy::into_f64);
    same_length(header.len, open().and_then(Npy::into_u32));
    let _ = open().and_then(Npy::into_text);
    if let (Ok(nonzero), Ok(doubles)) = (nonzero, doubles) {
        let expected: Vec<bool> = doubles.iter().map(|&x| x != 0.0).collect();
        assert_eq!(nonzero, expected);
        same_length(header.len, Ok(doubles));
    }
    if header.shape.len() == 1 {
        let count = header.len / 2;
        same_length(
            count,
            open().and_then(|array| array.first(count).into_f64()),
        );
    }
    // A reader shorter than its declared size.
    if let Ok(longer) = Npy::open(file.take(file.len() as u64 / 2), file.len() as u64) {
        assert!(longer.into_f64().is_err() || bytes == 0);
    }
}

fn same_length<T>(len: usize, values: Result<Vec<T>, String>) {
    match values {
        Ok(values) => assert_eq!(values.len(), len),
        Err(reason) => assert!(!reason.contains(char::is_control), "{reason:?}"),
    }
}
