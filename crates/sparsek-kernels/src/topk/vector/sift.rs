//! The steps behind the delegates where members are very many, or subranges not filtered: the best delegates, the candidates among the
//! elements of their subranges, the members among these.

use crate::device::LLVMPIPE_REFUSAL;
use crate::device::is_llvmpipe;
use crate::device::plane_or_unit;
use crate::device::units_per_cube;
use crate::launch::fill_zero;
use cubecl::{prelude::*, server::Handle};

use super::{
    U32,
    call::Call,
    elements::Found,
    options::{Filter, Selection, VectorOptions},
    plan::{CUBE_UNITS, Cut, MAX_CUBES, Vector, refused},
    radix::noted_at,
    sieve::{LOAD, SieveBlueprint, count_candidates, find_least, list_candidates},
};
use crate::error::KernelError;
use crate::launch::Grid;
use crate::launch::allocate;
use crate::launch::argument;
use crate::primitives::team::TeamShape as Shape;
use crate::topk::key::Element;
use crate::topk::types::Selected;

impl SieveBlueprint {
    /// That of a vector, if the device can sift it.
    pub(super) fn new(
        vector: &Vector,
        cut: &Cut,
        options: &VectorOptions,
    ) -> Result<Self, KernelError> {
        let client = vector.client;
        if is_llvmpipe(client) {
            return Err(refused("filter", LLVMPIPE_REFUSAL.into()));
        }
        if options.k << cut.exponent > 1 << 31 || cut.delegates(vector.length) > 1 << 31 {
            let reason = "more than 2^31 delegates or elements of subranges";
            return Err(refused("filter", reason.into()));
        }
        let plane = plane_or_unit(client);
        let units = units_per_cube(client, CUBE_UNITS.max(plane));
        Ok(Self {
            shape: Shape::of_cube(units, plane),
            delegates: cut.per_subrange as u32,
            filtered: options.filter != Filter::Off,
            largest: options.largest,
        })
    }
}

impl Call<'_> {
    /// The members, by the best of delegates with these keys.
    pub(super) fn sift<E: Element>(
        &self,
        cut: &Cut,
        blueprint: SieveBlueprint,
        [first, last]: [Selection; 2],
        keys: &Handle,
        positions: Option<&Handle>,
    ) -> Result<Selected, KernelError> {
        let (client, k) = (self.client, self.options.k);
        let key = Self::key_dtype::<E>();
        let best = self.select_keys(keys, (key, cut.delegates(self.length)), first, None, None)?;
        let (least, least_at) = match &best.notes {
            // It is not looked at.
            _ if !blueprint.filtered => (keys.clone(), 0),
            Some(notes) => (notes.clone(), noted_at(8 * size_of::<E::Key>() as u32)),
            None => (self.least::<E>(cut, &blueprint, keys, &best)?, 0),
        };
        let room = (k << cut.exponent).next_multiple_of(LOAD);
        let candidates = allocate(client, "candidates", room, key)?;
        let slots = allocate(client, "slots", room, U32)?;
        let filled = allocate(client, "filled", 1, U32)?;
        let counted = !matches!(last, Selection::Rows | Selection::Bitonic);
        if !counted {
            // These select from all there is room for.
            fill_zero(client, &candidates, key, room)?;
        }
        let found = [&candidates, &slots, &filled];
        let known = (&least, least_at);
        self.list_candidates::<E>(cut, blueprint, &best.members, positions, known, found)?;
        let filled = counted.then_some(&filled);
        let notes = best.notes.as_ref();
        let members = self.select_keys(&candidates, (key, room), last, notes, filled)?;
        let chosen = (&best.members, cut.exponent, blueprint.delegates);
        self.fetch::<E>(Some(chosen), Some(&slots), &members.members)
    }

    /// The least of the best delegates.
    fn least<E: Element>(
        &self,
        cut: &Cut,
        blueprint: &SieveBlueprint,
        keys: &Handle,
        best: &Found,
    ) -> Result<Handle, KernelError> {
        let (client, k) = (self.client, self.options.k);
        let count = cut.delegates(self.length);
        let key = Self::key_dtype::<E>();
        let least = allocate(client, "least", 1, key)?;
        let shape = blueprint.shape;
        let dim = CubeDim::new_2d(shape.plane_lanes(), shape.planes);
        let grid = Grid::new(client, 1, dim, count)?;
        // SAFETY: places are below the number of delegates.
        unsafe {
            find_least::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                argument(keys, "delegates", key, count)?,
                argument(&best.members, "subranges", U32, k)?,
                argument(&least, "least", key, 1)?,
                k as u32,
                shape,
            );
        }
        Ok(least)
    }

    /// Keys and slots of the candidates, and how many there are.
    fn list_candidates<E: Element>(
        &self,
        cut: &Cut,
        blueprint: SieveBlueprint,
        chosen: &Handle,
        positions: Option<&Handle>,
        (least, least_at): (&Handle, usize),
        [keys, slots, filled]: [&Handle; 3],
    ) -> Result<(), KernelError> {
        let (client, k) = (self.client, self.options.k);
        let count = cut.delegates(self.length);
        let key = Self::key_dtype::<E>();
        let all = k << cut.exponent;
        let room = all.next_multiple_of(LOAD);
        let units = blueprint.shape.lanes as usize;
        let stretch = all.div_ceil(MAX_CUBES).next_multiple_of(units);
        let cubes = all.div_ceil(stretch);
        let counts = allocate(client, "counts", 2 * cubes, U32)?;
        let dim = CubeDim::new_2d(blueprint.shape.plane_lanes(), blueprint.shape.planes);
        let elements = self.length.max(room).max(count);
        let subranges = || self.subranges(cut, 0);
        let input = || argument(self.input, "input", self.dtype, self.length);
        let best = || argument(chosen, "subranges", U32, k);
        // A buffer that is not read, where there is one delegate of each.
        let places = || match positions {
            Some(positions) => argument(positions, "positions", U32, count),
            None => best(),
        };
        let words = least.size_in_used() as usize / size_of::<E::Key>();
        let least = || argument(least, "least", key, words);
        let stats = self.stats.map(|stats| argument(stats, "stats", U32, 2));
        // SAFETY: slots stand for elements, which are read below `length`; there are at most as many candidates as slots.
        unsafe {
            let grid = Grid::new(client, cubes, dim, elements)?;
            count_candidates::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                input()?,
                best()?,
                places()?,
                least()?,
                argument(&counts, "counts", U32, 2 * cubes)?,
                subranges(),
                least_at,
                stretch,
                blueprint,
            );
            let grid = Grid::new(client, cubes, dim, elements)?;
            list_candidates::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                input()?,
                best()?,
                places()?,
                least()?,
                argument(&counts, "counts", U32, 2 * cubes)?,
                argument(keys, "candidates", key, room)?,
                argument(slots, "slots", U32, room)?,
                argument(filled, "filled", U32, 1)?,
                stats.transpose()?.into(),
                subranges(),
                least_at,
                stretch,
                cubes,
                blueprint,
            );
        }
        Ok(())
    }
}
