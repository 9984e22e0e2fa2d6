//! Chooses each `match`'s first fitting row.

use cubecl::{ir::ElemType, prelude::*};

use super::{
    compressed::Compressed,
    forward::packed,
    gradient::{column_blocks::ColumnBlocks, shared, two_pass, types::Product},
    plane_layout::{require_planes, sums_len},
    tuning::{TWO_PASS_MIN_BYTES, TWO_PASS_RATIO},
    types::{CompressedPlan, Csr, Routine},
};
use crate::error::KernelError;

pub(super) enum GradientRoutine<'a> {
    Shared(&'a ColumnBlocks),
    TwoPass,
    Gathered,
}

pub(super) fn spmm_compressed(
    client: &Client,
    csr: &Csr,
    x: &Compressed,
    sum: ElemType,
    forced: Option<Routine>,
) -> Result<CompressedPlan, KernelError> {
    // The least: one team per plane.
    let bytes = |plane: u32| sums_len(plane as usize, plane as usize, x.width) * sum.size();
    let planes = |routine: Routine| require_planes(client, routine.name(), bytes);
    Ok(match forced {
        Some(Routine::Packed) => CompressedPlan::Packed(planes(Routine::Packed)?),
        Some(Routine::Plane) => CompressedPlan::Plane(planes(Routine::Plane)?),
        Some(Routine::Unit) => CompressedPlan::Unit,
        None => match planes(Routine::Plane) {
            Ok(plane) if packed::pays(csr, x) => CompressedPlan::Packed(plane),
            Ok(plane) => CompressedPlan::Plane(plane),
            Err(_) => CompressedPlan::Unit,
        },
    })
}

pub(super) fn gradient<'a>(
    client: &Client,
    product: &Product<'a>,
    x: &Compressed,
) -> GradientRoutine<'a> {
    let upstream_bytes = product.operand.csr.rows * x.width * x.dtype.size();
    let sparse = x.k * TWO_PASS_RATIO < x.width;
    let shared =
        |blocks: &ColumnBlocks| shared::plan(client, &product.transposed, x, blocks).is_ok();
    let two_pass = || {
        let large = upstream_bytes >= TWO_PASS_MIN_BYTES;
        large && sparse && two_pass::check(client, x.dtype, x.width).is_ok()
    };
    match product.column_blocks {
        Some(blocks) if shared(blocks) => GradientRoutine::Shared(blocks),
        _ if two_pass() => GradientRoutine::TwoPass,
        _ => GradientRoutine::Gathered,
    }
}
