//! How delegates are found: what the host decides, and the launches.

use crate::device::LLVMPIPE_REFUSAL;
use crate::device::is_llvmpipe;
use crate::device::plane_or_unit;
use crate::device::units_per_cube;
use cubecl::{
    ir::{ElemType, FloatKind},
    prelude::*,
    server::Handle,
};

use super::{
    U32,
    call::Call,
    delegates::{DelegateBlueprint, find_delegates},
    options::{Construction, VectorOptions},
    plan::{CUBE_UNITS, Cut, FLIGHT, Vector, refused},
    staged::{self, StagedBlueprint, find_staged},
};
use crate::error::KernelError;
use crate::launch::Grid;
use crate::launch::allocate;
use crate::launch::argument;
use crate::primitives::team::TeamShape as Shape;
use crate::topk::key::Element;

/// Elements of a load of subranges of `2^exponent`, which have whole ones.
pub(super) fn width(vector: &Vector, exponent: u32) -> usize {
    let size = vector.dtype.size();
    let widths = vector.client.io_optimized_vector_sizes(size);
    let fits =
        |width: &usize| *width <= 1usize << exponent && vector.offset.is_multiple_of(width * size);
    widths.filter(fits).max().unwrap_or(1)
}

impl DelegateBlueprint {
    /// For cubes of at most so many units.
    pub(super) fn new(vector: &Vector, cut: &Cut, units: u32, largest: bool) -> Self {
        let width = width(vector, cut.exponent);
        let loads = (1usize << cut.exponent) / width;
        let plane = plane_or_unit(vector.client);
        let units = units_per_cube(vector.client, units.max(plane));
        let lanes = loads.min(plane as usize);
        let flight = (loads / lanes).min(FLIGHT);
        // Short subranges are taken several at a time.
        let several = if loads / lanes <= FLIGHT && cut.per_subrange == 1 {
            FLIGHT / flight
        } else {
            1
        };
        Self {
            cube: Shape::of_cube(units, plane),
            team: Shape {
                lanes: lanes as u32,
                planes: 1,
                width,
                loads: 1,
                exact_fit: true,
            },
            flight,
            subranges: several,
            rounds: 1,
            delegates: cut.per_subrange,
            short: false,
            pairs: false,
            largest,
        }
    }

    /// Whether all loads of a subrange are under way at a time.
    fn is_short(&self, exponent: u32) -> bool {
        let loads = (1usize << exponent) / self.team.width;
        self.delegates == 1 && loads == self.team.lanes as usize * self.flight
    }

    /// The same where each cube takes so many subranges, if it can.
    pub(super) fn taking(self, exponent: u32, subranges: usize) -> Option<Self> {
        let share = subranges / self.teams();
        let several = self.subranges.min(share);
        (self.is_short(exponent) && share > 0).then(|| Self {
            subranges: several,
            rounds: (share / several) as u32,
            ..self
        })
    }
}

/// The elements that delegates are found of.
#[derive(Clone, Copy)]
struct Source {
    dtype: ElemType,
    length: usize,
    exponent: u32,
    blueprint: DelegateBlueprint,
}

impl Source {
    /// The same in words of two elements, if they are bf16.
    fn pairs(self) -> Option<Self> {
        let blueprint = self.blueprint;
        let halves = self.dtype == ElemType::Float(FloatKind::BF16)
            && blueprint.delegates == 1
            && blueprint.team.width > 1
            && self.length.is_multiple_of(2);
        halves.then(|| Self {
            dtype: U32,
            length: self.length / 2,
            exponent: self.exponent - 1,
            blueprint: DelegateBlueprint {
                team: Shape {
                    width: blueprint.team.width / 2,
                    ..blueprint.team
                },
                pairs: true,
                ..blueprint
            },
        })
    }
}

/// Whether delegates are found through shared memory.
pub(super) fn staged(
    vector: &Vector,
    exponent: u32,
    options: &VectorOptions,
) -> Result<bool, KernelError> {
    let client = vector.client;
    let hardware = &client.properties().hardware;
    let blueprint = StagedBlueprint {
        exponent,
        width: 1,
        units: units_per_cube(client, staged::UNITS),
        largest: options.largest,
    };
    let needed = blueprint.keys() * vector.key;
    let reason = if is_llvmpipe(client) {
        LLVMPIPE_REFUSAL.into()
    } else if exponent > staged::MAX_EXPONENT {
        format!(
            "subranges of 2^{exponent}; at most 2^{} elements are staged",
            staged::MAX_EXPONENT
        )
    } else if options.delegates > 1 {
        format!("{} delegates of each subrange", options.delegates)
    } else if needed > hardware.max_shared_memory_size {
        let limit = hardware.max_shared_memory_size;
        format!("{needed} bytes of shared memory; there are {limit}")
    } else {
        let on_gpu = hardware.max_units_per_cube >= staged::UNITS;
        return Ok(match options.construction {
            Construction::Auto => plane_or_unit(client) == 1 && on_gpu,
            Construction::Planes => false,
            Construction::Staged => true,
        });
    };
    match options.construction {
        Construction::Staged => Err(refused("staged", reason)),
        _ => Ok(false),
    }
}

