//! Products of very many rows where tensor cores do not take TF32, as by Vulkan: f32 as the sum of two bf16.
//!
//! A factor is rounded to bf16, and what is left of it as well, so that both have 16 bits of it together. Of the four products that of both
//! rests is left out: relative errors are about 2^-16, where TF32 leaves 2^-11.

mod kernel;

use crate::device::multiprocessors;
use crate::device::plane_size;
use crate::primitives::mma::instruction;
use cubecl::{
    ir::{ElemType, FloatKind},
    prelude::*,
    server::Handle,
};
use half::bf16;

use super::Rows;
use super::Weight;
use super::columns::finish;
use crate::error::KernelError;
use crate::launch::Grid;
use crate::launch::aligned;
use crate::launch::allocate;
use crate::launch::argument;

/// Planes of a cube: so many beside one another on the lines of the first panel, the others on those of the second.
const PLANES: usize = 8;
const FIRST_PLANES: usize = 4;
/// Lines of either panel.
const LINES: usize = 128;
/// Rows, columns and inner elements of the instruction, and inner elements of a step.
const TILE: usize = 16;
/// Tiles of a plane.
const DOWN: usize = LINES / FIRST_PLANES / TILE;
const ACROSS: usize = LINES * FIRST_PLANES / PLANES / TILE;
/// Elements of a load.
const WIDTH: usize = 4;
/// Elements from one line of a panel to the next, and from one inner element to the next where lines lie together: no power of two, so
/// that they are in other banks of shared memory.
const LINE: usize = TILE + 8;
const INNER: usize = LINES + 8;
/// Cubes for each processor, which share the rows of an inner product.
const CUBES: usize = 4;

/// What a kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Blueprint {
    plane: usize,
    /// Whether the inner elements of a line lie together, for either panel; else lines do.
    along: [bool; 2],
    biased: bool,
}

/// A matrix of lines, whose products with those of another are added up over the inner elements.
struct Panel<'a> {
    handle: &'a Handle,
    lines: usize,
    inner: usize,
    /// Elements from a line, or where lines lie together from an inner element, to the next.
    pitch: usize,
    along: bool,
}

/// Why these cannot be multiplied so, if so.
fn refusal(client: &Client, panels: [&Panel; 2]) -> Option<String> {
    let tile = instruction(FloatKind::BF16, [TILE as u32; 3]);
    let hardware = &client.properties().hardware;
    let plane = plane_size(client).unwrap_or(0);
    let shared = 4 * size_of::<bf16>() * LINES * LINE + PLANES * TILE * TILE * size_of::<f32>();
    let loads = LINES * TILE / WIDTH;
    let units = plane as usize * PLANES;
    if !client.features().matmul.cmma.contains(&tile) {
        Some("the device multiplies neither TF32 nor tiles of bf16".into())
    } else if units == 0
        || !loads.is_multiple_of(units)
        || units as u32 > hardware.max_units_per_cube
    {
        Some(format!("planes of {plane} units"))
    } else if shared > hardware.max_shared_memory_size {
        let limit = hardware.max_shared_memory_size;
        Some(format!(
            "it takes {shared} bytes of shared memory, there are {limit}"
        ))
    } else {
        panels.iter().find_map(|panel| {
            // The other direction is gone through element by element.
            let loaded = if panel.along {
                panel.inner
            } else {
                panel.lines
            };
            let whole = loaded.is_multiple_of(WIDTH) && panel.pitch.is_multiple_of(WIDTH);
            let bytes = WIDTH * size_of::<f32>();
            (!whole || !aligned(panel.handle, bytes)).then(|| {
                format!(
                    "{} lines of {} elements that cannot be loaded by four",
                    panel.lines, panel.inner
                )
            })
        })
    }
}

