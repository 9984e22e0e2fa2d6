//! Arrays written by hand, whole and broken.
use super::*;

fn array(header: &str, values: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values);
    bytes
}

fn open(bytes: &[u8]) -> Result<Npy<&[u8]>, String> {
    Npy::open(bytes, bytes.len() as u64)
}

#[test]
fn values_of_every_type() {
    let header = |t| format!("{{'descr': '{t}', 'fortran_order': False, 'shape': (2, 1), }}\n");
    let f64s = [1.5f64, -2.0].map(f64::to_le_bytes).concat();
    let bytes = array(&header("<f8"), &f64s);
    let read = open(&bytes).unwrap();
    assert_eq!(read.shape(), [2, 1]);
    assert_eq!(read.into_f32().unwrap(), [1.5, -2.0]);
    assert_eq!(
        open(&array(&header("|u1"), &[0, 255]))
            .unwrap()
            .into_f32()
            .unwrap(),
        [0.0, 255.0]
    );
    let i64s = [7i64, -1].map(i64::to_le_bytes).concat();
    assert!(
        open(&array(&header("<i8"), &i64s))
            .unwrap()
            .into_u32()
            .unwrap_err()
            .contains("-1")
    );
}

#[test]
fn integers_of_every_width() {
    let read = |t: &str, bytes: &[u8], len: usize| {
        let header = format!("{{'descr': '{t}', 'fortran_order': False, 'shape': ({len},), }}");
        open(&array(&header, bytes)).unwrap().into_f64().unwrap()
    };
    assert_eq!(read("|b1", &[0, 1], 2), [0.0, 1.0]);
    assert_eq!(read("|i1", &[255, 127], 2), [-1.0, 127.0]);
    assert_eq!(read("<u2", &[0, 1, 255, 255], 2), [256.0, 65_535.0]);
    assert_eq!(read("<i2", &[254, 255], 1), [-2.0]);
    assert_eq!(read("<u4", &[255; 4], 1), [f64::from(u32::MAX)]);
    assert_eq!(
        read("<u8", &(1u64 << 40).to_le_bytes(), 1),
        [(1u64 << 40) as f64]
    );
    assert_eq!(read("<i8", &(-5i64).to_le_bytes(), 1), [-5.0]);
}

#[test]
fn words() {
    let read = |t: &str, bytes: &[u8]| {
        let header = format!("{{'descr': '{t}', 'fortran_order': False, 'shape': (), }}");
        open(&array(&header, bytes))?.into_text()
    };
    assert_eq!(read("|S3", b"csr").unwrap(), "csr");
    assert_eq!(read("|S4", b"csr\0").unwrap(), "csr");
    assert_eq!(read("<U2", b"c\0\0\0s\0\0\0").unwrap(), "cs");
    assert!(read("<U1", &[255; 4]).is_err());
    assert!(read("|S100", &[b'a'; 100]).is_err());
    assert!(read("|S0", &[]).is_err());
    assert!(read("<U9223372036854775807", &[0; 4]).is_err());
    assert!(read("<f4", &[0; 4]).is_err());
}

#[test]
fn sizes_are_checked_before_anything_is_allocated() {
    for shape in [
        "(3,)",
        "(18446744073709551615, 2)",
        "(1000000000000,)",
        "(4294967296, 4294967296)",
        "(-1,)",
        "3",
    ] {
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
        assert!(open(&array(&header, &[0; 8])).is_err(), "{shape}");
    }
    assert!(open(&[]).is_err());
    assert!(
        open(b"\x93NUMPY\x02\x00\xff\xff\xff\xff")
            .unwrap_err()
            .contains("declares")
    );
    assert!(
        open(&array(
            "{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }",
            &[0; 8]
        ))
        .is_err()
    );
    assert!(
        open(&array(
            "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2), }",
            &[0; 8]
        ))
        .is_err()
    );
}
