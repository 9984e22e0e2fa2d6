//! One cube that finishes: the launches.

use cubecl::{
    ir::{ElemType, UIntKind},
    prelude::*,
    server::Handle,
};
use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    U32,
    at_once::{COUNT_BITS, select_at_once},
    call::Call,
    delegates::DelegateBlueprint,
    finish::{FinishBlueprint, finish},
    finishing::Way,
    plan::Cut,
};
use crate::{
    error::KernelError,
    launch::{Grid, allocate, allocate_together, argument},
    topk::{key::Element, types::Selected},
};

/// Numbers of calls, from one that was drawn.
static CALLS: LazyLock<AtomicU64> =
    LazyLock::new(|| AtomicU64::new(RandomState::new().hash_one(0)));

/// What the one cube is given.
struct Given<'a> {
    keys: &'a Handle,
    groups: Option<(&'a Handle, usize)>,
    best: Option<&'a Selected>,
    positions: Option<&'a Handle>,
}

impl Call<'_> {
    /// The members by one cube that finishes.
    pub(super) fn by_cube<E: Element>(
        &self,
        cut: &Cut,
        blueprint: &FinishBlueprint,
        way: &Way,
    ) -> Result<Selected, KernelError> {
        let client = self.client;
        let count = cut.delegates(self.length);
        let key = Self::key_dtype::<E>();
        // Whole loads.
        let whole = |count: usize| count.next_multiple_of(blueprint.delegate_width(key.size()));
        if let Way::Apart(first) = way {
            let keys = allocate(client, "delegates", count, key)?;
            let positions = self.delegates::<E>(cut, &keys)?;
            let best = self.best::<E>(first, &keys, count)?;
            let output = self.output()?;
            let given = Given {
                keys: &keys,
                groups: None,
                best: Some(&best),
                positions: positions.as_ref(),
            };
            self.finish::<E>(cut, blueprint, &given, &output)?;
            return Ok(output);
        }
        let cubes = match way {
            Way::Groups(find) => count.div_ceil(find.taken()),
            _ => 0,
        };
        // All in one allocation: with few launches, each takes its time.
        let [keys, groups, arrivals, values, indices] = allocate_together(
            client,
            [
                ("delegates", whole(count), key),
                ("groups", whole(cubes), key),
                ("arrivals", 1, ElemType::UInt(UIntKind::U64)),
                ("values", self.options.k, self.dtype),
                ("indices", self.options.k, self.index),
            ],
        )?;
        let output = Selected { values, indices };
        let mut given = Given {
            keys: &keys,
            groups: None,
            best: None,
            positions: None,
        };
        match way {
            Way::AtOnce(find) => {
                self.at_once::<E>(cut, (find, blueprint), &keys, &arrivals, &output)?;
                return Ok(output);
            }
            Way::Groups(find) => {
                self.find::<E, E::Key>(cut, *find, &keys, None, Some(&groups))?;
                given.groups = Some((&groups, cubes));
                self.finish::<E>(cut, blueprint, &given, &output)?;
            }
            _ => {
                let positions = self.delegates::<E>(cut, &keys)?;
                given.positions = positions.as_ref();
                self.finish::<E>(cut, blueprint, &given, &output)?;
            }
        }
        Ok(output)
    }

    /// Delegates and members in one launch.
    fn at_once<E: Element>(
        &self,
        cut: &Cut,
        (find, blueprint): (&DelegateBlueprint, &FinishBlueprint),
        keys: &Handle,
        arrivals: &Handle,
        output: &Selected,
    ) -> Result<(), KernelError> {
        let (client, k) = (self.client, self.options.k);
        let count = cut.delegates(self.length);
        let key = Self::key_dtype::<E>();
        let dim = CubeDim::new_2d(find.cube.plane_lanes(), find.cube.planes);
        let cubes = count.div_ceil(find.taken());
        let grid = Grid::new(client, cubes, dim, self.length)?;
        let width = blueprint.shape.width;
        let several = blueprint.delegate_width(key.size());
        let whole = self.length / width * width;
        let stats = self.stats.map(|stats| argument(stats, "stats", U32, 2));
        let number = CALLS.fetch_add(1, Ordering::Relaxed) << COUNT_BITS;
        // SAFETY: elements are read below `length`; a key for each delegate and at most k members are written.
        unsafe {
            select_at_once::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                width,
                argument(self.input, "input", self.dtype, whole)?,
                argument(self.input, "input", self.dtype, self.length)?,
                argument(keys, "delegates", key, count.next_multiple_of(several))?,
                argument(arrivals, "arrivals", ElemType::UInt(UIntKind::U64), 1)?,
                argument(&output.values, "values", self.dtype, k)?,
                argument(&output.indices, "indices", self.index, k)?,
                stats.transpose()?.into(),
                self.subranges(cut, count),
                number,
                *find,
                *blueprint,
                several,
                self.index,
            );
        }
        Ok(())
    }

    /// The members in one launch of one cube.
    fn finish<E: Element>(
        &self,
        cut: &Cut,
        blueprint: &FinishBlueprint,
        given: &Given,
        output: &Selected,
    ) -> Result<(), KernelError> {
        let (client, k) = (self.client, self.options.k);
        let count = cut.delegates(self.length);
        let key = Self::key_dtype::<E>();
        let plane = blueprint.shape.plane_lanes();
        let dim = CubeDim::new_2d(plane, blueprint.shape.planes);
        let grid = Grid::new(client, 1, dim, self.length)?;
        let width = blueprint.shape.width;
        let several = blueprint.delegate_width(key.size());
        let whole = |count: usize| count.next_multiple_of(several);
        let places = (given.best).map(|best| argument(&best.indices, "subranges", U32, k));
        let positions = (given.positions).map(|places| argument(places, "positions", U32, count));
        let groups =
            (given.groups).map(|(groups, count)| argument(groups, "groups", key, whole(count)));
        let stats = self.stats.map(|stats| argument(stats, "stats", U32, 2));
        let delegates = match given.best {
            Some(best) => argument(&best.values, "delegates", key, k)?,
            None => argument(given.keys, "delegates", key, whole(count))?,
        };
        let held = given.groups.map_or(count, |(_, groups)| groups);
        // SAFETY: slots stand for elements below `length`; at most k members are written.
        unsafe {
            finish::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                width,
                several,
                argument(self.input, "input", self.dtype, self.length / width * width)?,
                argument(self.input, "input", self.dtype, self.length)?,
                delegates,
                groups.transpose()?.into(),
                places.transpose()?.into(),
                positions.transpose()?.into(),
                argument(&output.values, "values", self.dtype, k)?,
                argument(&output.indices, "indices", self.index, k)?,
                stats.transpose()?.into(),
                self.subranges(cut, held),
                *blueprint,
                self.index,
            );
        }
        Ok(())
    }
}
