//! Distances between the rows of two sparse matrices, over any semiring.
//!
//! [`Index`] prepares one matrix once; [`Index::distances`] then gives the distances of rows of another to all of its rows,
//! as a dense matrix. Every distance is a [`Semiring`]; those by name are in [`Metric`].

mod catalogue;
mod columns;
mod gradient;
mod host;
mod hybrid;
mod inverted;
mod join;
mod memory;
mod merge;
pub mod metrics;
mod needs;
mod norms;
mod numbers;
mod own;
mod pair;
mod parts;
mod product;
mod range;
mod ratio;
mod select;
mod semiring;
mod sweep;
mod tiled;
mod within;

use crate::device::plane_or_unit;
use crate::device::units_per_cube;
use std::ops::Range;

use cubecl::{ir::ElemType, prelude::*, server::Handle};

pub use self::{
    catalogue::{Distance, Each, Entry},
    columns::is_wide,
    gradient::{Turned, Upstream, gradient},
    host::{HostMatrix, HostPair},
    memory::index_part,
    metrics::{Metric, UnknownMetric},
    norms::Prepared,
    numbers::{Parameter, Sums, SumsExpand},
    own::without_own,
    product::{greatest, multiplies},
    ratio::quotient,
    select::{asks_for_values, choose},
    semiring::{
        Dense, Gradient, HostSemiring, Inner, Needs, Real, Rescale, Semiring, host as formulas,
    },
    within::{STRETCH, Within},
};
use self::{columns::Columns, product::Packed};
use crate::error::KernelError;
use crate::launch::Grid;
use crate::launch::allocate;
use crate::launch::argument;

/// A sparse matrix in device memory: CSR in contiguous buffers, columns of a row ascending, none twice.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    /// `rows + 1` offsets of i32, monotone.
    pub indptr: &'a Handle,
    /// Column of each entry, i32, below `cols`.
    pub indices: &'a Handle,
    /// Value of each entry.
    pub values: &'a Handle,
    /// Dtype of the values: f32, f64, f16 or bf16.
    pub dtype: ElemType,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Entries that no row has more of; as many as columns where that is not known.
    pub longest: usize,
    /// Entries.
    pub nnz: usize,
    /// The greatest magnitude of the values, infinite if they are not whole numbers, where that is known: by [`greatest`].
    pub greatest: Option<f32>,
}

/// How pairs of rows are gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routine {
    /// A unit for each pair merges both rows.
    Merge,
    /// A plane for each row and tile of the other matrix's rows adds up in shared memory, by the columns of the tile.
    Inverted,
    /// A cube for each tile of rows has them dense in shared memory.
    Tiled,
    /// Tensor cores multiply both matrices, laid out densely: inner products of whole numbers.
    Product,
    /// A cube for each row has it in shared memory and goes through all entries of the other matrix, as in the paper. Only where
    /// forced.
    Hybrid,
}

/// All routines.
pub const ROUTINES: [Routine; 5] = [
    Routine::Merge,
    Routine::Inverted,
    Routine::Tiled,
    Routine::Product,
    Routine::Hybrid,
];

impl Routine {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Inverted => "inverted",
            Self::Tiled => "tiled",
            Self::Product => "product",
            Self::Hybrid => "hybrid",
        }
    }
}

/// A checked launch: distances of some rows of `x` to all of `y`.
#[doc(hidden)]
pub struct Job<'a> {
    client: &'a Client,
    x: &'a Prepared,
    y: &'a Prepared,
    columns: Option<&'a Columns>,
    laid: Option<&'a Packed>,
    rows: Range<usize>,
    /// Both matrices are the same.
    own: bool,
    parameter: Parameter,
    output: &'a Handle,
}

impl Job<'_> {
    fn pairs(&self) -> usize {
        self.rows.len() * self.y.rows
    }

    /// A matrix with itself, all of its rows.
    fn whole(&self) -> bool {
        self.own && self.rows.len() == self.y.rows
    }

    /// Half of the distances are the others.
    fn half(&self, needs: &Needs) -> bool {
        self.whole() && needs.symmetric
    }

    /// Elements of the largest buffer.
    fn elements(&self) -> usize {
        let entries = self.x.nnz.max(self.y.nnz);
        let rows = 2 * self.x.rows.max(self.y.rows);
        self.pairs().max(entries).max(rows)
    }

    fn output(&self) -> Result<BufferArg, KernelError> {
        argument(self.output, "distances", self.x.dtype, self.pairs())
    }
}

/// A matrix to whose rows there are distances, prepared for one distance.
pub struct Index {
    distance: &'static dyn Distance,
    parameter: Parameter,
    routine: Routine,
    prepared: Prepared,
    columns: Option<Columns>,
    laid: Option<Packed>,
}

