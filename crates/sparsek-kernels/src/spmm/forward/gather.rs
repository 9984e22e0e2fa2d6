//! A unit per result vector adds an item's entries in order, by slices of columns that fit the
//! cache.

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use crate::{
    device::rounded_accumulator,
    error::KernelError,
    launch::{Grid, aligned, allocate, argument},
    spmm::{
        compressed::SelectedColumns,
        operand::{Entries, Operand},
        partial_sums::PartialSums,
        partition::Item,
        tuning::{GATHER_FLIGHT, SLICE_BYTES, SLICE_SELECTED},
    },
};

pub(crate) struct Gather<'a> {
    pub operand: &'a Operand<'a>,
    /// `[cols, width]` of `dtype`.
    pub x: &'a Handle,
    pub dtype: ElemType,
    pub sum: ElemType,
    pub width: usize,
    /// All when absent.
    pub selected: Option<SelectedColumns<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct GatherConfig {
    selected: bool,
    flight: usize,
}

impl<'a> Gather<'a> {
    pub fn dense(
        client: &Client,
        operand: &'a Operand<'a>,
        x: &'a Handle,
        dtype: ElemType,
        width: usize,
    ) -> Result<Self, KernelError> {
        Ok(Self {
            operand,
            x,
            dtype,
            sum: rounded_accumulator(client, dtype)?,
            width,
            selected: None,
        })
    }

    fn across(&self) -> usize {
        self.selected.map_or(self.width, |selected| selected.k)
    }

    fn widths(&self, client: &Client) -> [usize; 2] {
        if self.selected.is_some() {
            return [1, SLICE_SELECTED.min(self.across())];
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
        let dtypes = [self.dtype, self.sum];
        let partials = PartialSums::new(client, self.operand, dtypes, across, vector)?;
        let units = partition.items() * (slice / vector) * slices;
        let largest = elements.max(csr.cols * self.width).max(csr.nnz);
        let grid = Grid::elementwise(client, units, largest)?;
        let (columns, index, needed) = match self.selected {
            Some(selected) => (selected.columns, selected.index, csr.rows * selected.k),
            None => (csr.indptr, i32::elem_type_native(), 1),
        };
        let config = GatherConfig { selected: self.selected.is_some(), flight: GATHER_FLIGHT };
        // SAFETY: lengths checked; inputs promise indices.
        unsafe {
            gather_kernel::launch_unchecked(
                client,
                grid.count,
                grid.dim,
                grid.address,
                vector,
                partition.argument()?,
                self.operand.entries(client, self.dtype, self.sum)?,
                argument(self.x, "x", self.dtype, csr.cols * self.width)?,
                argument(columns, "columns", index, needed)?,
                argument(&output, "output", self.dtype, elements)?,
                partials.argument()?,
                partition.items(),
                (across / vector) as u32,
                (slice / vector) as u32,
                self.width / vector,
                config,
                [self.dtype, self.sum, index],
            );
        }
        partials.combine(client, &output)?;
        Ok(output)
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn gather_kernel<E: Float, S: Float, I: Numeric, N: Size>(
    parts: &[i32],
    source: Entries<E, S>,
    x: &[Vector<E, N>],
    columns: &[I],
    output: &mut [Vector<E, N>],
    partials: &mut [Vector<S, N>],
    items: usize,
    across: u32,
    slice: u32,
    stride: usize,
    #[comptime] config: GatherConfig,
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
    let from =
        if comptime!(config.selected) { usize::cast_from(columns[place_of_row]) } else { place };
    let flight = comptime!(config.flight as i32);
    let mut sum = Vector::<S, N>::zeroed();
    let mut entry = item.start;
    while entry < item.end {
        let mut values = Array::<Vector<E, N>>::new(config.flight);
        let mut weights = Array::<S>::new(config.flight);
        #[unroll]
        for i in 0..config.flight {
            let own = min(entry + comptime!(i as i32), item.end - 1);
            let column = source.column(own);
            weights[i] = source.factor(own, column);
            values[i] = x[column * stride + from];
        }
        #[unroll]
        for i in 0..config.flight {
            if entry + comptime!(i as i32) < item.end {
                let value = Vector::<S, N>::cast_from(values[i]);
                if comptime!(source.factors.any()) {
                    sum += Vector::<S, N>::new(weights[i]) * value;
                } else {
                    sum += value;
                }
            }
        }
        entry += flight;
    }
    if item.slot < 0 {
        if comptime!(source.factors.rows) {
            sum *= Vector::<S, N>::new(source.row_factor(row));
        }
        output[place_of_row] = Vector::cast_from(sum);
    } else {
        partials[item.slot as usize * across + place] = sum;
    }
}
