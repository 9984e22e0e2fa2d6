//! The request of a gradient.

use cubecl::server::Handle;

use super::column_blocks::ColumnBlocks;
use crate::spmm::operand::Operand;

/// A product and its transpose, for gradients.
#[derive(Clone, Copy, Debug)]
pub struct Product<'a> {
    /// The sparse operand of the product.
    pub operand: Operand<'a>,
    /// Its transpose, with the factors of rows and columns exchanged.
    pub transposed: Operand<'a>,
    /// Contiguous `i32`: the entry of `operand` that each entry of `transposed` is, ascending in
    /// each row of `transposed`.
    pub entries: &'a Handle,
    /// The entries of `transposed` by column block, for
    /// [`gradient_shared`](crate::spmm::gradient_shared).
    pub column_blocks: Option<&'a ColumnBlocks>,
}
