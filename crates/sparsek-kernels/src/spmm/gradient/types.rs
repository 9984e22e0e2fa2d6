//! Request of a gradient.

use cubecl::server::Handle;

use super::column_blocks::ColumnBlocks;
use crate::spmm::operand::Operand;

/// A product and its transpose, for gradients.
#[derive(Clone, Copy, Debug)]
pub struct Product<'a> {
    /// Sparse operand.
    pub operand: Operand<'a>,
    /// Transpose, with row and column factors exchanged.
    pub transposed: Operand<'a>,
    /// Contiguous `i32`: the number in `operand` of each transposed entry, ascending in a row.
    pub entries: &'a Handle,
    /// Column blocks of `transposed`, for [`gradient_shared`](crate::spmm::gradient_shared).
    pub column_blocks: Option<&'a ColumnBlocks>,
}
