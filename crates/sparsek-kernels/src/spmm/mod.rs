//! Products of a CSR matrix with dense or compressed rows: aggregation over a graph, and
//! gradients.
//!
//! ```text
//! y[i] = rows[i] Σ w[e] cols[j] x[j]     over the entries e = (i, j) of row i
//! ```
//!
//! [`Compressed`] rows keep k of `width` elements: the CBSR format of MaxK-GNN (Peng et al.,
//! 2024). Its forward SpGEMM is [`spmm_compressed`], its backward SSpMM is [`gradient`].
//!
//! Every result is deterministic. The matrix alone decides the order of additions: a row with
//! more than 1024 entries is cut into parts, and the sums of parts are added in order.
//!
//! `plan` chooses routines by `tuning`; `partition` shares out entries; `forward`, `gradient`,
//! `sddmm` and `max` are the operations.

mod compressed;
mod forward;
mod gradient;
pub mod max;
mod operand;
mod partial_sums;
mod partition;
mod plan;
mod plane_layout;
mod sddmm;
mod tuning;
mod types;

use cubecl::{ir::ElemType, prelude::*, server::Handle};

pub use compressed::{Compressed, gather_columns};
pub use gradient::{
    column_blocks::ColumnBlocks, gathered::gradient_gathered, shared::gradient_shared,
    two_pass::gradient_two_pass, types::Product,
};
pub use operand::Operand;
pub use partition::Partition;
pub use sddmm::{sddmm, sddmm_compressed};
pub use types::{Csr, MAX_ENTRIES, ROUTINES, Routine, Scales, Weights};

use crate::{device::rounded_accumulator, error::KernelError};
use forward::gather::Gather;
use plan::GradientRoutine;

/// Multiplies with dense rows: `y[i] = rows[i] Σ w[e] cols[j] x[j]` over the entries of row `i`.
///
/// # Shapes
///
/// `x` is contiguous `[cols, width]` of `dtype`: f32, f64, f16 or bf16. The last two accumulate
/// in f32. The result is contiguous `[rows, width]`.
///
/// Reads a row of `x` for each entry. Scratch: up to 2 `width` sums for each 1024 entries.
///
/// # Errors
///
/// [`KernelError`] for a dtype that is not a float or that the device lacks, and for buffers that
/// are too short, too large or need wider addresses.
pub fn spmm(
    client: &Client,
    operand: &Operand,
    x: &Handle,
    dtype: ElemType,
    width: usize,
) -> Result<Handle, KernelError> {
    Gather::dense(client, operand, x, dtype, width)?.launch(client)
}

/// Multiplies with compressed rows: `y[i] = rows[i] Σ w[e] cols[j] x[j]`.
///
/// # Shapes
///
/// `x` has `cols` rows of k elements out of `width`. The result is contiguous `[rows, width]`.
///
/// Reads k values and columns for each entry. With planes, sums are in shared memory; without, a
/// unit searches for its column in each entry. `routine` forces one of [`ROUTINES`].
///
/// Scratch: as [`spmm`], and 128 bytes for each row of `x` when rows are packed. Planes pack f32
/// rows that take 65 to 128 bytes with their columns, if all rows take at least 2^26 bytes and
/// there are at least 8 entries for each.
///
/// # Errors
///
/// As [`spmm`], and [`KernelError::Routine`] if the forced routine cannot run.
pub fn spmm_compressed(
    client: &Client,
    operand: &Operand,
    x: &Compressed,
    routine: Option<Routine>,
) -> Result<Handle, KernelError> {
    let sum = rounded_accumulator(client, x.dtype)?;
    let plan = plan::spmm_compressed(client, &operand.csr, x, sum, routine)?;
    forward::compressed::launch(client, operand, x, sum, plan)
}

/// Computes the gradient of [`spmm_compressed`] at the selected elements of `x`: `[cols, k]`.
///
/// `upstream` is contiguous `[rows, width]` in the dtype of `x`. The values of `x` are not read.
/// Deterministic.
///
/// Runs [`gradient_shared`] if the product has column blocks, else [`gradient_two_pass`] if
/// k / width < 1 / 4 and `upstream` has at least 128 MiB, else [`gradient_gathered`]. A routine
/// that cannot run on the device leaves the request to the next.
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
    let transposed = &product.transposed;
    match plan::gradient(client, product, x) {
        GradientRoutine::Shared(blocks) => gradient_shared(client, transposed, upstream, x, blocks),
        GradientRoutine::TwoPass => gradient_two_pass(client, product, upstream, x, None),
        GradientRoutine::Gathered => gradient_gathered(client, transposed, upstream, x),
    }
}
