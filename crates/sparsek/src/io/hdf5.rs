//! AnnData, and any 10x Genomics version.

use std::{
    collections::HashMap,
    io::{Read, Seek, SeekFrom},
};

use half::f16;
use hdf5_pure::{
    AttrValue, DType, Dataset, Datatype, DatatypeByteOrder, File, FloatingPointLayout, Group,
    ReadSeekSource,
};

use super::{
    compressed::{Arrays, Source, Values, bad_shape},
    matrix::{Matrix, Value, check_size},
    memory,
    text::excerpt,
};

const WINDOW: u64 = 1 << 18;

const MAX_ELEMENT: u32 = 16;

const BINARY16: FloatingPointLayout = FloatingPointLayout {
    bit_offset: 0,
    bit_precision: 16,
    exponent_location: 10,
    exponent_size: 5,
    mantissa_location: 0,
    mantissa_size: 10,
    exponent_bias: 15,
};

/// Groups of AnnData and 10x Genomics.
const KEYS: [&str; 2] = ["X", "matrix"];

/// Reads group `key`; errors name it.
pub fn read<T: Value>(
    mut file: impl Read + Seek + Send + 'static,
    key: Option<&str>,
) -> Result<Matrix<T>, String> {
    let size = file.seek(SeekFrom::End(0)).map_err(|error| excerpt(&error.to_string()))?;
    let file = ReadSeekSource::new(file).map_err(|error| excerpt(&error.to_string()))?;
    let file = File::from_source(file).map_err(shown)?;
    let end = file.superblock().eof_address;
    if end > size {
        return Err(format!("truncated: {size} of {end} bytes"));
    }
    let key = match key {
        Some(key) => key.to_string(),
        None => key_of(&file)?,
    };
    let read = || {
        let group = file.group(&key).map_err(|error| match file.dataset(&key) {
            Ok(_) => "a dense array; scipy.sparse.csr_matrix makes a sparse one".to_string(),
            Err(_) => shown(error),
        })?;
        let layout = Layout::of(&group, size)?;
        let mut arrays = Datasets { group, size };
        let mut source = Source { arrays: &mut arrays, values: Values::Needed };
        match layout.by_rows {
            true => source.csr(layout.shape),
            false => source.csc(layout.shape),
        }
    };
    read().map_err(|reason| format!("group {}: {reason}", excerpt(&key)))
}

fn key_of(file: &File) -> Result<String, String> {
    let root = file.root();
    let groups = root.groups().map_err(shown)?;
    let arrays = root.datasets().map_err(shown)?;
    let known = KEYS.iter().find(|&&key| groups.iter().chain(&arrays).any(|name| name == key));
    if let Some(key) = known {
        return Ok(key.to_string());
    }
    // 10x Genomics before version 3 names groups after genomes.
    match groups.as_slice() {
        [] => Err("has no group".to_string()),
        [genome] => Ok(genome.clone()),
        _ => Err(format!(
            "neither group X nor matrix; a key names one of {}",
            excerpt(&groups.join(", "))
        )),
    }
}

struct Layout {
    shape: [usize; 2],
    by_rows: bool,
}

impl Layout {
    fn of(group: &Group, size: u64) -> Result<Self, String> {
        let attributes = group.attrs().map_err(shown)?;
        let either = |names: [&str; 2]| names.into_iter().find_map(|name| attributes.get(name));
        let Some(encoding) = either(["encoding-type", "h5sparse_format"]) else {
            return Self::of_10x(group, size);
        };
        let by_rows = match encoding.as_str() {
            Some("csr_matrix" | "csr") => true,
            Some("csc_matrix" | "csc") => false,
            _ => return Err(Self::unknown(&attributes, encoding)),
        };
        let sizes = either(["shape", "h5sparse_shape"]).ok_or("attribute shape is missing")?;
        let sizes = sizes.to_u64s().ok_or("attribute shape: no integers")?;
        let [rows, cols] = pair(&sizes).map_err(|reason| format!("attribute shape: {reason}"))?;
        Ok(Self { shape: [rows, cols], by_rows })
    }

    fn unknown(attributes: &HashMap<String, AttrValue>, encoding: &AttrValue) -> String {
        let found = encoding.as_str().unwrap_or(encoding.type_name());
        let kind = match attributes.contains_key("encoding-type") {
            true => "attribute encoding-type",
            false => "attribute h5sparse_format",
        };
        format!("{kind}: {:?}; csr_matrix and csc_matrix are read", excerpt(found))
    }

    /// Barcodes become rows.
    fn of_10x(group: &Group, size: u64) -> Result<Self, String> {
        let mut arrays = Datasets { group: group.clone(), size };
        if !arrays.contains("shape") {
            return Err("no sparse matrix: neither an attribute encoding-type nor an array shape"
                .to_string());
        }
        let stored = Arrays::shape(&mut arrays, "shape")?;
        if stored != [2] {
            return Err(bad_shape("shape", &stored, "[2]"));
        }
        let sizes = arrays.ids("shape", 2)?;
        let sizes: Vec<u64> = sizes.into_iter().map(u64::from).collect();
        let [features, barcodes] =
            pair(&sizes).map_err(|reason| format!("array shape: {reason}"))?;
        Ok(Self { shape: [barcodes, features], by_rows: true })
    }
}

fn pair(sizes: &[u64]) -> Result<[usize; 2], String> {
    let &[rows, cols] = sizes else {
        return Err(format!("{} numbers, a matrix has 2", sizes.len()));
    };
    let shape = [rows, cols].map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    check_size(shape)?;
    Ok(shape)
}