fn of_rows<'a>(x: &Rows<'a>, along: bool) -> Panel<'a> {
    let (lines, inner) = if along {
        (x.rows, x.width)
    } else {
        (x.width, x.rows)
    };
    Panel {
        handle: x.handle,
        lines,
        inner,
        pitch: x.width,
        along,
    }
}

fn of_weight<'a>(weight: &Weight<'a>) -> Panel<'a> {
    let [down, along] = weight.strides;
    Panel {
        handle: weight.handle,
        lines: weight.outputs,
        inner: weight.inputs,
        pitch: if along == 1 { down } else { along },
        along: along != 1,
    }
}

/// Why [`product`] cannot serve these.
pub(super) fn product_refusal(client: &Client, x: &Rows, weight: &Weight) -> Option<String> {
    let [down, along] = weight.strides;
    if down != 1 && along != 1 {
        return Some(format!("a matrix with strides {down} and {along}"));
    }
    refusal(client, [&of_rows(x, true), &of_weight(weight)])
}

/// Why [`inner_product`] cannot serve these.
pub(super) fn inner_refusal(client: &Client, x: &Rows, y: &Rows) -> Option<String> {
    refusal(client, [&of_rows(x, false), &of_rows(y, false)])
}

/// `x · weight + bias`.
pub(super) fn product(
    client: &Client,
    x: &Rows,
    weight: &Weight,
    bias: Option<&Handle>,
) -> Result<Handle, KernelError> {
    launch(client, [&of_rows(x, true), &of_weight(weight)], bias, 1)
}

/// `xᵀ · y`.
pub(super) fn inner_product(client: &Client, x: &Rows, y: &Rows) -> Result<Handle, KernelError> {
    let tiles = x.width.div_ceil(LINES) * y.width.div_ceil(LINES);
    let most = x.rows.div_ceil(TILE).max(1);
    let workers = (CUBES * multiprocessors(client) / tiles).clamp(1, most);
    let panels = [&of_rows(x, false), &of_rows(y, false)];
    let sums = Rows {
        handle: &launch(client, panels, None, workers)?,
        dtype: x.dtype,
        rows: workers,
        width: x.width * y.width,
    };
    finish(client, &sums, x.dtype, x.dtype)
}

/// The products of all lines, for each of some workers that share the inner elements.
fn launch(
    client: &Client,
    [first, second]: [&Panel; 2],
    bias: Option<&Handle>,
    workers: usize,
) -> Result<Handle, KernelError> {
    let dtype = ElemType::Float(FloatKind::F32);
    let elements = workers * first.lines * second.lines;
    let output = allocate(client, "output", elements, dtype)?;
    if elements == 0 {
        return Ok(output);
    }
    if first.inner == 0 {
        crate::launch::fill_zero(client, &output, dtype, elements)?;
        return Ok(output);
    }
    let sizes = [first, second].map(|panel| panel.lines * panel.inner);
    let blueprint = Blueprint {
        plane: plane_size(client).unwrap_or(1) as usize,
        along: [first.along, second.along],
        biased: bias.is_some(),
    };
    let dim = CubeDim::new_2d(blueprint.plane as u32, PLANES as u32);
    let across = second.lines.div_ceil(LINES);
    let tiles = first.lines.div_ceil(LINES) * across;
    let largest = sizes[0].max(sizes[1]).max(elements);
    let grid = Grid::new(client, tiles * workers, dim, largest)?;
    let bias = match bias {
        Some(bias) => argument(bias, "bias", dtype, second.lines)?,
        None => argument(first.handle, "first factor", dtype, 1)?,
    };
    // SAFETY: `argument` checks the lengths.
    unsafe {
        kernel::split_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            argument(first.handle, "first factor", dtype, sizes[0])?,
            argument(second.handle, "second factor", dtype, sizes[1])?,
            bias,
            argument(&output, "output", dtype, elements)?,
            first.lines,
            second.lines,
            first.inner,
            first.pitch,
            second.pitch,
            workers,
            blueprint,
        );
    }
    Ok(output)
}
