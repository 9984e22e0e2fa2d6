//! What the fuzz targets share: bytes read as a request.

use sparsek_kernels::topk::{Method, TopkOptions};
use sparsek_tests::data::Matrix;
use sparsek_tests::element::{Dtype, Element};

/// Longest rows.
const MAX_COLS: usize = 1100;
/// Most rows.
const MAX_ROWS: usize = 4;
/// Most halvings of early stop: enough to end between neighbouring integers.
const MAX_ITER: u32 = 100;

/// A request and the raw bits of its rows.
#[derive(Debug)]
pub struct Request<'a> {
    /// The dtype of the rows.
    pub dtype: Dtype,
    /// What is asked of them.
    pub options: TopkOptions,
    /// Number of rows.
    pub rows: usize,
    /// Elements of a row.
    pub cols: usize,
    /// How many elements of each row exist, to be clamped to 0..=cols, if not all do.
    pub lengths: Option<Vec<i64>>,
    bytes: &'a [u8],
}

impl<'a> Request<'a> {
    /// Reads a header of 20 bytes and, from the rest, the elements; none if there are too few bytes.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let (header, rest) = bytes.split_first_chunk::<20>()?;
        if rest.is_empty() {
            return None;
        }
        let [dtype, flags, rows, method, ..] = *header;
        let short = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
        let parameter = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        let cols = 1 + short(4) % MAX_COLS;
        let method = match method % 3 {
            0 => Method::Exact,
            1 => Method::EarlyStop(parameter % (MAX_ITER + 1)),
            _ => {
                Method::Precision(Some(f32::from_bits(parameter).abs()).filter(|e| e.is_finite())?)
            }
        };
        let rows = 1 + usize::from(rows) % MAX_ROWS;
        // From two too few to two too many.
        let length = |row: usize| (short(12 + 2 * row) % (cols + 5)) as i64 - 2;
        let ragged = flags & 4 != 0;
        Some(Self {
            dtype: Dtype::ALL[usize::from(dtype) % Dtype::ALL.len()],
            options: TopkOptions {
                k: short(6) % (cols + 1),
                largest: flags & 1 == 0,
                sorted: flags & 2 != 0,
                method,
            },
            rows,
            cols,
            lengths: ragged.then(|| (0..rows).map(length).collect()),
            bytes: rest,
        })
    }

    /// The rows; where the bytes end before the rows do, they are repeated. What lies behind a length are any bits
    /// as well.
    pub fn matrix<T: Element>(&self) -> Matrix<T> {
        let size = size_of::<T>();
        let mut bytes = self.bytes.iter().cycle();
        let mut element = || {
            let bits = (0..size).fold(0, |bits, at| {
                bits | u64::from(*bytes.next().expect("cycles")) << (8 * at)
            });
            T::of_bits(bits)
        };
        Matrix {
            lengths: self.lengths.clone(),
            rows: self.rows,
            cols: self.cols,
            data: (0..self.rows * self.cols).map(|_| element()).collect(),
        }
    }
}