struct Datasets {
    group: Group,
    size: u64,
}

impl Datasets {
    fn dataset(&self, name: &str) -> Result<Dataset, String> {
        self.group.dataset(name).map_err(|error| format!("array {name}: {}", shown(error)))
    }

    fn read<T>(
        &self,
        name: &str,
        count: usize,
        mut piece: impl FnMut(&Dataset, u64, u64, &mut Vec<T>) -> Result<(), String>,
    ) -> Result<Vec<T>, String> {
        let dataset = self.dataset(name)?;
        let mut all = Vec::new();
        let mut read = || {
            let chunk = check_chunks(&dataset, self.size)?;
            // Each window unpacks the chunks it touches.
            let window = chunk * (WINDOW / chunk).max(1);
            let stored = dataset.shape().map_err(shown)?.first().copied().unwrap_or(0);
            let end = stored.min(count as u64);
            for start in (0..end).step_by(window as usize) {
                let rows = window.min(end - start);
                piece(&dataset, start, rows, &mut all)?;
                if all.len() as u64 != start + rows {
                    return Err("unsupported layout of numbers".to_string());
                }
            }
            Ok(())
        };
        let read: Result<(), String> = read();
        read.map_err(|reason| format!("array {name}: {reason}"))?;
        Ok(all)
    }
}

/// Refuses chunks above the memory limit or the file's `size`: hdf5-pure allocates declared chunks
/// at once.
fn check_chunks(dataset: &Dataset, size: u64) -> Result<u64, String> {
    let element = dataset.datatype().map_err(shown)?.type_size();
    if element > MAX_ELEMENT {
        return Err(format!("values of {element} bytes, numbers are needed"));
    }
    let sizes = dataset.chunk_shape().map_err(shown)?.unwrap_or_default();
    let elements = sizes.into_iter().fold(1u128, |all, size| all.saturating_mul(size.into()));
    let bytes = elements.saturating_mul(2 * u128::from(element));
    memory::check(format_args!("a chunk of {elements} elements"), bytes)
        .map_err(|error| error.to_string())?;
    if !dataset.is_chunked() {
        return Ok(1);
    }
    let chunks = dataset.chunks().map_err(shown)?;
    match chunks.iter().find(|chunk| chunk.storage_size > size) {
        // Below the memory limit.
        None => Ok((elements as u64).max(1)),
        Some(chunk) => Err(format!(
            "a chunk of {} bytes is declared, but the file has {size}",
            chunk.storage_size
        )),
    }
}

impl Arrays for Datasets {
    fn contains(&self, name: &str) -> bool {
        self.group.dataset(name).is_ok()
    }

    fn shape(&mut self, name: &str) -> Result<Vec<usize>, String> {
        let shape = self.dataset(name)?.shape();
        let shape = shape.map_err(|error| format!("array {name}: {}", shown(error)))?;
        Ok(shape.into_iter().map(|size| usize::try_from(size).unwrap_or(usize::MAX)).collect())
    }

    fn ids(&mut self, name: &str, count: usize) -> Result<Vec<u32>, String> {
        fn narrow<I: Copy + TryInto<u32> + std::fmt::Display>(
            found: Vec<I>,
            all: &mut Vec<u32>,
        ) -> Result<(), String> {
            for id in found {
                let bad = || format!("{id} is not an index; indices are 0 to 2^32 - 1");
                all.push(id.try_into().map_err(|_| bad())?);
            }
            Ok(())
        }
        self.read(name, count, |dataset, start, rows, all| {
            match dataset.dtype().map_err(shown)? {
                DType::U64 => narrow(dataset.read_u64_rows(start, rows).map_err(shown)?, all),
                DType::U8 | DType::U16 | DType::U32 => {
                    narrow(dataset.read_u32_rows(start, rows).map_err(shown)?, all)
                }
                DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
                    narrow(dataset.read_i64_rows(start, rows).map_err(shown)?, all)
                }
                other => Err(format!("values of dtype {other}, integers are needed")),
            }
        })
    }

    fn values<T: Value>(&mut self, name: &str, count: usize) -> Result<Vec<T>, String> {
        self.read(name, count, |dataset, start, rows, all| {
            match dataset.dtype().map_err(shown)? {
                // Bools are enums; halves have no name.
                DType::F32
                | DType::F64
                | DType::I8
                | DType::I16
                | DType::I32
                | DType::I64
                | DType::U8
                | DType::U16
                | DType::U32
                | DType::U64
                | DType::Enum(_)
                | DType::Other(_) => {}
                other => return Err(format!("values of dtype {other}, numbers are needed")),
            }
            match dataset.datatype().map_err(shown)? {
                Datatype::FloatingPoint { size: 2, byte_order, layout: BINARY16 } => {
                    let half = match byte_order {
                        DatatypeByteOrder::BigEndian => f16::from_be_bytes,
                        _ => f16::from_le_bytes,
                    };
                    let bytes = dataset.read_raw_rows(start, rows).map_err(shown)?;
                    let halves = bytes.as_chunks().0.iter().map(|&bytes| half(bytes).to_f64());
                    all.extend(halves.map(T::of));
                }
                _ => {
                    let numbers = dataset.read_f64_rows(start, rows).map_err(shown)?;
                    all.extend(numbers.into_iter().map(T::of));
                }
            }
            Ok(())
        })
    }
}

fn shown(error: hdf5_pure::Error) -> String {
    excerpt(&error.to_string())
}
