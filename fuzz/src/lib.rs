//! Shared by the fuzz targets: decodes bytes to a top-k request.

use sparsek_kernels::topk::{Method, TopkOptions};
use sparsek_tests::data::Matrix;
use sparsek_tests::element::{Dtype, Element};

/// Maximum row length.
const MAX_COLS: usize = 1100;
/// Maximum number of rows.
const MAX_ROWS: usize = 4;
/// Maximum early stop iterations: enough to separate adjacent integers.
const MAX_ITER: u32 = 100;

/// A request and the raw bits of its rows.
#[derive(Debug)]
pub struct Request<'a> {
    /// The dtype of the rows.
    pub dtype: Dtype,
    /// Options of the selection.
    pub options: TopkOptions,
    /// Number of rows.
    pub rows: usize,
    /// Row length.
    pub cols: usize,
    /// Length of each ragged row; clamped to 0..=cols.
    pub lengths: Option<Vec<i64>>,
    bytes: &'a [u8],
}

impl<'a> Request<'a> {
    /// Decodes a header of 20 bytes, then elements; `None` if bytes are missing.
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
        // -2..=cols + 2.
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

    /// The rows, by repeating the bytes; elements past a length are arbitrary too.
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
            starts: None,
            rows: self.rows,
            cols: self.cols,
            data: (0..self.rows * self.cols).map(|_| element()).collect(),
        }
    }
}
