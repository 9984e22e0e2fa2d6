use cubecl::server::Handle;

use super::column_blocks::ColumnBlocks;
use crate::spmm::operand::Operand;

/// Product and its transpose.
#[derive(Clone, Copy, Debug)]
pub struct Product<'a> {
    /// Sparse operand.
    pub operand: Operand<'a>,
    /// Transpose, with factors exchanged.
    pub transposed: Operand<'a>,
    /// `i32`: each transposed entry's number in `operand`, ascending per row.
    pub entries: &'a Handle,
    /// Column blocks of `transposed`, for [`gradient_shared`](crate::spmm::gradient_shared).
    pub column_blocks: Option<&'a ColumnBlocks>,
}
