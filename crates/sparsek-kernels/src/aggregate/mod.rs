//! Products of a sparse CSR matrix with dense and with compressed matrices: aggregation over a graph, and its gradients.
//!
//! The entries of a row are added up in an order that depends on the matrix alone, rows of more than 1024 in parts that are then added up in
//! order: deterministic, but for the one form that says otherwise. `partition` shares out the entries, `shape` those of compressed rows
//! to planes; `gather` and `forward` hold the kernels.

mod atomic;
mod compressed;
mod entries;
mod forward;
mod gather;
mod members;
mod packed;
mod partition;
mod resident;
mod sddmm;
mod shape;
mod stretches;
mod sums;
mod terms;

use crate::device::rounded_accumulator;
use cubecl::{ir::ElemType, prelude::*, server::Handle};

pub use compressed::{Compressed, pick};
pub use forward::{ROUTINES, Routine};
pub use partition::Partition;

pub use sddmm::{sddmm, sddmm_compressed};
pub use stretches::Stretches;

use crate::error::KernelError;
use crate::launch::argument;
use entries::Factors;
use gather::Gather;
use resident::Resident;

/// Where at least one element in so many is a member, the gradient is picked from a dense product: elements lie in 32-byte sectors, of
/// which most are read then anyway. For k = 32 of 256 on a graph of Reddit's size members alone took 15.9 ms, the dense product
/// 12.4; for k = 16 13.6 (NVIDIA H200).
const DENSE: usize = 8;

/// Terms are written and read again where fewer than one in so many elements is a member, and the rows that are gathered otherwise have so
/// many bytes.
const TERMS: usize = 4;
const TERMS_FROM: usize = 1 << 27;

/// Most entries of a matrix: they are numbered by i32, and units count beyond the last of a row.
pub const MAX_ENTRIES: usize = (1 << 31) - 4096;

/// A CSR pattern in device memory: contiguous buffers of `i32`, at most [`MAX_ENTRIES`] entries.
#[derive(Clone, Copy, Debug)]
pub struct Csr<'a> {
    /// `rows + 1` offsets into `indices`, monotone.
    pub indptr: &'a Handle,
    /// Column of each entry, below `cols`.
    pub indices: &'a Handle,
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// Entries.
    pub nnz: usize,
}

/// The values of a CSR matrix: entry `e` weighs `values[e]`, or `values[entries[e]]`.
#[derive(Clone, Copy, Debug)]
pub struct Weights<'a> {
    /// Contiguous, one for each entry, in the dtype of the dense operand.
    pub values: &'a Handle,
    /// Contiguous `i32`: which value belongs to each entry; in order when absent.
    pub entries: Option<&'a Handle>,
}

/// Factors of whole rows and columns, such as norms by degree: contiguous, f32, or f64 where the other operand is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scales<'a> {
    /// One for each row; 1 when absent.
    pub rows: Option<&'a Handle>,
    /// One for each column; 1 when absent.
    pub cols: Option<&'a Handle>,
}

/// The sparse operand: `a(i, j) = rows[i] w[e] cols[j]` for the entry `e = (i, j)`.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    /// Where the entries are.
    pub csr: Csr<'a>,
    /// How they are shared out.
    pub partition: &'a Partition,
    /// What they weigh: 1 when absent.
    pub weights: Option<Weights<'a>>,
    /// Factors of rows and columns.
    pub scales: Scales<'a>,
}

/// A product and its transpose.
#[derive(Clone, Copy, Debug)]
pub struct Product<'a> {
    /// Of the product.
    pub operand: Operand<'a>,
    /// Of its transpose, with the factors of rows and columns exchanged.
    pub turned: Operand<'a>,
    /// Contiguous `i32`: which entry of the product's operand each of the transpose is, ascending in each row of the transpose.
    pub entries: &'a Handle,
    /// The entries of the transpose by stretches, where there are some.
    pub stretches: Option<&'a Stretches>,
}

/// Buffers of an operand as arguments; those that are absent are others, which are not read.
struct Arguments {
    indices: BufferArg,
    weights: BufferArg,
    entries: BufferArg,
    rows: BufferArg,
    cols: BufferArg,
}

