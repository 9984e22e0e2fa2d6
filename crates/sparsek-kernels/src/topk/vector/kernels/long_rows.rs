use cubecl::{ir::ElemType, prelude::*};

use crate::topk::key::Element;

#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn copy_row<E: Element, I: Numeric>(
    best_values: &[E],
    columns: &[I],
    values: &mut [E],
    indices: &mut [I],
    first: usize,
    k: usize,
    #[define(I)] _index: ElemType,
) {
    let rank = ABSOLUTE_POS;
    if rank < k {
        values[first + rank] = best_values[rank];
        indices[first + rank] = columns[rank];
    }
}
