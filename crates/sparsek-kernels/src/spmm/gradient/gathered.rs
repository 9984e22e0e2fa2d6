//! Unit per selected element.

use cubecl::{prelude::*, server::Handle};

use crate::{
    error::KernelError,
    spmm::{
        compressed::{Compressed, gather_columns},
        forward::gather::Gather,
        operand::Operand,
        tuning::DENSE_GRADIENT_RATIO,
    },
};

/// Computes [`gradient`](crate::spmm::gradient) by gathering k elements of `upstream` per entry.
///
/// If 8 k ≥ width, gathers from a dense product: scratch `[transposed.rows, width]`.
pub fn gradient_gathered(
    client: &Client,
    transposed: &Operand,
    upstream: &Handle,
    x: &Compressed,
) -> Result<Handle, KernelError> {
    if x.k * DENSE_GRADIENT_RATIO >= x.width {
        let gather = Gather::dense(client, transposed, upstream, x.dtype, x.width)?;
        let dense = gather.launch(client)?;
        let sizes = [transposed.csr.rows, x.width, x.k];
        return gather_columns(client, &dense, x.columns, sizes, [x.dtype, x.index]);
    }
    let gather = Gather {
        selected: Some(x.selected()),
        ..Gather::dense(client, transposed, upstream, x.dtype, x.width)?
    };
    gather.launch(client)
}