impl Csr<'_> {
    fn check(&self) -> Result<(), KernelError> {
        match self.nnz > MAX_ENTRIES {
            true => Err(KernelError::TooManyEntries {
                entries: self.nnz,
                limit: MAX_ENTRIES,
            }),
            false => Ok(()),
        }
    }
}

impl Operand<'_> {
    fn factors(&self) -> Factors {
        Factors {
            weighted: self.weights.is_some(),
            permuted: self
                .weights
                .is_some_and(|weights| weights.entries.is_some()),
            rows: self.scales.rows.is_some(),
            cols: self.scales.cols.is_some(),
        }
    }

    fn arguments(
        &self,
        client: &Client,
        dtype: ElemType,
        sum: ElemType,
    ) -> Result<Arguments, KernelError> {
        let int = i32::elem_type_native();
        let csr = &self.csr;
        csr.check()?;
        let nnz = csr.nnz.max(1);
        // What is absent.
        let spare = crate::launch::allocate(client, "spare", 1, f64::elem_type_native())?;
        let or_spare = |handle: Option<&Handle>, name, dtype, needed| match handle {
            Some(handle) => argument(handle, name, dtype, needed),
            None => argument(&spare, name, dtype, 1),
        };
        let weights = self.weights.map(|weights| weights.values);
        let entries = self.weights.and_then(|weights| weights.entries);
        Ok(Arguments {
            indices: match csr.nnz {
                0 => argument(&spare, "indices", int, 1)?,
                _ => argument(csr.indices, "indices", int, csr.nnz)?,
            },
            weights: or_spare(weights.filter(|_| csr.nnz > 0), "weights", dtype, nnz)?,
            entries: or_spare(entries.filter(|_| csr.nnz > 0), "entries", int, nnz)?,
            rows: or_spare(self.scales.rows, "row factors", sum, csr.rows)?,
            cols: or_spare(
                self.scales.cols.filter(|_| csr.cols > 0),
                "column factors",
                sum,
                csr.cols,
            )?,
        })
    }
}

/// `y[i] = rows[i] Σ w[e] cols[j] x[j]` over the entries `e = (i, j)` of row `i`.
///
/// `x` is contiguous `[cols, width]` of `dtype` (f32, f64, f16 or bf16; the last two accumulate in f32); the result is
/// contiguous `[rows, width]`. Reads a row of `x` for each entry. Scratch: up to 2 `width` sums for each 1024 entries.
///
/// # Errors
///
/// [`KernelError`] for a dtype that is not a float or that the device lacks, and for buffers that are too short, too large or
/// need wider addresses.
pub fn spmm(
    client: &Client,
    operand: &Operand,
    x: &Handle,
    dtype: ElemType,
    width: usize,
) -> Result<Handle, KernelError> {
    let gather = Gather {
        operand,
        x,
        dtype,
        sum: rounded_accumulator(client, dtype)?,
        width,
        picked: None,
    };
    gather.launch(client)
}

/// `y[i] = rows[i] Σ w[e] cols[j] x[j]` with compressed rows `x`: `[cols, k]` of `width` columns. The result is contiguous
/// `[rows, width]`.
///
/// Reads k values and columns for each entry. With planes, sums are in shared memory; else a unit looks for its column in each
/// entry. `routine` forces one of [`ROUTINES`]. Scratch as for [`spmm`], and 128 bytes for each row of `x` where these are packed: with planes,
/// rows of f32 of more than 64 and up to 128 bytes with their columns, 2^26 bytes of them or more, and 8 entries for each.
///
/// # Errors
///
/// As [`spmm`], and [`KernelError::Routine`] where the forced routine cannot run.
pub fn spmm_compressed(
    client: &Client,
    operand: &Operand,
    x: &Compressed,
    routine: Option<Routine>,
) -> Result<Handle, KernelError> {
    forward::launch(client, operand, x, routine)
}

