//! CSR matrices from HDF5 files that AnnData, h5py and hdf5-pure wrote, and from broken ones.

use burn::tensor::DType;
use hdf5_pure::{AttrValue, FileBuilder, GroupBuilder};
use sparsek::sparse::{Csr, FileError};
use sparsek_tests::{backend::Backend, runner::Cases};

use super::files::{Temporary, equals};

pub fn add(cases: &mut Cases, backend: &Backend) {
    for (name, body) in [
        ("whole", whole as fn(&Backend) -> Result<(), String>),
        ("long", long),
        ("refusals", refusals),
        ("broken", broken),
    ] {
        cases.check(backend, format!("tensor/csr/hdf5/{name}"), body);
    }
}

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("../../hdf5/", $name)).as_slice()
    };
}

/// Written by `tests/hdf5/generate.py`.
const PLAIN: &[u8] = fixture!("plain.h5ad");
const GZIP: &[u8] = fixture!("gzip.h5ad");
const LZF: &[u8] = fixture!("lzf.h5ad");
const OLD: &[u8] = fixture!("old.h5ad");
const CELL_RANGER_2: &[u8] = fixture!("cellranger-2.h5");
const CELL_RANGER_3: &[u8] = fixture!("cellranger-3.h5");

/// Each group holds the matrix of an npz file.
fn whole(backend: &Backend) -> Result<(), String> {
    let [x, counts] = [fixture!("X.npz"), fixture!("counts.npz")];
    let mut cases: Vec<(&[u8], Option<&str>, &[u8])> = vec![
        (OLD, None, x),
        (OLD, Some("X"), x),
        (CELL_RANGER_3, None, counts),
        (CELL_RANGER_3, Some("matrix"), counts),
        (CELL_RANGER_2, None, counts),
        (CELL_RANGER_2, Some("GRCh38"), counts),
    ];
    for file in [PLAIN, GZIP, LZF] {
        cases.extend([
            (file, None, x),
            (file, Some("X"), x),
            (file, Some("/X"), x),
            (file, Some("layers/counts"), counts),
            (file, Some("layers/flags"), fixture!("flags.npz")),
            (file, Some("obsp/graph"), fixture!("graph.npz")),
        ]);
    }
    let temporary = Temporary::new(backend, "hdf5");
    for (at, (bytes, key, npz)) in cases.into_iter().enumerate() {
        let case = |error: FileError| format!("case {at}, {key:?}: {error}");
        std::fs::write(&temporary.0, bytes).map_err(|e| e.to_string())?;
        let expected = Csr::from_npz_bytes(npz, &backend.device).map_err(case)?;
        let numbers: Vec<f64> = expected.values().to_data().iter::<f64>().collect();
        let mut all = vec![
            Csr::from_hdf5_bytes(bytes, key, &backend.device).map_err(case)?,
            Csr::from_hdf5(&temporary.0, key, &backend.device).map_err(case)?,
        ];
        if key.is_none() {
            all.push(Csr::from_file(&temporary.0, &backend.device).map_err(case)?);
        }
        for found in all {
            if (found.rows(), found.cols()) != (expected.rows(), expected.cols()) {
                return Err(format!("case {at}, {key:?}: {found:?}"));
            }
            equals(&found, expected.pattern().indptr(), expected.pattern().indices(), &numbers)
                .map_err(|e| format!("case {at}, {key:?}: {e}"))?;
        }
    }
    if backend.device.supports_dtype(DType::F64) {
        let csr = Csr::from_hdf5_bytes(GZIP, Some("obsp/graph"), (&backend.device, DType::F64));
        let csr = csr.map_err(|e| e.to_string())?;
        let graph = Csr::from_npz_bytes(fixture!("graph.npz"), (&backend.device, DType::F64));
        let graph = graph.map_err(|e| e.to_string())?;
        let numbers: Vec<f64> = graph.values().to_data().iter::<f64>().collect();
        if csr.dtype() != DType::F64 {
            return Err(format!("{csr:?}"));
        }
        equals(&csr, graph.pattern().indptr(), graph.pattern().indices(), &numbers)?;
    }
    Ok(())
}

