//! Sums that are gathered: a unit for each element, or vector, of the result goes through the entries of an item in order.
//! Products with dense matrices, and the gradient of products with compressed ones.

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::{
    Operand,
    entries::{Entries, Factors, row_factor},
    partition::Item,
};
use crate::{
    error::KernelError,
    launch::{Grid, aligned, allocate, argument},
};

/// Entries whose loads are under way at a time; 4 and 16 take the same time within 1% (NVIDIA H200).
const FLIGHT: usize = 8;
/// Bytes of a row that are gathered for all rows before the next, so that more of the others' stay in the cache: on a graph of
/// Reddit's size and 256 f32 a row 128 bytes took 11.95 ms, 256 12.4, 512 15.6 and whole rows 19.2; on one of ogbn-products' size
/// 256 took 22.0 ms, 512 23.8 and whole rows 25.4 (NVIDIA H200).
const SLICE_BYTES: usize = 256;
/// The same of members, whose columns ascend: 8 took 15.9 ms, 16 16.0, and all 32 17.2 (Reddit's size, NVIDIA H200).
const SLICE_MEMBERS: usize = 8;

/// What is gathered.
pub(super) struct Gather<'a> {
    pub operand: &'a Operand<'a>,
    /// `[cols, width]` of `dtype`.
    pub x: &'a Handle,
    pub dtype: ElemType,
    pub sum: ElemType,
    pub width: usize,
    /// Where only some elements of each row of `x` are wanted: which, and how many.
    pub picked: Option<Picked<'a>>,
}

/// Columns of `x` for each row of the result.
#[derive(Clone, Copy)]
pub(super) struct Picked<'a> {
    /// `[rows, k]`.
    pub columns: &'a Handle,
    pub index: ElemType,
    pub k: usize,
}

/// What a kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Blueprint {
    factors: Factors,
    picked: bool,
    flight: usize,
}

impl Gather<'_> {
    /// Elements of a row of the result.
    fn across(&self) -> usize {
        self.picked.map_or(self.width, |picked| picked.k)
    }

    /// Elements of a load, and of a slice of the result that is gone through for all rows before the next.
    fn widths(&self, client: &Client) -> [usize; 2] {
        if self.picked.is_some() {
            return [1, SLICE_MEMBERS.min(self.across())];
        }
        let size = self.dtype.size();
        let vector = client
            .io_optimized_vector_sizes(size)
            .filter(|vector| self.width.is_multiple_of(*vector) && aligned(self.x, vector * size))
            .max()
            .unwrap_or(1);
        let slice = (SLICE_BYTES / size).min(self.width);
        [vector, slice.next_multiple_of(vector)]
    }

    pub fn launch(&self, client: &Client) -> Result<Handle, KernelError> {
        let Operand { csr, partition, .. } = self.operand;
        let across = self.across();
        let elements = csr.rows * across;
        let output = allocate(client, "output", elements, self.dtype)?;
        if elements == 0 {
            return Ok(output);
        }
        let [vector, slice] = self.widths(client);
        let slices = across.div_ceil(slice);
        let slots = (partition.slots() * across).max(1);
        let partials = allocate(client, "partials", slots, self.sum)?;
        let units = partition.items() * (slice / vector) * slices;
        let largest = elements.max(csr.cols * self.width).max(csr.nnz);
        let grid = Grid::elementwise(client, units, largest)?;
        let arguments = self.operand.arguments(client, self.dtype, self.sum)?;
        let (columns, index, picked) = match self.picked {
            Some(picked) => (picked.columns, picked.index, csr.rows * picked.k),
            None => (csr.indptr, i32::elem_type_native(), 1),
        };
        let blueprint = Blueprint {
            factors: self.operand.factors(),
            picked: self.picked.is_some(),
            flight: FLIGHT,
        };
        // SAFETY: `argument` checks the lengths; offsets and columns are in range by the contract of `Csr`; unused buffers
        // stand in for absent ones and are not read.
        unsafe {
            gather_kernel::launch_unchecked(
                client,
                grid.count,
                grid.dim,
                grid.address,
                vector,
                partition.argument()?,
                arguments.indices,
                arguments.weights,
                arguments.entries,
                arguments.rows,
                arguments.cols,
                argument(self.x, "x", self.dtype, csr.cols * self.width)?,
                argument(columns, "columns", index, picked)?,
                argument(&output, "output", self.dtype, elements)?,
                argument(&partials, "partials", self.sum, slots)?,
                partition.items(),
                (across / vector) as u32,
                (slice / vector) as u32,
                self.width / vector,
                blueprint,
                [self.dtype, self.sum, index],
            );
        }
        let outputs = Cut {
            operand: self.operand,
            partials: &partials,
            output: &output,
            dtype: self.dtype,
            sum: self.sum,
            across,
        };
        outputs.combine(client)?;
        Ok(output)
    }
}

