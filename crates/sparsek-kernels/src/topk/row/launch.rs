use std::cmp::Reverse;

use cubecl::{
    ir::{ElemType, FloatKind, UIntKind},
    prelude::*,
};

use super::{
    config::{CandidateConfig, RegisterConfig, SortConfig, SortKeys},
    cube::cube_select,
    delegate::delegate_select,
    job::{Job, Target},
    layout::MemoryCallLaunch,
    packed_f16::packed_select,
    radix_select::radix_select,
    register::{RegisterCallLaunch, register_select},
    sampled::{SamplingLaunch, sampled_select},
    unit::unit_select,
};
use crate::{
    device::{has_plane_barrier, multiprocessors, planes_per_cube, require_dtype, units_per_cube},
    error::KernelError,
    launch::{Grid, argument},
    primitives::team::TeamShape,
    topk::{
        key::{Element, is_single, with_element},
        options::{Method, MethodKind},
        plan::{
            RowProblem, SampledPlan, cube_units, listed, load_widths, masked_load_width,
            sampled_plan, takes_histogram,
        },
        threshold::{early_stop::CODE_BITS, normal::normal_launch},
        tuning::{
            BITWISE_SHARE, BLOCK_CUBE_UNITS, BUSY_UNITS, COUNTED_MIDPOINTS, DELEGATE_LIST_ITEMS,
            DELEGATE_SUBRANGES, PLANE_CUBE_UNITS, REGISTER_ITEMS, SPREAD_ITEMS, TILE_ITEMS,
        },
        types::Routine,
    },
};

struct RegisterPlan {
    shape: TeamShape,
    rows: u32,
    planes: u32,
    cube_rows: usize,
    listed: usize,
    order: Option<SortConfig>,
    per_write: usize,
}