/// The gradient of [`spmm_compressed`] at the members of `x`, whose values are not read: `[cols, k]`.
///
/// `upstream` is contiguous `[rows, width]` in the dtype of `x`. Deterministic: [by stretches](gradient_resident) where there are some,
/// else [by terms](gradient_terms) where k is less than a quarter of the width and `upstream` has 128 MiB or more, else
/// [gathered](gradient_gathered); and gathered also where the first two cannot run.
///
/// # Errors
///
/// As [`spmm`].
pub fn gradient(
    client: &Client,
    product: &Product,
    upstream: &Handle,
    x: &Compressed,
) -> Result<Handle, KernelError> {
    let turned = &product.turned;
    if let Some(stretches) = product.stretches {
        let resident = Resident {
            turned,
            stretches,
            upstream,
            x,
        };
        if let Ok(plan) = resident.check(client) {
            return resident.launch(client, plan);
        }
    }
    let large = product.operand.csr.rows * x.width * x.dtype.size() >= TERMS_FROM;
    if large && x.k * TERMS < x.width && terms::check(client, x.dtype, x.width).is_ok() {
        return gradient_terms(client, product, upstream, x, None);
    }
    gradient_gathered(client, turned, upstream, x)
}

/// [`gradient`] in two steps: k terms for each entry are written to scratch memory, then gathered and added up. Deterministic.
///
/// Reads a row of `upstream` for each row of the product, or part of one, and for each entry k columns; writes and reads k terms.
/// Scratch: `scratch` bytes at most, when absent a sixteenth of the device's memory, or as many as it gives in one piece; sums are read and
/// written again for each time that entries fill it.
///
/// # Errors
///
/// As [`spmm`], and [`KernelError::Routine`] for other dtypes than f32 and f64, and without planes of one fixed size that can wait for
/// themselves.
pub fn gradient_terms(
    client: &Client,
    product: &Product,
    upstream: &Handle,
    x: &Compressed,
    scratch: Option<usize>,
) -> Result<Handle, KernelError> {
    let rows = (x.dtype, x.width);
    terms::launch(client, product, upstream, rows, x.picked(), scratch)
}

/// [`gradient`] that gathers k elements of a row of `upstream` for each entry, or, where k is at least an eighth of the width,
/// picks them from the product with dense rows, `[turned.rows, width]` in scratch memory. Deterministic.
///
/// # Errors
///
/// As [`spmm`].
pub fn gradient_gathered(
    client: &Client,
    turned: &Operand,
    upstream: &Handle,
    x: &Compressed,
) -> Result<Handle, KernelError> {
    if x.k * DENSE >= x.width {
        let dense = spmm(client, turned, upstream, x.dtype, x.width)?;
        let sizes = [turned.csr.rows, x.width, x.k];
        return pick(client, &dense, x.columns, sizes, [x.dtype, x.index]);
    }
    let gather = Gather {
        operand: turned,
        x: upstream,
        dtype: x.dtype,
        sum: rounded_accumulator(client, x.dtype)?,
        width: x.width,
        picked: Some(x.picked()),
    };
    gather.launch(client)
}

/// [`gradient`] with columns of `upstream` in shared memory, for each [stretch](Stretches) of the columns of `turned`, which ascend in each
/// row. Deterministic.
///
/// Reads 2 bytes for each entry and member of its row. Scratch: `upstream` in f32, and 4 bytes for each member and 4 more for each
/// stretch.
///
/// # Errors
///
/// As [`spmm`], and [`KernelError::Routine`] for f64, with weights of entries, without planes of 8 units or more of one fixed size, and where
/// `upstream` has more columns than a cube has units.
pub fn gradient_resident(
    client: &Client,
    turned: &Operand,
    upstream: &Handle,
    x: &Compressed,
    stretches: &Stretches,
) -> Result<Handle, KernelError> {
    let resident = Resident {
        turned,
        stretches,
        upstream,
        x,
    };
    resident.launch(client, resident.check(client)?)
}

/// [`gradient`] by atomic additions: reads a row of `upstream` once, and adds k values for each entry. **Not deterministic**: terms
/// are added in the order in which they come, and sums round differently from run to run.
///
/// `operand` is that of the product, not its transpose.
///
/// # Errors
///
/// As [`spmm`], and [`KernelError::Routine`] for other dtypes than f32 and where [`has_atomics`] says no.
pub fn gradient_atomic(
    client: &Client,
    operand: &Operand,
    upstream: &Handle,
    x: &Compressed,
) -> Result<Handle, KernelError> {
    atomic::launch(client, operand, upstream, x.dtype, x.width, x.picked())
}

/// Whether [`gradient_atomic`] runs on the device for such rows.
pub fn has_atomics(client: &Client, x: &Compressed) -> bool {
    atomic::check(client, x.dtype, x.width).is_ok()
}