/// One unit for each vector of each item.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments, reason = "a matrix with its factors")]
fn gather_kernel<E: Float, S: Float, I: Numeric, N: Size>(
    parts: &[i32],
    indices: &[i32],
    weights: &[E],
    entries: &[i32],
    rows: &[S],
    cols: &[S],
    x: &[Vector<E, N>],
    columns: &[I],
    output: &mut [Vector<E, N>],
    partials: &mut [Vector<S, N>],
    items: usize,
    across: u32,
    slice: u32,
    stride: usize,
    #[comptime] blueprint: Blueprint,
    #[define(E, S, I)] _dtypes: [ElemType; 3],
) {
    let wide = slice as usize;
    let number = ABSOLUTE_POS / wide;
    let part = number / items;
    let place = ABSOLUTE_POS - number * wide + part * wide;
    let across = across as usize;
    if part * wide >= across || place >= across {
        terminate!();
    }
    let item = Item::read(parts, number - part * items);
    if item.row < 0 {
        terminate!();
    }
    let row = item.row as usize;
    let place_of_row = row * across + place;
    let from = if comptime!(blueprint.picked) {
        usize::cast_from(columns[place_of_row])
    } else {
        place
    };
    let factors = comptime!(blueprint.factors);
    let source = Entries::<E, S>::new(indices, weights, entries, cols, factors);
    let flight = comptime!(blueprint.flight as i32);
    let mut sum = Vector::<S, N>::zeroed();
    let mut entry = item.start;
    while entry < item.end {
        let mut values = Array::<Vector<E, N>>::new(blueprint.flight);
        let mut weights = Array::<S>::new(blueprint.flight);
        #[unroll]
        for i in 0..blueprint.flight {
            // Past the end the last entry is read again, for nothing.
            let own = min(entry + comptime!(i as i32), item.end - 1);
            let column = source.column(own);
            weights[i] = source.factor(own, column);
            values[i] = x[column * stride + from];
        }
        #[unroll]
        for i in 0..blueprint.flight {
            if entry + comptime!(i as i32) < item.end {
                let value = Vector::<S, N>::cast_from(values[i]);
                if comptime!(factors.any()) {
                    sum += Vector::<S, N>::new(weights[i]) * value;
                } else {
                    sum += value;
                }
            }
        }
        entry += flight;
    }
    if item.slot < 0 {
        if comptime!(factors.rows) {
            sum *= Vector::<S, N>::new(row_factor::<S>(rows, row, factors));
        }
        output[place_of_row] = Vector::cast_from(sum);
    } else {
        partials[item.slot as usize * across + place] = sum;
    }
}

/// The sums of parts of rows.
pub(super) struct Cut<'a> {
    pub operand: &'a Operand<'a>,
    /// `[slots, across]`.
    pub partials: &'a Handle,
    /// `[rows, across]`.
    pub output: &'a Handle,
    pub dtype: ElemType,
    pub sum: ElemType,
    pub across: usize,
}

/// Most units that add up parts, each several elements.
const COMBINING: usize = 1 << 18;

impl Cut<'_> {
    /// Adds up the parts of each row in order.
    pub fn combine(&self, client: &Client) -> Result<(), KernelError> {
        let Operand { csr, partition, .. } = self.operand;
        let cut = partition.cut_rows();
        if cut == 0 || self.across == 0 {
            return Ok(());
        }
        let elements = csr.rows * self.across;
        let partials = partition.slots() * self.across;
        let units = (cut * self.across).min(COMBINING);
        let grid = Grid::elementwise(client, units, elements.max(partials))?;
        let arguments = self.operand.arguments(client, self.dtype, self.sum)?;
        // SAFETY: as in `Gather::launch`.
        unsafe {
            combine_kernel::launch_unchecked(
                client,
                grid.count,
                grid.dim,
                grid.address,
                partition.argument()?,
                argument(self.partials, "partials", self.sum, partials)?,
                arguments.rows,
                argument(self.output, "output", self.dtype, elements)?,
                partition.items(),
                cut,
                self.across,
                units,
                self.operand.factors(),
                [self.dtype, self.sum],
            );
        }
        Ok(())
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn combine_kernel<E: Float, S: Float>(
    parts: &[i32],
    partials: &[S],
    rows: &[S],
    output: &mut [E],
    items: usize,
    cut: usize,
    across: usize,
    units: usize,
    #[comptime] factors: Factors,
    #[define(E, S)] _dtypes: [ElemType; 2],
) {
    let mut position = ABSOLUTE_POS;
    if position >= units {
        position = cut * across;
    }
    while position < cut * across {
        let number = position / across;
        let column = position - number * across;
        let word = (items + number) * 4;
        let row = parts[word];
        if row < 0 {
            // There are no more.
            position = cut * across;
        } else {
            let first = parts[word + 1] as usize;
            let slots = parts[word + 2] as usize;
            let mut sum = S::new(0.0);
            for slot in 0..slots {
                sum += partials[(first + slot) * across + column];
            }
            let row = row as usize;
            if comptime!(factors.rows) {
                sum *= row_factor::<S>(rows, row, factors);
            }
            output[row * across + column] = E::cast_from(sum);
            position += units;
        }
    }
}
