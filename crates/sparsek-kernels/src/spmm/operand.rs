use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::{
    partition::Partition,
    types::{Csr, Scales, Weights},
};
use crate::{
    device::require_buffers,
    error::KernelError,
    launch::{argument, placeholder},
};

/// Most buffers without weights and factors.
const BUFFERS: usize = 6;

/// Matrix `a(i, j) = rows[i] w[e] cols[j]` for entry `e = (i, j)`.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    /// Entries.
    pub csr: Csr<'a>,
    /// Work items.
    pub partition: &'a Partition,
    /// Entry weights; 1 when absent.
    pub weights: Option<Weights<'a>>,
    /// Row and column factors.
    pub scales: Scales<'a>,
}

pub(super) struct Arguments {
    pub indices: BufferArg,
    pub weights: BufferArg,
    pub entries: BufferArg,
    pub rows: BufferArg,
    pub cols: BufferArg,
}

impl Operand<'_> {
    fn factors(&self) -> Factors {
        Factors {
            weighted: self.weights.is_some(),
            permuted: self.weights.is_some_and(|weights| weights.entries.is_some()),
            rows: self.scales.rows.is_some(),
            cols: self.scales.cols.is_some(),
        }
    }

    fn buffers(&self) -> usize {
        let Factors { weighted, permuted, rows, cols } = self.factors();
        BUFFERS + [weighted, permuted, rows, cols].into_iter().filter(|&there| there).count()
    }

    /// Weights are of `dtype`, factors of `sum`.
    pub(super) fn arguments(
        &self,
        client: &Client,
        dtype: ElemType,
        sum: ElemType,
    ) -> Result<Arguments, KernelError> {
        let int = i32::elem_type_native();
        let csr = &self.csr;
        csr.check()?;
        require_buffers(client, self.buffers())?;
        let nnz = csr.nnz.max(1);
        let placeholder = placeholder(client);
        let or_placeholder = |handle: Option<&Handle>, name, dtype, needed| match handle {
            Some(handle) => argument(handle, name, dtype, needed),
            None => argument(&placeholder, name, dtype, 1),
        };
        let weights = self.weights.map(|weights| weights.values);
        let entries = self.weights.and_then(|weights| weights.entries);
        let cols = self.scales.cols.filter(|_| csr.cols > 0);
        Ok(Arguments {
            indices: match csr.nnz {
                0 => argument(&placeholder, "indices", int, 1)?,
                _ => argument(csr.indices, "indices", int, csr.nnz)?,
            },
            weights: or_placeholder(weights.filter(|_| csr.nnz > 0), "weights", dtype, nnz)?,
            entries: or_placeholder(entries.filter(|_| csr.nnz > 0), "entries", int, nnz)?,
            rows: self.row_factors(client, sum)?,
            cols: or_placeholder(cols, "column factors", sum, csr.cols)?,
        })
    }

    pub(super) fn row_factors(
        &self,
        client: &Client,
        sum: ElemType,
    ) -> Result<BufferArg, KernelError> {
        match self.scales.rows {
            Some(rows) => argument(rows, "row factors", sum, self.csr.rows),
            None => argument(&placeholder(client), "row factors", sum, 1),
        }
    }

    pub(super) fn entries<E: Float, S: Float>(
        &self,
        client: &Client,
        dtype: ElemType,
        sum: ElemType,
    ) -> Result<EntriesLaunch<E, S>, KernelError> {
        let Arguments { indices, weights, entries, rows, cols } =
            self.arguments(client, dtype, sum)?;
        let factors = self.factors();
        Ok(EntriesLaunch::new(
            indices,
            factors.weighted.then_some(weights).into(),
            factors.permuted.then_some(entries).into(),
            factors.rows.then_some(rows).into(),
            factors.cols.then_some(cols).into(),
            factors,
        ))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Factors {
    pub weighted: bool,
    /// Weights are indirect.
    pub permuted: bool,
    pub rows: bool,
    pub cols: bool,
}

impl Factors {
    pub fn any(&self) -> bool {
        self.weighted || self.cols
    }
}

/// Binds only present buffers: WebGPU binds few.
#[derive(CubeType, CubeLaunch)]
pub(super) struct Entries<E: Float, S: Float> {
    indices: &'static [i32],
    weights: ComptimeOption<&'static [E]>,
    entries: ComptimeOption<&'static [i32]>,
    rows: ComptimeOption<&'static [S]>,
    cols: ComptimeOption<&'static [S]>,
    #[cube(comptime)]
    pub factors: Factors,
}

#[cube]
impl<E: Float, S: Float> Entries<E, S> {
    pub fn column(&self, entry: i32) -> usize {
        self.indices[entry as usize] as usize
    }

    pub fn factor(&self, entry: i32, column: usize) -> S {
        let mut factor = S::new(1.0);
        #[comptime]
        match self.weights {
            ComptimeOption::Some(weights) => {
                let from = place_of(self.entries, entry);
                factor = S::cast_from(weights[from as usize]);
            }
            ComptimeOption::None => {}
        }
        #[comptime]
        match self.cols {
            ComptimeOption::Some(cols) => factor *= cols[column],
            ComptimeOption::None => {}
        }
        factor
    }

    /// 1 when absent.
    pub fn row_factor(&self, row: usize) -> S {
        #[comptime]
        match self.rows {
            ComptimeOption::Some(rows) => rows[row],
            ComptimeOption::None => S::new(1.0),
        }
    }
}

#[cube]
fn place_of(entries: ComptimeOption<&[i32]>, entry: i32) -> i32 {
    #[comptime]
    match entries {
        ComptimeOption::Some(entries) => entries[entry as usize],
        ComptimeOption::None => entry,
    }
}