/// Arrays longer than what is converted at once, in chunks that do not divide it.
fn long(backend: &Backend) -> Result<(), String> {
    const ENTRIES: usize = 300_001;
    let columns: Vec<u64> = (0..ENTRIES as u64).map(|entry| entry % 7).collect();
    let values: Vec<f64> = (0..ENTRIES).map(|entry| (entry % 1000) as f64).collect();
    let ends: Vec<i64> =
        (0..=ENTRIES.div_ceil(7)).map(|row| (7 * row).min(ENTRIES) as i64).collect();
    let mut x = group([ends.len() as i64 - 1, 7]);
    x.create_dataset("indptr").with_i64_data(&ends).with_chunks(&[1000]).with_deflate(1);
    x.create_dataset("indices").with_u64_data(&columns).with_chunks(&[70_001]).with_shuffle();
    x.create_dataset("data").with_f64_data(&values).with_chunks(&[299_999]).with_deflate(1);
    let csr = Csr::from_hdf5_bytes(&file(x), None, &backend.device).map_err(|e| e.to_string())?;
    let ends: Vec<u32> = ends.into_iter().map(|end| end as u32).collect();
    let columns: Vec<u32> = columns.into_iter().map(|column| column as u32).collect();
    equals(&csr, &ends, &columns, &values)
}

fn group(shape: [i64; 2]) -> GroupBuilder {
    let mut x = FileBuilder::new().create_group("X");
    x.set_attr("encoding-type", AttrValue::String("csr_matrix".into()));
    x.set_attr("shape", AttrValue::I64Array(shape.to_vec()));
    x
}

fn file(x: GroupBuilder) -> Vec<u8> {
    let mut file = FileBuilder::new();
    file.add_group(x.finish());
    file.finish().expect("the fixture is written")
}

/// 2 × 3: 1.5 at (0, 2), 7 at (1, 0), -2 at (1, 1).
fn good(shape: [i64; 2], indptr: &[i32], indices: &[i32]) -> GroupBuilder {
    let mut x = group(shape);
    x.create_dataset("indptr").with_i32_data(indptr);
    x.create_dataset("indices").with_i32_data(indices);
    x.create_dataset("data").with_f32_data(&[1.5, 7.0, -2.0]);
    x
}