impl Job<'_> {
    /// In index order unless [`Job::orders`].
    pub fn select(&self, routine: Routine, target: Target) -> Result<(), KernelError> {
        with_element!(self.input.dtype, E => match routine {
            Routine::Plane | Routine::Block => self.registers::<E>(routine, target),
            Routine::Delegate => self.delegate::<E>(target),
            Routine::Sampled => self.sampled::<E>(target),
            Routine::Filter => self.filter::<E>(target),
            Routine::Radix => self.radix::<E>(target),
            Routine::Cube | Routine::Unit => self.unit_or_cube::<E>(routine, target),
        })
    }

    pub fn orders(&self, routine: Routine) -> bool {
        let in_registers = matches!(routine, Routine::Plane | Routine::Block);
        !self.options.sorted || (in_registers && self.register_plan(routine, false).order.is_some())
    }

    fn register_plan(&self, routine: Routine, dense: bool) -> RegisterPlan {
        let plane = self.plane_size();
        let shape = if routine == Routine::Plane { self.plane_shape() } else { self.block_shape() };
        let rows = (plane / shape.lanes).max(1);
        let planes = match (shape.planes > 1, dense) {
            (true, _) => shape.planes,
            (false, true) => (units_per_cube(self.client, PLANE_CUBE_UNITS) / plane).max(1),
            (false, false) => planes_per_cube(self.client, PLANE_CUBE_UNITS, plane),
        };
        let cube_rows = (rows * planes / shape.planes) as usize;
        let k = self.options.k;
        let listed = match dense {
            true => 0,
            false => listed(self.client, k, self.input.cols, cube_rows),
        };
        // One plane sorts, alone.
        let sorts = planes == 1 || has_plane_barrier(self.client);
        let order = (self.options.sorted && listed > 0 && sorts)
            .then(|| {
                let ragged = self.input.lengths.is_some();
                SortConfig::new(k, shape.plane_lanes(), ragged, self.keys()?)
            })
            .flatten();
        let whole = listed > 0 && self.input.lengths.is_none();
        let narrow = self.input.dtype.size().max(self.index.size()) <= 4;
        let per_write = [4, 2]
            .into_iter()
            .find(|per_write| {
                whole
                    && narrow
                    && k.is_multiple_of(*per_write)
                    && k >= per_write * shape.lanes as usize
            })
            .unwrap_or(1);
        RegisterPlan { shape, rows, planes, cube_rows, listed, order, per_write }
    }

    fn registers<E: Element>(&self, routine: Routine, target: Target) -> Result<(), KernelError> {
        let input = self.input;
        let dense = matches!(target, Target::Dense(..));
        let plan = self.register_plan(routine, dense);
        let RegisterPlan { shape, cube_rows, .. } = plan;
        let (values, indices) = self.outputs(&target)?;
        let config = RegisterConfig {
            search: self.search(),
            shape,
            floats: !matches!(self.options.method, Method::Precision(_)) && is_single(input.dtype),
            histogram: shape.planes > 1
                && self.options.method == Method::Exact
                && takes_histogram(self.client, input.cols),
            strided: input.col_stride != 1,
            ragged: input.lengths.is_some(),
            values: matches!(target, Target::Both(..)),
            indices: !matches!(target, Target::Dense(_, None)),
            dense,
            listed: plan.listed,
            quantized_midpoints: self.quantized_midpoints(),
            order: plan.order,
            rows: plan.rows as usize,
            cube_rows,
        };
        let grid = Grid::new(
            self.client,
            input.rows.div_ceil(cube_rows),
            CubeDim::new_2d(self.plane_size(), plan.planes),
            self.elements(),
        )?;
        if self.packs_f16(&config) {
            return match input.dtype {
                ElemType::Float(FloatKind::F16) => {
                    self.packed_f16::<E, half::f16>(&plan, config, values, indices)
                }
                _ => self.packed_f16::<E, half::bf16>(&plan, config, values, indices),
            };
        }
        // SAFETY: rows, strides and lengths checked; the kernel stays inside rows.
        unsafe {
            register_select::launch_unchecked::<E>(
                self.client,
                grid.count,
                grid.dim,
                grid.address,
                shape.width,
                if dense { shape.width } else { plan.per_write },
                if dense { 1 } else { plan.per_write },
                self.register_call(values, indices)?,
                config,
                self.index,
            );
        }
        Ok(())
    }

    fn quantized_midpoints(&self) -> u32 {
        match self.options.method {
            Method::EarlyStop(midpoints) if midpoints > COUNTED_MIDPOINTS => {
                CODE_BITS.min(midpoints - 1)
            }
            _ => 0,
        }
    }

    fn packs_f16(&self, config: &RegisterConfig) -> bool {
        let dtype = self.input.dtype;
        dtype.size() == 2
            && config.floats
            && config.search.method == MethodKind::Exact
            && config.shape.can_pack()
            && config.listed > 0
            && config.order.is_none()
            && !config.strided
            && require_dtype(self.client, dtype).is_ok()
    }

    fn packed_f16<E: Element, H: Float>(
        &self,
        plan: &RegisterPlan,
        config: RegisterConfig,
        values: BufferArg,
        indices: BufferArg,
    ) -> Result<(), KernelError> {
        let input = self.input;
        let grid = Grid::new(
            self.client,
            input.rows.div_ceil(2 * config.cube_rows),
            CubeDim::new_2d(self.plane_size(), plan.planes),
            self.elements(),
        )?;
        let words =
            argument(&input.handle, "input", ElemType::UInt(UIntKind::U32), input.extent() / 2)?;
        // SAFETY: as in `registers`; eight 16-bit floats are four words.
        unsafe {
            packed_select::launch_unchecked::<E, H>(
                self.client,
                grid.count,
                grid.dim,
                grid.address,
                plan.shape.width,
                plan.per_write,
                plan.per_write,
                words,
                self.register_call(values, indices)?,
                config,
                self.index,
            );
        }
        Ok(())
    }

    fn team_units(&self) -> u32 {
        let units = |items: usize| self.input.cols.div_ceil(items).next_power_of_two();
        let idle = BUSY_UNITS * multiprocessors(self.client) / self.input.rows.max(1);
        let spread =
            if self.spread { units(SPREAD_ITEMS).min(1 << idle.max(1).ilog2()) } else { 1 };
        units(REGISTER_ITEMS).max(spread) as u32
    }

    fn plane_shape(&self) -> TeamShape {
        self.shape(self.team_units().min(self.plane_size()), 1)
    }

    fn block_shape(&self) -> TeamShape {
        let plane = self.plane_size();
        let most = units_per_cube(self.client, BLOCK_CUBE_UNITS);
        let lanes = self.team_units().clamp(2 * plane, most);
        self.shape(lanes, lanes / plane)
    }

    /// Fewest items, then widest loads.
    fn shape(&self, lanes: u32, planes: u32) -> TeamShape {
        let cols = self.input.cols;
        let loads = |width: usize| cols.div_ceil(lanes as usize * width);
        let width = load_widths(self.client, self.input)
            .min_by_key(|width| (loads(*width) * width, Reverse(*width)))
            .unwrap_or(1);
        TeamShape {
            lanes,
            planes,
            width,
            loads: loads(width),
            exact_fit: loads(width) * lanes as usize * width == cols
                && self.input.lengths.is_none(),
        }
    }

    fn keys(&self) -> Option<SortKeys> {
        match self.input.dtype {
            ElemType::Float(FloatKind::F32) => {
                Some(SortKeys::Float { bitwise: self.options.k * BITWISE_SHARE <= self.input.cols })
            }
            ElemType::Float(FloatKind::F16) => Some(SortKeys::Half { zeros: 13 }),
            ElemType::Float(FloatKind::BF16) => Some(SortKeys::Half { zeros: 16 }),
            dtype if dtype.size() == 4 => Some(SortKeys::Word),
            _ => None,
        }
    }

    pub(super) fn memory_call<E: Element, I: Numeric>(
        &self,
        values: BufferArg,
        indices: BufferArg,
    ) -> Result<MemoryCallLaunch<E, I>, KernelError> {
        let (source, bounds) = (self.source()?, self.input.bounds_argument()?);
        let (layout, params) = (self.layout(), self.params());
        Ok(MemoryCallLaunch::new(source, values, indices, bounds, layout, params))
    }

    fn register_call<E: Element, I: Numeric, N: Size, V: Size, W: Size>(
        &self,
        values: BufferArg,
        indices: BufferArg,
    ) -> Result<RegisterCallLaunch<E, I, N, V, W>, KernelError> {
        Ok(RegisterCallLaunch::new(
            self.source()?,
            self.source()?,
            values,
            indices,
            self.input.bounds_argument()?,
            self.layout(),
            self.params(),
            normal_launch(self.options.k, self.input.cols),
        ))
    }

    pub(super) fn team(
        &self,
        lanes: u32,
        width: usize,
        items: usize,
        exact_fit: bool,
    ) -> TeamShape {
        let planes = (lanes / self.plane_size()).max(1);
        TeamShape { lanes, planes, width, loads: (items / width).max(1), exact_fit }
    }

    pub(super) fn load_width(&self) -> usize {
        masked_load_width(self.client, self.input)
    }

    pub(super) fn candidates(
        &self,
        target: &Target,
        sample: TeamShape,
        part: TeamShape,
        list: TeamShape,
    ) -> Result<(Grid, CandidateConfig), KernelError> {
        let memory = self.memory_config(target);
        debug_assert_eq!(memory.search.method, MethodKind::Exact);
        let floats = is_single(self.input.dtype);
        let dim = CubeDim::new_2d(list.plane_lanes(), list.planes);
        let grid = Grid::new(self.client, self.input.rows, dim, self.elements())?;
        Ok((grid, CandidateConfig { memory, floats, sample, part, list }))
    }

    fn sampled<E: Element>(&self, target: Target) -> Result<(), KernelError> {
        let cols = self.input.cols;
        let problem = RowProblem::new(self.client, self.input, self.options);
        let plan = sampled_plan(self.client, &problem);
        let SampledPlan { units, sample: plan } = plan.expect("checked by select");
        let width = self.load_width();
        let (values, indices) = self.cleared_outputs(&target)?;
        let sample = self.team(units, width, plan.sample_items, true);
        let part = self.team(self.plane_size(), width, TILE_ITEMS, false);
        let list = self.team(units, 1, plan.list_items, false);
        let (grid, config) = self.candidates(&target, sample, part, list)?;
        let samples = sample.loads * units as usize;
        let spacing = cols / samples / width * width;
        let sampling = SamplingLaunch::new(
            plan.rank as u32,
            plan.slack as u32,
            normal_launch(plan.rank + plan.slack / 2, units as usize * plan.sample_items),
            spacing as u32,
        );
        // SAFETY: as in `registers`; columns lie inside.
        unsafe {
            sampled_select::launch_unchecked::<E>(
                self.client,
                grid.count,
                grid.dim,
                grid.address,
                width,
                self.source()?,
                self.memory_call(values, indices)?,
                sampling,
                config,
                self.index,
            );
        }
        Ok(())
    }

    fn delegate<E: Element>(&self, target: Target) -> Result<(), KernelError> {
        let plane = self.plane_size();
        let width = self.load_width();
        let (values, indices) = self.cleared_outputs(&target)?;
        let sample = self.team(plane, 1, DELEGATE_SUBRANGES, true);
        let part = self.team(plane, width, width, false);
        let list = self.team(plane, 1, DELEGATE_LIST_ITEMS, false);
        let (grid, config) = self.candidates(&target, sample, part, list)?;
        // SAFETY: as in `registers`; columns lie inside.
        unsafe {
            delegate_select::launch_unchecked::<E>(
                self.client,
                grid.count,
                grid.dim,
                grid.address,
                width,
                self.source()?,
                self.memory_call(values, indices)?,
                config,
                self.index,
            );
        }
        Ok(())
    }

    fn radix<E: Element>(&self, target: Target) -> Result<(), KernelError> {
        let input = self.input;
        let (values, indices) = self.outputs(&target)?;
        let plane = self.plane_size();
        let units = cube_units(self.client, input.cols);
        let dim = CubeDim::new_2d(plane, units / plane);
        let grid = Grid::new(self.client, input.rows, dim, self.elements())?;
        // SAFETY: as in `registers`.
        unsafe {
            radix_select::launch_unchecked::<E>(
                self.client,
                grid.count,
                grid.dim,
                grid.address,
                self.memory_call(values, indices)?,
                self.memory_config(&target),
                TeamShape::of_cube(units, plane),
                self.index,
            );
        }
        Ok(())
    }

    fn unit_or_cube<E: Element>(
        &self,
        routine: Routine,
        target: Target,
    ) -> Result<(), KernelError> {
        let input = self.input;
        let (values, indices) = self.outputs(&target)?;
        let config = self.memory_config(&target);
        // SAFETY: as in `registers`.
        unsafe {
            if routine == Routine::Unit {
                let grid = Grid::elementwise(self.client, input.rows, self.elements())?;
                unit_select::launch_unchecked::<E>(
                    self.client,
                    grid.count,
                    grid.dim,
                    grid.address,
                    self.memory_call(values, indices)?,
                    config,
                    self.index,
                );
            } else {
                let units = cube_units(self.client, input.cols);
                let dim = CubeDim::new_1d(units);
                let grid = Grid::new(self.client, input.rows, dim, self.elements())?;
                cube_select::launch_unchecked::<E>(
                    self.client,
                    grid.count,
                    grid.dim,
                    grid.address,
                    self.memory_call(values, indices)?,
                    config,
                    units,
                    self.index,
                );
            }
        }
        Ok(())
    }
}