impl Call<'_> {
    pub(super) fn vector<E: Element>(&self) -> Vector<'_> {
        Vector {
            client: self.client,
            dtype: self.dtype,
            key: Self::key_dtype::<E>().size(),
            length: self.length,
            offset: self.input.offset_start.unwrap_or(0) as usize,
            tuning: self.options.tuning,
        }
    }

    /// Finds the keys of the delegates and, where there are several for each subrange, where they stand.
    pub(super) fn delegates<E: Element>(
        &self,
        cut: &Cut,
        keys: &Handle,
    ) -> Result<Option<Handle>, KernelError> {
        if cut.staged {
            self.staged_delegates::<E>(cut, keys)?;
            return Ok(None);
        }
        let count = cut.delegates(self.length);
        let positions =
            (cut.per_subrange > 1).then(|| allocate(self.client, "positions", count, U32));
        let positions = positions.transpose()?;
        let blueprint = self.delegate_blueprint::<E>(cut);
        self.find::<E, E::Key>(cut, blueprint, keys, positions.as_ref(), None)?;
        Ok(positions)
    }

    /// Finds the short keys of the delegates, one of each subrange.
    pub(super) fn short_delegates<E: Element>(
        &self,
        cut: &Cut,
        keys: &Handle,
    ) -> Result<(), KernelError> {
        let blueprint = DelegateBlueprint {
            short: true,
            ..self.delegate_blueprint::<E>(cut)
        };
        self.find::<E, i16>(cut, blueprint, keys, None, None)
    }

    fn delegate_blueprint<E: Element>(&self, cut: &Cut) -> DelegateBlueprint {
        DelegateBlueprint::new(&self.vector::<E>(), cut, CUBE_UNITS, self.options.largest)
    }

    /// Finds delegates, `W` of each, with the positions and the groups that there are buffers for.
    pub(super) fn find<E: Element, W: Numeric>(
        &self,
        cut: &Cut,
        blueprint: DelegateBlueprint,
        found: &Handle,
        positions: Option<&Handle>,
        groups: Option<&Handle>,
    ) -> Result<(), KernelError> {
        let source = Source {
            dtype: self.dtype,
            length: self.length,
            exponent: cut.exponent,
            blueprint,
        };
        // Two of bf16 in a word take fewer instructions: 128 of 2^24 20.5 µs instead of 22.3 (NVIDIA H200).
        match source.pairs() {
            Some(pairs) => self.launch_find::<u32, W>(cut, pairs, found, positions, groups),
            None => self.launch_find::<E, W>(cut, source, found, positions, groups),
        }
    }

    fn launch_find<E: Element, W: Numeric>(
        &self,
        cut: &Cut,
        source: Source,
        found: &Handle,
        positions: Option<&Handle>,
        groups: Option<&Handle>,
    ) -> Result<(), KernelError> {
        let client = self.client;
        let Source {
            dtype,
            length,
            exponent,
            blueprint,
        } = source;
        let count = cut.delegates(self.length);
        let cubes = length.div_ceil(1 << exponent).div_ceil(blueprint.taken());
        let dim = CubeDim::new_2d(blueprint.cube.plane_lanes(), blueprint.cube.planes);
        let grid = Grid::new(client, cubes, dim, length)?;
        let width = blueprint.team.width;
        let whole = length / width * width;
        let positions = positions.map(|places| argument(places, "positions", U32, count));
        let key = Self::key_dtype::<E>();
        let groups = groups.map(|groups| argument(groups, "groups", key, cubes));
        // SAFETY: the kernel reads below `length` only, whole loads of whole subranges only.
        unsafe {
            find_delegates::launch_unchecked::<E, W>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                width,
                argument(self.input, "input", dtype, whole)?,
                argument(self.input, "input", dtype, length)?,
                argument(found, "delegates", W::elem_type_native(), count)?,
                positions.transpose()?.into(),
                groups.transpose()?.into(),
                length,
                exponent,
                blueprint,
            );
        }
        Ok(())
    }

    fn staged_delegates<E: Element>(&self, cut: &Cut, keys: &Handle) -> Result<(), KernelError> {
        let client = self.client;
        let count = cut.delegates(self.length);
        let blueprint = StagedBlueprint {
            exponent: cut.exponent,
            width: width(&self.vector::<E>(), cut.exponent),
            units: units_per_cube(client, staged::UNITS),
            largest: self.options.largest,
        };
        let dim = CubeDim::new_1d(blueprint.units);
        let cubes = count.div_ceil(blueprint.units as usize);
        let grid = Grid::new(client, cubes, dim, self.length)?;
        let whole = self.length / blueprint.width * blueprint.width;
        // SAFETY: the kernel reads below `length` only, whole loads of whole ones only.
        unsafe {
            find_staged::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                blueprint.width,
                argument(self.input, "input", self.dtype, whole)?,
                argument(self.input, "input", self.dtype, self.length)?,
                argument(keys, "delegates", Self::key_dtype::<E>(), count)?,
                self.length,
                blueprint,
            );
        }
        Ok(())
    }
}
