//! Launches of the routines that keep rows in registers.

use crate::device::require_dtype;
use crate::device::units_per_cube;
use std::cmp::Reverse;

use cubecl::{
    ir::{ElemType, FloatKind, UIntKind},
    prelude::*,
};

use super::{
    element::Element,
    launch::{Job, Target, is_single, load_widths},
    options::{Method, MethodKind},
    routines::{
        Routine,
        coarse::LEVELS,
        guess::normal_launch,
        halves::half_select,
        order::{Keys, Order},
        plane::{PlaneBlueprint, plane_select},
        team::Shape,
    },
    select::{FEW, FEW_MIDPOINTS, PLANE_CUBE_UNITS, TEAM_ITEMS, listed},
};
use crate::error::KernelError;
use crate::launch::Grid;
use crate::launch::argument;

/// How a cube holds rows and lists their members.
struct Residence {
    shape: Shape,
    /// Rows of a plane.
    rows: u32,
    planes: u32,
    cube_rows: usize,
    /// Members of a row that are listed in shared memory.
    listed: usize,
    order: Option<Order>,
    /// Members that a unit writes at a time.
    few: usize,
}

impl Job<'_> {
    /// Whether the routine writes members in the order asked for.
    pub fn orders(&self, routine: Routine) -> bool {
        let resident = matches!(routine, Routine::Plane | Routine::Block);
        !self.options.sorted || (resident && self.residence(routine).order.is_some())
    }

    fn residence(&self, routine: Routine) -> Residence {
        let plane = self.plane_size();
        let shape = if routine == Routine::Plane {
            self.plane_shape()
        } else {
            self.block_shape()
        };
        let rows = (plane / shape.lanes).max(1);
        let planes = if shape.planes > 1 {
            shape.planes
        } else {
            (units_per_cube(self.client, PLANE_CUBE_UNITS) / plane).max(1)
        };
        let cube_rows = (rows * planes / shape.planes) as usize;
        let k = self.options.k;
        let listed = listed(self.client, k, self.input.cols, cube_rows);
        let order = (self.options.sorted && listed > 0)
            .then(|| {
                let ragged = self.input.lengths.is_some();
                Order::new(k, shape.plane_lanes(), ragged, self.keys()?)
            })
            .flatten();
        let whole = listed > 0 && self.input.lengths.is_none();
        let narrow = self.input.dtype.size().max(self.index.size()) <= 4;
        let few = [4, 2]
            .into_iter()
            .find(|few| {
                whole && narrow && k.is_multiple_of(*few) && k >= few * shape.lanes as usize
            })
            .unwrap_or(1);
        Residence {
            shape,
            rows,
            planes,
            cube_rows,
            listed,
            order,
            few,
        }
    }

    /// Launches one of the routines.
    pub(super) fn registers<E: Element>(
        &self,
        routine: Routine,
        target: Target,
    ) -> Result<(), KernelError> {
        let input = self.input;
        let residence = self.residence(routine);
        let Residence {
            shape, cube_rows, ..
        } = residence;
        let (values, indices) = self.outputs(&target)?;
        let dense = matches!(target, Target::Dense(..));
        let blueprint = PlaneBlueprint {
            search: self.search(),
            shape,
            floats: !matches!(self.options.method, Method::Precision(_)) && is_single(input.dtype),
            strided: input.col_stride != 1,
            ragged: input.lengths.is_some(),
            values: matches!(target, Target::Pairs(..)),
            indices: !matches!(target, Target::Dense(_, None)),
            dense,
            listed: if dense { 0 } else { residence.listed },
            coded: self.coded(),
            order: if dense { None } else { residence.order },
            rows: residence.rows as usize,
            cube_rows,
        };
        let grid = Grid::new(
            self.client,
            input.rows.div_ceil(cube_rows),
            CubeDim::new_2d(self.plane_size(), residence.planes),
            self.elements(),
        )?;
        let source = || argument(&input.handle, "input", input.dtype, input.extent());
        if self.holds_pairs(&blueprint) {
            return match input.dtype {
                ElemType::Float(FloatKind::F16) => {
                    self.pairs::<E, half::f16>(&residence, blueprint, values, indices)
                }
                _ => self.pairs::<E, half::bf16>(&residence, blueprint, values, indices),
            };
        }
        // SAFETY: rows, strides and lengths were checked against the buffers by `argument`; the
        // kernel reads vectors inside rows only and writes at most k members or cols elements a row.
        unsafe {
            plane_select::launch_unchecked::<E>(
                self.client,
                grid.count,
                grid.dim,
                grid.address,
                shape.width,
                if dense { shape.width } else { residence.few },
                if dense { 1 } else { residence.few },
                source()?,
                source()?,
                values,
                indices,
                input.lengths_argument()?,
                self.layout(),
                self.params(),
                normal_launch(self.options.k, input.cols),
                blueprint,
                self.index,
            );
        }
        Ok(())
    }

    /// Midpoints of early stop that are compared by codes: of many, all but the last, as far as codes tell them apart.
    fn coded(&self) -> u32 {
        match self.options.method {
            Method::EarlyStop(midpoints) if midpoints > FEW_MIDPOINTS => LEVELS.min(midpoints - 1),
            _ => 0,
        }
    }

    /// Whether rows of halves are selected from two to a register.
    fn holds_pairs(&self, blueprint: &PlaneBlueprint) -> bool {
        let dtype = self.input.dtype;
        dtype.size() == 2
            && blueprint.floats
            && blueprint.search.method == MethodKind::Exact
            && blueprint.shape.pairs()
            && blueprint.listed > 0
            && blueprint.order.is_none()
            && !blueprint.strided
            && require_dtype(self.client, dtype).is_ok()
    }

    /// Launches the selection from pairs of halves.
    fn pairs<E: Element, H: Float>(
        &self,
        residence: &Residence,
        blueprint: PlaneBlueprint,
        values: BufferArg,
        indices: BufferArg,
    ) -> Result<(), KernelError> {
        let input = self.input;
        let grid = Grid::new(
            self.client,
            input.rows.div_ceil(2 * blueprint.cube_rows),
            CubeDim::new_2d(self.plane_size(), residence.planes),
            self.elements(),
        )?;
        let source = || argument(&input.handle, "input", input.dtype, input.extent());
        let words = argument(
            &input.handle,
            "input",
            ElemType::UInt(UIntKind::U32),
            input.extent() / 2,
        )?;
        // SAFETY: as in `registers`; loads of eight halves are loads of four words.
        unsafe {
            half_select::launch_unchecked::<E, H>(
                self.client,
                grid.count,
                grid.dim,
                grid.address,
                residence.shape.width,
                residence.few,
                residence.few,
                words,
                source()?,
                source()?,
                values,
                indices,
                input.lengths_argument()?,
                self.layout(),
                self.params(),
                normal_launch(self.options.k, input.cols),
                blueprint,
                self.index,
            );
        }
        Ok(())
    }

    /// Units that hold a row, `TEAM_ITEMS` elements each.
    fn team_units(&self) -> u32 {
        self.input.cols.div_ceil(TEAM_ITEMS).next_power_of_two() as u32
    }

    fn plane_shape(&self) -> Shape {
        self.shape(self.team_units().min(self.plane_size()), 1)
    }

    fn block_shape(&self) -> Shape {
        let plane = self.plane_size();
        let lanes = self.team_units().max(2 * plane);
        self.shape(lanes, lanes / plane)
    }

    /// How rows lie in `lanes` units: the fewest items, then the widest loads.
    fn shape(&self, lanes: u32, planes: u32) -> Shape {
        let cols = self.input.cols;
        let loads = |width: usize| cols.div_ceil(lanes as usize * width);
        let width = load_widths(self.client, self.input)
            .min_by_key(|width| (loads(*width) * width, Reverse(*width)))
            .unwrap_or(1);
        Shape {
            lanes,
            planes,
            width,
            loads: loads(width),
            exact_fit: loads(width) * lanes as usize * width == cols
                && self.input.lengths.is_none(),
        }
    }

    /// What tells members apart when they are put in order in registers, for dtypes with keys of 32 bits.
    fn keys(&self) -> Option<Keys> {
        match self.input.dtype {
            ElemType::Float(FloatKind::F32) => Some(Keys::Float {
                few: self.options.k * FEW <= self.input.cols,
            }),
            ElemType::Float(FloatKind::F16) => Some(Keys::Half { zeros: 13 }),
            ElemType::Float(FloatKind::BF16) => Some(Keys::Half { zeros: 16 }),
            dtype if dtype.size() == 4 => Some(Keys::Word),
            _ => None,
        }
    }
}
