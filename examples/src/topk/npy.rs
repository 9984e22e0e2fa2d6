//! Vectors in .npy files, read in chunks, and selections in .npz files.
use std::{
    error::Error,
    fs::File,
    io::{self, ErrorKind, Read, Write},
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

use burn::tensor::DType;
use bytemuck::Pod;
use half::f16;
use npyz::{AutoSerialize, WriteOptions, WriterBuilder};
use sparsek::io::{
    input, memory,
    npy::{Dtype, Header},
    output::Output,
};
use sparsek_examples::{npz::Writer, program::named};

/// Chunks in memory: one is read, one waits, one is selected from.
pub const BUFFERS: usize = 3;

/// An open vector, behind its header.
#[derive(Debug)]
pub struct Vector {
    path: PathBuf,
    file: File,
    big_endian: bool,
    pub dtype: DType,
    pub length: usize,
}

impl Vector {
    /// Opens a complete one-dimensional file of a known dtype.
    ///
    /// # Errors
    /// One line that names the file.
    pub fn open(path: &Path) -> Result<Self, String> {
        let (mut file, size) = input::open(path).map_err(|error| named(path, error))?;
        let header = Header::read(&mut file, size).map_err(|error| named(path, error))?;
        let [length] = header.shape[..] else {
            let dimensions = header.shape.len();
            return Err(named(
                path,
                format_args!(
                    "{dimensions} dimensions, expected one; numpy's a.ravel() makes a vector"
                ),
            ));
        };
        let dtype = match header.dtype {
            Dtype::F32 => DType::F32,
            Dtype::F64 => DType::F64,
            Dtype::F16 => DType::F16,
            Dtype::I32 => DType::I32,
            Dtype::I64 => DType::I64,
            Dtype::U32 => DType::U32,
            other => return Err(named(path, unknown(other))),
        };
        Ok(Self { path: path.to_path_buf(), file, big_endian: header.big_endian, dtype, length })
    }

    /// Passes chunks of at most `length` elements to `take`, in native byte order. A thread reads
    /// ahead into recycled buffers.
    ///
    /// # Errors
    /// One line that names a file that cannot be read or chunks beyond the memory limit; errors of
    /// `take`.
    pub fn for_each_chunk(
        self,
        length: usize,
        mut take: impl FnMut(&[u8]) -> Result<(), Box<dyn Error>>,
    ) -> Result<(), Box<dyn Error>> {
        let size = self.dtype.size();
        let length = length.clamp(1, self.length.max(1));
        let buffers = BUFFERS.min(self.length.div_ceil(length));
        memory::check(
            format_args!("--chunk: {buffers} chunks of {length} elements"),
            memory::product(&[buffers, length, size]),
        )?;
        let (fill, filled) = sync_channel(BUFFERS);
        let (empty, emptied) = sync_channel(BUFFERS);
        for _ in 0..buffers {
            // The channels never fill up.
            let _ = empty.send(Vec::new());
        }
        thread::scope(move |scope| {
            // Returning closes the reader's channels, which ends it.
            scope.spawn(move || self.read(length * size, &emptied, &fill));
            for chunk in filled {
                let chunk = chunk?;
                take(&chunk)?;
                // The reader may have ended.
                let _ = empty.send(chunk);
            }
            Ok(())
        })
    }

    /// Reads chunks until the end, or until nobody receives.
    fn read(
        mut self,
        bytes: usize,
        emptied: &Receiver<Vec<u8>>,
        fill: &SyncSender<Result<Vec<u8>, String>>,
    ) {
        let mut left = self.length * self.dtype.size();
        while left > 0 {
            let Ok(mut chunk) = emptied.recv() else {
                return;
            };
            chunk.resize(bytes.min(left), 0);
            let read = self.file.read_exact(&mut chunk);
            left -= chunk.len();
            if self.big_endian != cfg!(target_endian = "big") {
                let size = self.dtype.size();
                chunk.chunks_exact_mut(size).for_each(<[u8]>::reverse);
            }
            let read = read.map_err(|error| match error.kind() {
                ErrorKind::UnexpectedEof => named(&self.path, "truncated while it was read"),
                _ => named(&self.path, error),
            });
            let failed = read.is_err();
            if fill.send(read.map(|()| chunk)).is_err() || failed {
                return;
            }
        }
    }
}

fn unknown(dtype: Dtype) -> String {
    let other = match dtype {
        Dtype::Bool | Dtype::U8 | Dtype::U16 | Dtype::I8 | Dtype::I16 => "int32",
        Dtype::U64 => "int64",
        _ => "float32",
    };
    format!(
        "dtype {dtype} is not float32, float64, float16, int32, int64 or uint32; \
         numpy's a.astype(\"{other}\") converts it"
    )
}

/// A selection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Bytes of the values.
    pub values: Vec<u8>,
    /// Positions in the vector.
    pub indices: Vec<i64>,
}

