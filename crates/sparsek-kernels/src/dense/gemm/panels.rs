//! Products of panels, `first · secondᵀ`. Workers share inner elements; sums are added in order.

use cubecl::{
    ir::{ElemType, FloatKind},
    prelude::*,
    server::Handle,
};

use super::{
    plain, split,
    types::{Call, LINES, Panel, TILE},
};
use crate::{
    dense::{
        column_sum::reduce_rows,
        tuning::SPLIT_CUBES,
        types::{DenseRows, Weight},
    },
    device::multiprocessors,
    error::KernelError,
    launch::{allocate, fill_zero},
};

pub(super) fn refusal(client: &Client) -> Option<String> {
    match split::has_tiles(client) {
        true => split::refusal(client),
        false => plain::refusal(client),
    }
}

fn panel_of_rows<'a>(x: &DenseRows<'a>, along: bool) -> Panel<'a> {
    let (lines, inner) = if along { (x.rows, x.width) } else { (x.width, x.rows) };
    Panel { handle: x.handle, lines, inner, pitch: x.width, along }
}

fn panel_of_weight<'a>(weight: &Weight<'a>) -> Panel<'a> {
    let [down, along] = weight.strides;
    Panel {
        handle: weight.handle,
        lines: weight.outputs,
        inner: weight.inputs,
        pitch: if along == 1 { down } else { along },
        along: along != 1,
    }
}

pub(super) fn product_refusal(client: &Client, weight: &Weight) -> Option<String> {
    let [down, along] = weight.strides;
    match down == 1 || along == 1 {
        true => refusal(client),
        false => Some(format!("a matrix with strides {down} and {along}")),
    }
}

pub(super) fn product(
    client: &Client,
    x: &DenseRows,
    weight: &Weight,
    bias: Option<&Handle>,
) -> Result<Handle, KernelError> {
    multiply(client, [&panel_of_rows(x, true), &panel_of_weight(weight)], bias, 1)
}

pub(super) fn inner_product(
    client: &Client,
    x: &DenseRows,
    y: &DenseRows,
) -> Result<Handle, KernelError> {
    let tiles = x.width.div_ceil(LINES) * y.width.div_ceil(LINES);
    let most = x.rows.div_ceil(TILE).max(1);
    let workers = (SPLIT_CUBES * multiprocessors(client) / tiles).clamp(1, most);
    let panels = [&panel_of_rows(x, false), &panel_of_rows(y, false)];
    let sums = DenseRows {
        handle: &multiply(client, panels, None, workers)?,
        dtype: x.dtype,
        rows: workers,
        width: x.width * y.width,
    };
    reduce_rows(client, &sums, x.dtype, x.dtype)
}

fn multiply(
    client: &Client,
    panels: [&Panel; 2],
    bias: Option<&Handle>,
    workers: usize,
) -> Result<Handle, KernelError> {
    let dtype = ElemType::Float(FloatKind::F32);
    let elements = workers * panels[0].lines * panels[1].lines;
    let output = allocate(client, "output", elements, dtype)?;
    if elements == 0 {
        return Ok(output);
    }
    if panels[0].inner == 0 {
        fill_zero(client, &output, dtype, elements)?;
        return Ok(output);
    }
    let call = Call { client, panels, bias, output: &output, workers };
    match split::has_tiles(client) {
        true => split::launch(&call)?,
        false => plain::launch(&call)?,
    }
    Ok(output)
}
