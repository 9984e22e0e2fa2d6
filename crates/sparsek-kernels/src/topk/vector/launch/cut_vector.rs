use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::super::{kernels::types::CutVectorLaunch, types::SubrangeCall};
use crate::{error::KernelError, launch::argument, topk::key::Element};

impl<E: Element> SubrangeCall<'_, E> {
    pub fn cut_vector<N: Size>(&self, width: usize) -> Result<CutVectorLaunch<E, N>, KernelError> {
        cut_vector(self.input, self.dtype, (self.length, self.partition.exponent), width)
    }
}

pub(super) fn cut_vector<E: Element, N: Size>(
    input: &Handle,
    dtype: ElemType,
    (length, exponent): (usize, u32),
    width: usize,
) -> Result<CutVectorLaunch<E, N>, KernelError> {
    let whole = argument(input, "input", dtype, length / width * width)?;
    let elements = argument(input, "input", dtype, length)?;
    Ok(CutVectorLaunch::new(whole, elements, length, exponent))
}
