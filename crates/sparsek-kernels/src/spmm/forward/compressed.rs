use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::{
    packed::{RowLayout, pack},
    plane::plane_kernel,
};
use crate::{
    error::KernelError,
    launch::{Grid, aligned, allocate, argument, fill_zero},
    spmm::{
        compressed::Compressed,
        operand::{Entries, Operand},
        partial_sums::PartialSums,
        partition::Item,
        plane_layout::{Limits, PlaneLayout, min_team},
        tuning::{LARGE_MEMORY, MAX_SUMS, MAX_SUMS_SHORT, MAX_SUMS_SMALL, PLANE_FLIGHT, SHORT_ROW},
        types::{CompressedPlan, Csr},
    },
};

/// Four columns of one byte are a word.
const MAX_VECTOR: usize = 4;

fn max_sums(client: &Client, plane: u32, csr: &Csr, x: &Compressed) -> usize {
    if client.properties().hardware.max_shared_memory_size >= LARGE_MEMORY {
        let short = csr.nnz < csr.rows * SHORT_ROW;
        return if short { MAX_SUMS_SHORT } else { MAX_SUMS };
    }
    // Fewer sums would give teams more units than elements.
    let busy = plane as usize * x.width / x.k.next_power_of_two();
    MAX_SUMS_SMALL.max(busy).min(MAX_SUMS)
}

/// Longest load that leaves no unit idle.
fn vector(client: &Client, plane: u32, x: &Compressed, sums: usize) -> usize {
    let fitting = client.io_optimized_vector_sizes(x.dtype.size()).filter(|&vector| {
        vector <= MAX_VECTOR
            && x.k.is_multiple_of(vector)
            && x.k / vector >= min_team(plane, x.width, sums)
            && aligned(x.values, vector * x.dtype.size())
            && aligned(x.columns, vector * x.index.size())
    });
    fitting.max().unwrap_or(1)
}

pub(crate) fn launch(
    client: &Client,
    operand: &Operand,
    x: &Compressed,
    sum: ElemType,
    plan: CompressedPlan,
) -> Result<Handle, KernelError> {
    let Operand { csr, partition, .. } = operand;
    let elements = csr.rows * x.width;
    let output = allocate(client, "output", elements, x.dtype)?;
    if elements == 0 {
        return Ok(output);
    }
    if x.k == 0 {
        fill_zero(client, &output, x.dtype, elements)?;
        return Ok(output);
    }
    let largest = elements.max(csr.cols * x.k).max(csr.nnz);
    let partials = PartialSums::new(client, operand, [x.dtype, sum], x.width, 1)?;
    let packed = match plan {
        CompressedPlan::Packed(_) => Some(pack(client, csr, x)?),
        _ => None,
    };
    let (layout, [values, columns]) = match &packed {
        Some(packed) => (packed.layout, [&packed.handle; 2]),
        None => (RowLayout::separate(x.k), [x.values, x.columns]),
    };
    let column_count = csr.cols * layout.columns;
    let values = argument(values, "values", x.dtype, csr.cols * layout.values)?;
    let columns = argument(columns, "columns", x.index, column_count)?;
    let result = argument(&output, "output", x.dtype, elements)?;
    // SAFETY: lengths checked; inputs promise indices.
    unsafe {
        match plan {
            CompressedPlan::Packed(plane) | CompressedPlan::Plane(plane) => {
                let sums = max_sums(client, plane, csr, x);
                let vector = vector(client, plane, x, sums);
                let limits = Limits { vector, sums, flight: PLANE_FLIGHT };
                let planes = PlaneLayout::new(client, plane, [x.k, x.width], limits);
                let cubes = partition.items().div_ceil(planes.planes as usize);
                let dim = CubeDim::new_2d(plane, planes.planes);
                let grid = Grid::new(client, cubes, dim, largest.max(column_count))?;
                plane_kernel::launch_unchecked(
                    client,
                    grid.count,
                    grid.dim,
                    grid.address,
                    vector,
                    partition.argument()?,
                    operand.entries(client, x.dtype, sum)?,
                    values,
                    columns,
                    result,
                    partials.argument()?,
                    partition.items(),
                    x.k as u32,
                    layout.values / vector,
                    layout.columns / vector,
                    layout.offset / vector,
                    planes,
                    [x.dtype, sum, x.index],
                );
            }
            CompressedPlan::Unit => {
                let units = partition.items() * x.width;
                let grid = Grid::elementwise(client, units, largest)?;
                unit_kernel::launch_unchecked(
                    client,
                    grid.count,
                    grid.dim,
                    grid.address,
                    partition.argument()?,
                    operand.entries(client, x.dtype, sum)?,
                    values,
                    columns,
                    result,
                    partials.argument()?,
                    partition.items(),
                    x.k as u32,
                    x.width,
                    [x.dtype, sum, x.index],
                );
            }
        }
    }
    partials.combine(client, &output)?;
    Ok(output)
}

/// A unit per result element bisects each entry: O(log k).
#[cube(launch_unchecked, address_type = "dynamic")]
fn unit_kernel<E: Float, S: Float, I: Numeric>(
    parts: &[i32],
    source: Entries<E, S>,
    values: &[E],
    columns: &[I],
    output: &mut [E],
    partials: &mut [S],
    items: usize,
    k: u32,
    width: usize,
    #[define(E, S, I)] _dtypes: [ElemType; 3],
) {
    let number = ABSOLUTE_POS / width;
    let place = ABSOLUTE_POS - number * width;
    if number >= items {
        terminate!();
    }
    let item = Item::read(parts, number);
    if item.row < 0 {
        terminate!();
    }
    let mut sum = S::new(0.0);
    let mut entry = item.start;
    while entry < item.end {
        let column = source.column(entry);
        let start = column * k as usize;
        let mut low = 0u32;
        let mut high = k;
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if usize::cast_from(columns[start + middle as usize]) <= place {
                low = middle;
            } else {
                high = middle;
            }
        }
        if usize::cast_from(columns[start + low as usize]) == place {
            sum += source.factor(entry, column) * S::cast_from(values[start + low as usize]);
        }
        entry += 1;
    }
    let row = item.row as usize;
    if item.slot < 0 {
        output[row * width + place] = E::cast_from(sum * source.row_factor(row));
    } else {
        partials[item.slot as usize * width + place] = sum;
    }
}
