//! CSR matrices from scipy's npz and Matrix Market files: valid, unsorted and broken ones.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use burn::tensor::DType;
use npyz::{
    npz::NpzArchive,
    zip::{CompressionMethod, ZipWriter, write::FileOptions},
};
use sparsek::sparse::{Csr, FileError};
use sparsek_tests::{
    backend::Backend,
    element::Element,
    runner::{Cases, Outcome, Verdict},
    sparse::{Sparse, rounded, upload},
};

use crate::sparse::csr::{elements, same};

pub fn add(cases: &mut Cases, backend: &Backend) {
    for (name, body) in [
        ("whole", whole as fn(&Backend) -> Result<(), String>),
        ("dtypes", dtypes),
        ("disorder", disorder),
        ("formats", formats),
        ("spare", spare),
        ("wide", wide),
        ("bombs", bombs),
        ("pipes", pipes),
        ("refusals", refusals),
        ("truncated", truncated),
    ] {
        cases.check(backend, format!("tensor/csr/npz/{name}"), body);
    }
    cases.add(backend, "tensor/csr/npz/written/f32", written::<f32>);
    cases.add(backend, "tensor/csr/npz/written/f64", written::<f64>);
    cases.add(backend, "tensor/csr/npz/written/f16", written::<half::f16>);
    cases.add(backend, "tensor/csr/npz/written/bf16", written::<half::bf16>);
    cases.check(backend, "tensor/csr/mtx/whole", market);
    cases.check(backend, "tensor/csr/mtx/refusals", market_refusals);
    cases.check(backend, "tensor/csr/file", either);
}

pub struct Temporary(pub PathBuf);