/// Writes `values` and `indices`.
pub fn write(output: Output, dtype: DType, best: &Selection) -> Result<Output, Box<dyn Error>> {
    let mut npz = Writer::new(output)?;
    match dtype {
        DType::F32 => values::<f32>(&mut npz, &best.values)?,
        DType::F64 => values::<f64>(&mut npz, &best.values)?,
        DType::F16 => values::<f16>(&mut npz, &best.values)?,
        DType::I32 => values::<i32>(&mut npz, &best.values)?,
        DType::I64 => values::<i64>(&mut npz, &best.values)?,
        DType::U32 => values::<u32>(&mut npz, &best.values)?,
        other => return Err(format!("no arrays of {other:?}").into()),
    }
    npz.array("indices", &[best.indices.len()], &best.indices)?;
    Ok(npz.finish()?)
}

fn values<T: AutoSerialize + Pod>(npz: &mut Writer, bytes: &[u8]) -> io::Result<()> {
    let elements: Vec<T> = bytemuck::pod_collect_to_vec(bytes);
    npz.array("values", &[elements.len()], &elements)
}

/// Writes a vector.
pub fn generate(
    output: &mut impl Write,
    length: usize,
    elements: impl Iterator<Item = f32>,
) -> io::Result<()> {
    let options = WriteOptions::new().default_dtype().writer(output);
    let mut array = options.shape(&[length as u64]).begin_nd()?;
    array.extend(elements.take(length))?;
    array.finish()
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use rstest::{fixture, rstest};

    use super::*;

    /// A temporary file.
    struct Saved(PathBuf);

    /// 1000 elements.
    #[fixture]
    fn saved() -> Saved {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sparsek-vector-{}-{count}.npy", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut bytes = Vec::new();
        generate(&mut bytes, 1000, (0..1000).map(|at| at as f32)).unwrap();
        fs::write(&path, bytes).unwrap();
        Saved(path)
    }

    impl Drop for Saved {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    #[rstest]
    fn chunks_are_the_vector_in_order(
        saved: Saved,
        #[values(1, 7, 333, 500, 999, 1000, 1001, usize::MAX)] length: usize,
    ) {
        let vector = Vector::open(&saved.0).unwrap();
        let mut seen = Vec::new();
        let take = |chunk: &[u8]| {
            assert!(chunk.len() / 4 <= length);
            seen.extend(bytemuck::pod_collect_to_vec::<u8, f32>(chunk));
            Ok(())
        };
        vector.for_each_chunk(length, take).unwrap();
        assert!(seen.iter().copied().eq((0..1000).map(|at| at as f32)));
    }

    #[rstest]
    fn a_file_that_is_shortened_meanwhile_is_an_error(saved: Saved) {
        let vector = Vector::open(&saved.0).unwrap();
        let file = File::options().write(true).open(&saved.0).unwrap();
        file.set_len(1000).unwrap();
        let mut chunks = 0;
        let done = vector.for_each_chunk(10, |_| {
            chunks += 1;
            Ok(())
        });
        let error = done.unwrap_err().to_string();
        assert!(error.contains("truncated while it was read"), "{error}");
        assert!((1..100).contains(&chunks), "{chunks}");
    }

    #[rstest]
    fn an_error_stops_the_reader(saved: Saved) {
        let mut chunks = 0;
        let done = Vector::open(&saved.0).unwrap().for_each_chunk(1, |_| {
            chunks += 1;
            Err("enough".into())
        });
        assert_eq!(done.unwrap_err().to_string(), "enough");
        assert_eq!(chunks, 1);
    }
}