fn refusals(backend: &Backend) -> Result<(), String> {
    let (indptr, indices) = ([0, 1, 3], [2, 0, 1]);
    let valid = file(good([2, 3], &indptr, &indices));
    let csr = Csr::from_hdf5_bytes(&valid, None, &backend.device).map_err(|e| e.to_string())?;
    equals(&csr, &[0, 1, 3], &[2, 0, 1], &[1.5, 7.0, -2.0])?;

    let with = |attribute: &str, value: AttrValue| {
        let mut x = good([2, 3], &indptr, &indices);
        x.set_attr(attribute, value);
        file(x)
    };
    let mut floats = group([2, 3]);
    floats.create_dataset("indptr").with_i32_data(&indptr);
    floats.create_dataset("indices").with_f32_data(&[2.0, 0.0, 1.0]);
    floats.create_dataset("data").with_f32_data(&[1.0; 3]);
    let mut words = group([2, 3]);
    words.create_dataset("indptr").with_i32_data(&indptr);
    words.create_dataset("indices").with_i32_data(&indices);
    words.create_dataset("data").with_vlen_strings(&["a", "b", "c"]);
    let mut square = group([2, 3]);
    square.create_dataset("indptr").with_i32_data(&indptr);
    square.create_dataset("indices").with_i32_data(&[0; 4]).with_shape(&[2, 2]);
    square.create_dataset("data").with_f32_data(&[1.0; 4]);
    let two = {
        let mut file = FileBuilder::new();
        for name in ["hg19", "mm10"] {
            file.add_group(FileBuilder::new().create_group(name).finish());
        }
        file.finish().map_err(|e| e.to_string())?
    };
    let mut longer = FileBuilder::new().create_group("matrix");
    longer.create_dataset("shape").with_i32_data(&[3, 2, 1]);
    let refused: Vec<(Vec<u8>, Option<&str>, &[&str])> = vec![
        (valid[..valid.len() - 1].to_vec(), None, &["truncated", "bytes"]),
        (file(good([2, 3], &[1, 1, 3], &indices)), None, &["indptr", "begins with 1"]),
        (valid.clone(), Some("X/data/more"), &["group X/data/more"]),
        (valid.clone(), Some("layers/counts"), &["group layers/counts", "layers"]),
        (valid, Some("X/data"), &["group X/data", "dense", "csr_matrix"]),
        (PLAIN.to_vec(), Some("layers/dense"), &["group layers/dense", "dense"]),
        (PLAIN.to_vec(), Some("obs"), &["group obs", "encoding-type", "dataframe"]),
        (PLAIN.to_vec(), Some("layers"), &["group layers", "dict", "csr_matrix"]),
        (two, None, &["hg19", "mm10", "key"]),
        (b"\x89HDF\r\n\x1a\n".to_vec(), None, &["HDF5"]),
        (b"PK".to_vec(), None, &["HDF5"]),
        (with("encoding-type", AttrValue::I64(3)), None, &["encoding-type", "csc_matrix"]),
        (with("encoding-type", AttrValue::String("array".into())), None, &["array"]),
        (with("shape", AttrValue::I64Array(vec![2, 3, 4])), None, &["shape", "3 numbers"]),
        (with("shape", AttrValue::I64Array(vec![2, -3])), None, &["shape", "no integers"]),
        (with("shape", AttrValue::F64(2.0)), None, &["shape", "no integers"]),
        (with("shape", AttrValue::I64Array(vec![2, 1 << 40])), None, &["shape", "columns"]),
        (with("shape", AttrValue::I64Array(vec![9, 3])), None, &["indptr", "9 rows need 10"]),
        (file(good([2, 3], &[0, 2, 1], &indices)), None, &["group X", "indptr", "decreases"]),
        (file(good([2, 3], &[0, 2, 4], &indices)), None, &["indptr", "ends with 4"]),
        (file(good([2, 3], &indptr, &[2, 0, 3])), None, &["indices", "column 3"]),
        (file(good([2, 3], &indptr, &[2, 0, -1])), None, &["indices", "-1"]),
        (file(good([2, 3], &indptr, &[2, 0])), None, &["data", "3 values for 2 entries"]),
        (file(floats), None, &["indices", "f32", "integers"]),
        (file(words), None, &["data", "vlen_string", "numbers"]),
        (file(longer), None, &["group matrix", "shape", "[2] is needed"]),
        (file(square), None, &["indices", "[2, 2]", "one dimension"]),
    ];
    for (at, (bytes, key, words)) in refused.into_iter().enumerate() {
        let error = match Csr::from_hdf5_bytes(&bytes, key, &backend.device) {
            Err(error @ FileError::Format { .. }) => error.to_string(),
            other => return Err(format!("case {at}: {other:?}")),
        };
        let missing = words.iter().find(|&&word| !error.contains(word));
        if missing.is_some() || error.contains('\n') {
            return Err(format!("case {at}: {error} lacks {missing:?}"));
        }
    }
    Ok(())
}

/// Truncated files and flipped bytes are errors or matrices, never panics.
fn broken(backend: &Backend) -> Result<(), String> {
    for whole in [OLD, CELL_RANGER_2] {
        for length in (0..whole.len()).step_by(97) {
            let found = Csr::from_hdf5_bytes(&whole[..length], None, &backend.device);
            let Err(FileError::Format { reason, .. }) = found else {
                return Err(format!("{length} of {} bytes: {found:?}", whole.len()));
            };
            if reason.contains('\n') {
                return Err(reason);
            }
        }
        for at in (0..whole.len()).step_by(13) {
            let mut changed = whole.to_vec();
            changed[at] ^= 0x55;
            // Bytes between the objects do not matter, and values have no checksum.
            match Csr::from_hdf5_bytes(&changed, None, &backend.device) {
                Ok(_) => {}
                Err(error) if !error.to_string().contains('\n') => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }
    Ok(())
}
