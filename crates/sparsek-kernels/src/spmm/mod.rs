//! Products of CSR matrices with dense or compressed rows, and gradients.
//!
//! ```text
//! y[i] = rows[i] Σ w[e] cols[j] x[j]     over the entries e = (i, j) of row i
//! ```
//!
//! [`Compressed`] rows are CBSR of MaxK-GNN (Peng et al., 2024), whose SpGEMM is
//! [`spmm_compressed`] and SSpMM [`gradient`].
//!
//! Deterministic: parts of long rows are added in order.

#[cfg(feature = "kernels")]
mod compressed;
#[cfg(feature = "kernels")]
mod forward;
#[cfg(feature = "kernels")]
mod gradient;
#[cfg(feature = "kernels")]
pub mod max;
#[cfg(feature = "kernels")]
mod offsets;
#[cfg(feature = "kernels")]
mod operand;
#[cfg(feature = "kernels")]
mod partial_sums;
#[cfg(feature = "kernels")]
mod partition;
#[cfg(feature = "kernels")]
mod plan;
#[cfg(feature = "kernels")]
mod plane_layout;
#[cfg(feature = "kernels")]
mod sddmm;
mod sizes;
mod tuning;
mod types;

#[cfg(feature = "kernels")]
use cubecl::{ir::ElemType, prelude::*, server::Handle};

#[cfg(feature = "kernels")]
pub use self::{
    compressed::{Compressed, gather_columns},
    gradient::{
        column_blocks::ColumnBlocks, gathered::gradient_gathered, shared::gradient_shared,
        two_pass::gradient_two_pass, types::Product,
    },
    offsets::row_offsets,
    operand::Operand,
    partition::Partition,
    sddmm::{sddmm, sddmm_compressed},
    types::{Csr, Scales, Weights},
};
pub use self::{
    sizes::{column_blocks_len, column_blocks_pay, partition_len},
    types::{MAX_ENTRIES, ROUTINES, Routine},
};

#[cfg(feature = "kernels")]
use crate::{device::rounded_accumulator, error::KernelError};
#[cfg(feature = "kernels")]
use forward::gather::Gather;
#[cfg(feature = "kernels")]
use plan::GradientRoutine;

/// Multiplies with dense rows: `[rows, width]`.
///
/// `x` is `[cols, width]` of `dtype`: f32, f64, f16 or bf16; the last two accumulate in f32.
/// Scratch: up to 2 `width` sums per 128 to 1024 entries.
#[cfg(feature = "kernels")]
pub fn spmm(
    client: &Client,
    operand: &Operand,
    x: &Handle,
    dtype: ElemType,
    width: usize,
) -> Result<Handle, KernelError> {
    Gather::dense(client, operand, x, dtype, width)?.launch(client)
}

/// Multiplies with compressed rows; else as [`spmm`].
///
/// Without planes, units bisect entries. Planes pack f32 rows of 65 to 128 bytes in large matrices,
/// with scratch of 128 bytes per row of `x`.
///
/// `routine` forces one of [`ROUTINES`], or fails.
#[cfg(feature = "kernels")]
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

/// Gradient of [`spmm_compressed`] at `x`'s selected elements: `[cols, k]`.
///
/// `upstream` is `[rows, width]` in `x`'s dtype.
///
/// Runs [`gradient_shared`] given column blocks, else [`gradient_two_pass`] if 4 k < width and
/// `upstream` has ≥ 128 MiB, else [`gradient_gathered`]. Skips routines that cannot run.
#[cfg(feature = "kernels")]
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