impl Index {
    /// Prepares a matrix: its norms and values, for [`Routine::Inverted`] its entries by column, and for [`Routine::Product`] its rows
    /// laid out densely. The last is only taken where it is asked for, since rows that are compared are then to be whole numbers too.
    ///
    /// # Errors
    ///
    /// [`KernelError`] for a dtype that is not a float or that the device lacks, for a routine that cannot run here, and
    /// for buffers that are too short or too large.
    pub fn new(
        client: &Client,
        matrix: &Matrix,
        distance: &'static dyn Distance,
        p: f64,
        routine: Option<Routine>,
    ) -> Result<Self, KernelError> {
        let needs = distance.needs();
        // SPIR-V's and WebGPU's extended functions take at most 32 bits.
        if needs.logarithms && matrix.dtype.size() == 8 && client.name().starts_with("wgpu") {
            return Err(KernelError::Functions {
                functions: "logarithms and powers",
                dtype: matrix.dtype,
                runtime: client.name(),
            });
        }
        let routine = match routine {
            None => choose(client, distance, None, matrix, None),
            Some(Routine::Inverted) => {
                inverted::check(client, &needs, matrix)?;
                Routine::Inverted
            }
            Some(Routine::Tiled) => {
                tiled::check(client, &needs, matrix)?;
                Routine::Tiled
            }
            Some(Routine::Hybrid) => {
                hybrid::check(client)?;
                Routine::Hybrid
            }
            Some(Routine::Product) => {
                product::check(client, &needs, matrix)?;
                Routine::Product
            }
            Some(Routine::Merge) => Routine::Merge,
        };
        let parameter = Parameter::of(p);
        let prepared = distance.prepare(client, matrix, parameter)?;
        let columns = match routine {
            Routine::Inverted => Some(Columns::new(client, &prepared, &needs)?),
            _ => None,
        };
        let laid = match needs.inner {
            Some(inner) if routine == Routine::Product => {
                Some(Packed::new(client, &prepared, 0..matrix.rows, inner)?)
            }
            _ => None,
        };
        Ok(Self {
            distance,
            parameter,
            routine,
            prepared,
            columns,
            laid,
        })
    }

    /// A matrix as the left side of [`distances`](Self::distances).
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn prepare(&self, client: &Client, matrix: &Matrix) -> Result<Prepared, KernelError> {
        self.distance.prepare(client, matrix, self.parameter)
    }

    /// The index's own matrix as the left side.
    pub fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    /// The routine that was chosen.
    pub fn routine(&self) -> Routine {
        self.routine
    }

    /// Distances of some rows of `x` to all rows of the index, contiguous `[rows.len(), index rows]`, of [`Prepared::dtype`].
    ///
    /// # Errors
    ///
    /// [`KernelError`] for rows that there are not, for another dtype or number of columns than the index has, and for an
    /// output that is too large.
    pub fn distances(
        &self,
        client: &Client,
        x: &Prepared,
        rows: Range<usize>,
    ) -> Result<Handle, KernelError> {
        self.between(client, x, rows, false)
    }

    /// Distances of some rows of the index to all of its rows, as [`distances`](Self::distances). Of all rows at once, half of
    /// them are computed where the distance is symmetric.
    ///
    /// # Errors
    ///
    /// As [`distances`](Self::distances).
    pub fn own_distances(
        &self,
        client: &Client,
        rows: Range<usize>,
    ) -> Result<Handle, KernelError> {
        self.between(client, &self.prepared, rows, true)
    }

    fn between(
        &self,
        client: &Client,
        x: &Prepared,
        rows: Range<usize>,
        own: bool,
    ) -> Result<Handle, KernelError> {
        let y = &self.prepared;
        if rows.start > rows.end || rows.end > x.rows {
            return Err(KernelError::Rows {
                first: rows.start,
                end: rows.end,
                rows: x.rows,
            });
        }
        if x.cols != y.cols {
            return Err(KernelError::Columns {
                found: x.cols,
                expected: y.cols,
            });
        }
        if x.dtype != y.dtype {
            return Err(KernelError::DtypesDiffer {
                found: x.dtype,
                expected: y.dtype,
            });
        }
        if self.routine == Routine::Product {
            let needs = self.distance.needs();
            product::check_values(&needs, x)?;
            product::check_values(&needs, y)?;
            product::check_size([rows.len(), x.cols])?;
        }
        let output = allocate(client, "distances", rows.len() * y.rows, x.dtype)?;
        let job = Job {
            client,
            x,
            y,
            columns: self.columns.as_ref(),
            laid: self.laid.as_ref(),
            rows,
            own,
            parameter: self.parameter,
            output: &output,
        };
        if job.pairs() > 0 {
            self.distance.launch(&job, self.routine)?;
        }
        Ok(output)
    }
}

/// Units of a cube whose planes each have an item of their own.
const UNITS: u32 = 256;

/// A grid with a plane for each of `items`, and the units of a plane.
fn planes_for(client: &Client, items: usize, elements: usize) -> Result<(Grid, u32), KernelError> {
    let plane = plane_or_unit(client);
    let planes = units_per_cube(client, UNITS.max(plane)) / plane;
    let dim = CubeDim::new_2d(plane, planes);
    let grid = Grid::new(client, items.div_ceil(planes as usize), dim, elements)?;
    Ok((grid, plane))
}

/// The buffers of a matrix as arguments.
struct Arguments {
    indptr: BufferArg,
    indices: BufferArg,
    values: BufferArg,
    norms: BufferArg,
}

impl Prepared {
    fn arguments(&self) -> Result<Arguments, KernelError> {
        let int = i32::elem_type_native();
        Ok(Arguments {
            indptr: argument(&self.indptr, "indptr", int, self.rows + 1)?,
            indices: argument(&self.indices, "indices", int, self.nnz)?,
            values: argument(&self.values, "values", self.dtype, self.nnz)?,
            norms: argument(&self.norms, "norms", self.dtype, 2 * self.rows)?,
        })
    }
}