impl Temporary {
    pub fn new(backend: &Backend, name: &str) -> Self {
        let name = format!("sparsek-{}-{}-{name}.npz", std::process::id(), backend.kind);
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn npy<const N: usize>(descr: &str, shape: &str, values: &[[u8; N]]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.concat());
    bytes
}

fn vector<const N: usize>(descr: &str, values: &[[u8; N]]) -> Vec<u8> {
    npy(descr, &format!("({},)", values.len()), values)
}

fn i32s(values: &[i32]) -> Vec<u8> {
    let bytes: Vec<_> = values.iter().map(|x| x.to_le_bytes()).collect();
    vector("<i4", &bytes)
}

fn i64s(values: &[i64]) -> Vec<u8> {
    let bytes: Vec<_> = values.iter().map(|x| x.to_le_bytes()).collect();
    vector("<i8", &bytes)
}

fn f32s(values: &[f32]) -> Vec<u8> {
    let bytes: Vec<_> = values.iter().map(|x| x.to_le_bytes()).collect();
    vector("<f4", &bytes)
}

fn f64s(values: &[f64]) -> Vec<u8> {
    let bytes: Vec<_> = values.iter().map(|x| x.to_le_bytes()).collect();
    vector("<f8", &bytes)
}

type Arrays = Vec<(&'static str, Vec<u8>)>;

/// 2 × 3: 1.5 at (0, 2), an explicit zero at (1, 0), -2 at (1, 1).
fn good() -> Arrays {
    vec![
        ("indices", i32s(&[2, 0, 1])),
        ("indptr", i32s(&[0, 1, 3])),
        ("format", npy("|S3", "()", &[*b"csr"])),
        ("shape", i64s(&[2, 3])),
        ("data", f32s(&[1.5, 0.0, -2.0])),
    ]
}

fn with(name: &str, bytes: Vec<u8>) -> Arrays {
    let mut arrays = good();
    let array = arrays.iter_mut().find(|(other, _)| *other == name);
    array.expect("a known array").1 = bytes;
    arrays
}

fn write(file: &Path, arrays: &Arrays, method: CompressionMethod) -> Result<(), String> {
    let mut zip = ZipWriter::new(File::create(file).map_err(|e| e.to_string())?);
    let options = FileOptions::default().compression_method(method);
    for (name, bytes) in arrays {
        zip.start_file(format!("{name}.npy"), options).map_err(|e| e.to_string())?;
        zip.write_all(bytes).map_err(|e| e.to_string())?;
    }
    zip.finish().map(drop).map_err(|e| e.to_string())
}

fn load(backend: &Backend, arrays: &Arrays) -> Result<Csr, FileError> {
    let file = Temporary::new(backend, "arrays");
    write(&file.0, arrays, CompressionMethod::Stored).expect("the fixture is written");
    let found = Csr::from_npz(&file.0, &backend.device);
    let bytes = fs::read(&file.0).expect("the fixture is read");
    let of_bytes = Csr::from_npz_bytes(&bytes, &backend.device);
    match (&found, &of_bytes) {
        (Ok(found), Ok(of_bytes)) => {
            assert_eq!(found.pattern(), of_bytes.pattern());
            let [found, of_bytes] = [found, of_bytes].map(|csr| csr.values().to_data());
            assert_eq!(found.as_bytes(), of_bytes.as_bytes());
        }
        (Err(found), Err(of_bytes)) => {
            let found = found.to_string().replace(&file.0.display().to_string(), "(bytes)");
            assert_eq!(found, of_bytes.to_string());
        }
        (found, of_bytes) => panic!("{found:?} from the file, {of_bytes:?} from its bytes"),
    }
    found
}

pub fn equals(csr: &Csr, indptr: &[u32], indices: &[u32], values: &[f64]) -> Result<(), String> {
    let found: Vec<f64> = csr.values().to_data().iter::<f64>().collect();
    let pattern = csr.pattern();
    match pattern.indptr() == indptr && pattern.indices() == indices && found == values {
        true => Ok(()),
        false => Err(format!("{pattern:?} with {found:?}")),
    }
}

/// Stored and deflated, 32- and 64-bit indices, the format as bytes and as Unicode.
fn whole(backend: &Backend) -> Result<(), String> {
    let mut wide = with("indices", i64s(&[2, 0, 1]));
    wide[1].1 = i64s(&[0, 1, 3]);
    let letters = [*b"c\0\0\0s\0\0\0r\0\0\0"];
    let unicode = with("format", npy("<U3", "()", &letters));
    for arrays in [good(), wide, unicode] {
        for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
            let file = Temporary::new(backend, "whole");
            write(&file.0, &arrays, method)?;
            let csr = Csr::from_npz(&file.0, &backend.device).map_err(|e| e.to_string())?;
            if (csr.rows(), csr.cols()) != (2, 3) || csr.dtype() != DType::F32 {
                return Err(format!("{csr:?}"));
            }
            equals(&csr, &[0, 1, 3], &[2, 0, 1], &[1.5, 0.0, -2.0])?;
        }
    }
    let mut empty = with("indices", i32s(&[]));
    empty[1].1 = i32s(&[0]);
    empty[3].1 = i64s(&[0, 7]);
    empty[4].1 = f32s(&[]);
    let csr = load(backend, &empty).map_err(|e| e.to_string())?;
    equals(&csr, &[0], &[], &[])
}

fn dtypes(backend: &Backend) -> Result<(), String> {
    for (data, expected) in [
        (f64s(&[1.5, 0.1, -2.0]), [1.5, f64::from(0.1f32), -2.0]),
        (i32s(&[7, 0, -9]), [7.0, 0.0, -9.0]),
        (i64s(&[7, 0, -9]), [7.0, 0.0, -9.0]),
        (vector("|b1", &[[1], [0], [1]]), [1.0, 0.0, 1.0]),
        (vector("|u1", &[[1], [0], [255]]), [1.0, 0.0, 255.0]),
        (vector("<u2", &[[0, 1], [2, 0], [3, 0]]), [256.0, 2.0, 3.0]),
        (vector(">u2", &[[0, 1], [2, 0], [3, 0]]), [1.0, 512.0, 768.0]),
        (vector("<f2", &[[0, 0x3e], [0, 0], [0, 0xc0]]), [1.5, 0.0, -2.0]),
        (vector(">f4", &[1.5f32, 0.0, -2.0].map(f32::to_be_bytes)), [1.5, 0.0, -2.0]),
        (vector("|i1", &[[7], [0], [247]]), [7.0, 0.0, -9.0]),
    ] {
        let csr = load(backend, &with("data", data)).map_err(|e| e.to_string())?;
        equals(&csr, &[0, 1, 3], &[2, 0, 1], &expected)?;
    }
    let file = Temporary::new(backend, "dtypes");
    let arrays = with("data", f64s(&[1.5, 0.1, -2.0]));
    write(&file.0, &arrays, CompressionMethod::Stored)?;
    for (dtype, tenth) in [
        (DType::F64, 0.1),
        (DType::F16, f64::from(half::f16::from_f64(0.1))),
        (DType::BF16, f64::from(half::bf16::from_f64(0.1))),
    ] {
        let loaded = Csr::from_npz(&file.0, (&backend.device, dtype));
        match loaded {
            Ok(csr) => {
                equals(&csr, &[0, 1, 3], &[2, 0, 1], &[1.5, tenth, -2.0])?;
                if csr.dtype() != dtype {
                    return Err(format!("{:?} instead of {dtype:?}", csr.dtype()));
                }
            }
            Err(_) if !backend.device.supports_dtype(dtype) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}

/// Unsorted and repeated columns.
fn disorder(backend: &Backend) -> Result<(), String> {
    let mut arrays = with("indices", i32s(&[2, 0, 2, 2, 1, 2]));
    arrays[1].1 = i32s(&[0, 3, 6]);
    arrays[4].1 = f32s(&[1.0, 2.0, 4.0, 8.0, 0.0, -8.0]);
    let csr = load(backend, &arrays).map_err(|e| e.to_string())?;
    equals(&csr, &[0, 2, 4], &[0, 2, 1, 2], &[2.0, 5.0, 0.0, 0.0])
}

/// The same matrix in every format, without `format`, and with other integer widths.
fn formats(backend: &Backend) -> Result<(), String> {
    let format = |text: &[u8; 3]| npy("|S3", "()", &[*text]);
    let csc = vec![
        ("format", format(b"csc")),
        ("shape", i64s(&[2, 3])),
        ("indptr", i32s(&[0, 1, 2, 3])),
        ("indices", i32s(&[1, 1, 0])),
        ("data", f32s(&[0.0, -2.0, 1.5])),
    ];
    let coo = vec![
        ("format", format(b"coo")),
        ("shape", i64s(&[2, 3])),
        ("row", i64s(&[1, 1, 0])),
        ("col", i64s(&[1, 0, 2])),
        ("data", f32s(&[-2.0, 0.0, 1.5])),
    ];
    let mut old = good();
    old.retain(|(name, _)| *name != "format");
    let narrow = with("indices", vector("|u1", &[[2], [0], [1]]));
    let mut large = with("indices", vector(">u8", &[2u64, 0, 1].map(u64::to_be_bytes)));
    large[1].1 = vector("<u4", &[0u32, 1, 3].map(u32::to_le_bytes));
    for arrays in [csc, coo, old, narrow, large] {
        let csr = load(backend, &arrays).map_err(|e| e.to_string())?;
        equals(&csr, &[0, 1, 3], &[2, 0, 1], &[1.5, 0.0, -2.0])?;
    }
    // Blocks of 1 × 3 that cover the shape; their zeros are entries.
    let values = [0.0f32, 0.0, 1.5, 0.0, -2.0, 0.0].map(f32::to_le_bytes);
    let bsr = vec![
        ("format", format(b"bsr")),
        ("shape", i64s(&[2, 3])),
        ("indptr", i32s(&[0, 1, 2])),
        ("indices", i32s(&[0, 0])),
        ("data", npy("<f4", "(2, 1, 3)", &values)),
    ];
    let csr = load(backend, &bsr).map_err(|e| e.to_string())?;
    let expected = [0.0, 0.0, 1.5, 0.0, -2.0, 0.0];
    equals(&csr, &[0, 3, 6], &[0, 1, 2, 0, 1, 2], &expected)?;
    // Diagonals 2 above and 0, whose zeros are padding.
    let values = [0.0f32, 0.0, 1.5, 0.0, -2.0, 9.0].map(f32::to_le_bytes);
    let dia = vec![
        ("format", format(b"dia")),
        ("shape", i64s(&[2, 3])),
        ("offsets", i32s(&[2, 0])),
        ("data", npy("<f4", "(2, 3)", &values)),
    ];
    let csr = load(backend, &dia).map_err(|e| e.to_string())?;
    equals(&csr, &[0, 1, 2], &[2, 1], &[1.5, -2.0])
}

/// Every kind of matrix comes back bit for bit, and numpy finds the arrays that scipy writes.
fn written<T: Element>(backend: &Backend) -> Outcome {
    if let Some(reason) = backend.lacks(T::dtype()) {
        return Ok(Verdict::Skipped(reason));
    }
    let file = Temporary::new(backend, T::NAME);
    let options = (&backend.device, T::dtype());
    for recipe in Sparse::ALL {
        let host = rounded::<T>(&recipe.matrix(12));
        let csr = upload::<T>(&host, &backend.device);
        csr.to_npz(&file.0).map_err(|e| e.to_string())?;
        let read = Csr::from_npz(&file.0, options).map_err(|e| e.to_string())?;
        let of_bytes = Csr::from_npz_bytes(&csr.to_npz_bytes(), options);
        for found in [read, of_bytes.map_err(|e| e.to_string())?] {
            if found.pattern() != csr.pattern() {
                return Err(format!("{}: {:?}", recipe.name, found.pattern()));
            }
            same::<T>(recipe.name, &elements(found.values())?, &host.weights)?;
        }
        let arrays = NpzArchive::open(&file.0).map_err(|e| e.to_string())?;
        let mut names: Vec<&str> = arrays.array_names().collect();
        names.sort_unstable();
        if names != ["data", "format", "indices", "indptr", "shape"] {
            return Err(format!("arrays {names:?}"));
        }
    }
    let nowhere = upload::<T>(&Sparse::ALL[0].matrix(1), &backend.device).to_npz("/no/folder.npz");
    match nowhere {
        Err(error @ FileError::Io { .. }) if error.to_string().contains("/no/folder.npz") => {
            Ok(Verdict::Passed)
        }
        other => Err(format!("no folder: {other:?}")),
    }
}

/// The matrix of `good`, with its zero.
const MARKET: &str = "%%MatrixMarket matrix coordinate real general\n% from 1\n2 3 3\n2 2 -2\n\
                      1 3 1.5\n2 1 0\n";

fn market(backend: &Backend) -> Result<(), String> {
    let file = Temporary::new(backend, "market");
    fs::write(&file.0, MARKET).map_err(|e| e.to_string())?;
    for csr in [
        Csr::from_mtx(&file.0, &backend.device),
        Csr::from_mtx_bytes(MARKET.as_bytes(), &backend.device),
    ] {
        let csr = csr.map_err(|e| e.to_string())?;
        equals(&csr, &[0, 1, 3], &[2, 0, 1], &[1.5, 0.0, -2.0])?;
    }
    let symmetric = "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 3\n3 1\n2 2\n3 1\n";
    let csr = Csr::from_mtx_bytes(symmetric.as_bytes(), &backend.device);
    let csr = csr.map_err(|e| e.to_string())?;
    equals(&csr, &[0, 1, 2, 3], &[2, 1, 0], &[2.0, 1.0, 2.0])
}

fn market_refusals(backend: &Backend) -> Result<(), String> {
    let file = Temporary::new(backend, "market-refusals");
    for (text, words) in [
        (MARKET.replace("2 3 3", "2 3 4"), ["truncated", "3 are there"]),
        (MARKET.replace("2 3 3", "2 2 3"), ["line 5", "2 columns"]),
        (MARKET.replace("real", "complex"), ["line 1", "complex"]),
        (MARKET.replace("coordinate", "array"), ["line 1", "array"]),
        (MARKET.replace("2 3 3", "2 3 9999999999"), ["entries", "limit"]),
        (MARKET.replace("2 3 3", "2 3 9999999"), ["9999999 entries", "6 places"]),
        (MARKET.replace("2 3 3", "9999999999 3 3"), ["rows", "limit"]),
    ] {
        fs::write(&file.0, &text).map_err(|e| e.to_string())?;
        for (name, found) in [
            (".npz", Csr::from_mtx(&file.0, &backend.device)),
            ("(bytes)", Csr::from_mtx_bytes(text.as_bytes(), &backend.device)),
        ] {
            let error = match found {
                Err(error @ FileError::Format { .. }) => error.to_string(),
                other => return Err(format!("{words:?}: {other:?}")),
            };
            let mut named = words.iter().chain([&name]);
            if error.contains('\n') || !named.all(|word| error.contains(word)) {
                return Err(format!("the message lacks one of {words:?}: {error}"));
            }
        }
    }
    match Csr::from_mtx("/there/is/no/such.mtx", &backend.device) {
        Err(error @ FileError::Io { .. }) if error.to_string().contains("such.mtx") => Ok(()),
        other => Err(format!("a missing file: {other:?}")),
    }
}

/// The first bytes tell the format, not the name.
fn either(backend: &Backend) -> Result<(), String> {
    let file = Temporary::new(backend, "either");
    fs::write(&file.0, MARKET).map_err(|e| e.to_string())?;
    let csr = Csr::from_file(&file.0, &backend.device).map_err(|e| e.to_string())?;
    equals(&csr, &[0, 1, 3], &[2, 0, 1], &[1.5, 0.0, -2.0])?;
    write(&file.0, &good(), CompressionMethod::Deflated)?;
    let csr = Csr::from_file(&file.0, &backend.device).map_err(|e| e.to_string())?;
    equals(&csr, &[0, 1, 3], &[2, 0, 1], &[1.5, 0.0, -2.0])?;
    for text in ["", "P", "1 2 3\n"] {
        fs::write(&file.0, text).map_err(|e| e.to_string())?;
        match Csr::from_file(&file.0, &backend.device) {
            Err(error) if error.to_string().contains("not an npz, Matrix Market or HDF5") => {}
            other => return Err(format!("{text:?}: {other:?}")),
        }
    }
    Ok(())
}

fn spare(backend: &Backend) -> Result<(), String> {
    let mut arrays = with("indices", i32s(&[2, 0, 1, 99, -1]));
    arrays[4].1 = f32s(&[1.5, 0.0, -2.0, 7.0, f32::NAN]);
    let csr = load(backend, &arrays).map_err(|e| e.to_string())?;
    equals(&csr, &[0, 1, 3], &[2, 0, 1], &[1.5, 0.0, -2.0])
}

/// Memory depends on entries, not on columns.
fn wide(backend: &Backend) -> Result<(), String> {
    let cols = (1 << 31) - 4096;
    let csr = load(backend, &with("shape", i64s(&[2, cols]))).map_err(|e| e.to_string())?;
    match csr.cols() == cols as usize {
        true => equals(&csr, &[0, 1, 3], &[2, 0, 1], &[1.5, 0.0, -2.0]),
        false => Err(format!("{} columns", csr.cols())),
    }
}

/// Small files with huge arrays are refused before the arrays are read; 2 × 3 has six places.
fn bombs(backend: &Backend) -> Result<(), String> {
    let zeros = |descr: &str, size: usize, count: usize| {
        let mut bytes = npy::<1>(descr, &format!("({count},)"), &[]);
        bytes.resize(bytes.len() + size * count, 0);
        bytes
    };
    let large = || zeros("<i4", 4, 4 << 20);
    let mut entries = with("indices", large());
    entries[1].1 = i32s(&[0, 0, 4 << 20]);
    entries[4].1 = zeros("|b1", 1, 4 << 20);
    for (arrays, word) in [
        (with("indices", large()), "3 values for 4194304 entries"),
        (with("data", large()), "4194304 values for 3 entries"),
        (with("indptr", large()), "4194304 offsets"),
        (with("shape", large()), "a matrix has 2"),
        (with("format", large()), "one word"),
        (entries, "4194304 entries for the 6 places"),
    ] {
        let file = Temporary::new(backend, "bombs");
        write(&file.0, &arrays, CompressionMethod::Deflated)?;
        match Csr::from_npz(&file.0, &backend.device) {
            Err(error) if error.to_string().contains(word) => {}
            other => return Err(format!("{word}: {other:?}")),
        }
    }
    Ok(())
}

fn pipes(backend: &Backend) -> Result<(), String> {
    let file = Temporary::new(backend, "pipes");
    if !cfg!(unix) {
        return Ok(());
    }
    let made = std::process::Command::new("mkfifo").arg(&file.0).status();
    if !made.is_ok_and(|status| status.success()) {
        return Err("mkfifo failed".to_string());
    }
    match Csr::from_npz(&file.0, &backend.device) {
        Err(error) if error.to_string().contains("a pipe") => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

/// Errors are one line that names the file and the fault.
fn refusals(backend: &Backend) -> Result<(), String> {
    let without = |name: &str| -> Arrays {
        let others = good().into_iter().filter(|(other, _)| *other != name);
        others.collect()
    };
    let format = |text: &[u8; 3]| npy("|S3", "()", &[*text]);
    let huge = "(4611686018427387904,)";
    let refused: Vec<(Arrays, &[&str])> = vec![
        (with("format", format(b"lil")), &["format", "lil", ".tocsr()"]),
        (with("format", format(b"dia")), &["data", "[diagonals, columns]"]),
        (with("format", format(b"csc")), &["indptr", "3 columns need 4"]),
        (with("format", format(b"coo")), &["row", "missing"]),
        (with("format", format(b"\x1b[m")), &["\\u{1b}"]),
        (with("format", i32s(&[3])), &["format", "int32"]),
        (without("shape"), &["shape", "missing"]),
        (without("data"), &["data", "missing"]),
        (without("indptr"), &["indptr", "missing"]),
        (with("indices", f32s(&[2.0, 0.0, 1.0])), &["indices", "float32", "astype"]),
        (with("indices", i32s(&[2, -1, 1])), &["indices", "-1"]),
        (with("indices", i32s(&[2, 0, 3])), &["column 3", "3 columns"]),
        (with("indices", i32s(&[2, 0])), &["3 values", "2 entries"]),
        (with("indptr", i32s(&[0, 2, 1])), &["indptr", "decreases"]),
        (with("indptr", i32s(&[1, 2, 3])), &["indptr", "begins with 1"]),
        (with("indptr", i32s(&[0, 2, 4])), &["indptr", "ends with 4"]),
        (with("indptr", i32s(&[0, 3])), &["indptr", "2 rows"]),
        (with("shape", i64s(&[2, 3, 4])), &["shape", "3 numbers"]),
        (with("shape", i64s(&[2, -3])), &["shape", "-3"]),
        (with("shape", i64s(&[1 << 31, 3])), &["rows", "2147483648"]),
        (with("data", f32s(&[1.0, 2.0])), &["2 values", "3 entries"]),
        (with("data", npy("<f4", "(3, 1)", &[[0; 4]; 3])), &["data", "one dimension"]),
        (with("data", npy("<f4", huge, &[[0; 4]])), &["data", "shape"]),
        (with("data", npy("<f4", &"[".repeat(9000), &[[0; 4]])), &["data", "tuple"]),
        (with("data", vector("<c8", &[[0; 8]; 3])), &["data", "<c8", ".real"]),
        (with("data", vector("|O", &[[0; 8]; 3])), &["data", "pickled"]),
    ];
    for (arrays, words) in refused {
        let error = match load(backend, &arrays) {
            Ok(_) => return Err(format!("{words:?}: the file was accepted")),
            Err(error) => error.to_string(),
        };
        let named = ["sparsek-", ".npz"].iter().chain(words);
        if error.contains('\n') || !named.into_iter().all(|word| error.contains(word)) {
            return Err(format!("the message lacks one of {words:?}: {error}"));
        }
    }
    match Csr::from_npz("/there/is/no/such.npz", &backend.device) {
        Err(error @ FileError::Io { .. }) if error.to_string().contains("such.npz") => Ok(()),
        other => Err(format!("a missing file: {other:?}")),
    }
}

/// A file truncated anywhere, or with a changed value, is refused.
fn truncated(backend: &Backend) -> Result<(), String> {
    let file = Temporary::new(backend, "truncated");
    write(&file.0, &good(), CompressionMethod::Stored)?;
    let bytes = fs::read(&file.0).map_err(|e| e.to_string())?;
    let refused = |bytes: &[u8]| -> Result<(), String> {
        fs::write(&file.0, bytes).map_err(|e| e.to_string())?;
        match Csr::from_npz(&file.0, &backend.device) {
            Ok(_) => Err("a broken file was accepted".into()),
            Err(error) if error.to_string().contains('\n') => Err(error.to_string()),
            Err(_) => Ok(()),
        }
    };
    for length in (0..bytes.len()).step_by(7).chain([bytes.len() - 1]) {
        refused(&bytes[..length]).map_err(|e| format!("{length} bytes: {e}"))?;
    }
    let value = 1.5f32.to_le_bytes();
    let at = bytes.windows(4).position(|four| four == value);
    let mut changed = bytes.clone();
    changed[at.ok_or("the value is not in the file")?] ^= 1;
    refused(&changed)
}
