//! Buffers and launches of a planned call: delegates, concatenation or finish, and output. The
//! launches of the first and second top-k over many cubes are in [`selection`](super::selection).

use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use cubecl::{
    features::TypeUsage,
    ir::{ElemType, FloatKind, IntKind, UIntKind},
    prelude::*,
    server::Handle,
};

use super::{
    kernels::{
        concatenate::{
            CANDIDATE_LOAD, FilterConfig, count_candidates, fetch_selected, find_least_delegate,
            gather_subranges, list_candidates,
        },
        delegates::{DelegateVectorConfig, StagedConfig, build_delegates, build_delegates_staged},
        finish::{COUNT_BITS, finish, finish_single_launch},
        histogram::final_state_at,
        types::{FinishConfig, SubrangeLayoutLaunch},
    },
    options::{Selection, VectorOptions},
    selection::{SelectedPlaces, SelectionInput},
    tuning::{CUBE_UNITS, MAX_CUBES, STAGED_UNITS},
    types::{AfterDelegates, FirstTopk, Partition, Plan, SHORT, U32, VectorCall, WorkloadStats},
};
use crate::{
    device::units_per_cube,
    error::KernelError,
    launch::{Grid, allocate, allocate_together, argument, device_failed, fill_zero},
    topk::{
        Rows, Selected, TopkOptions,
        element::Element,
        launch::{Job, SUPPORTED_DTYPES, with_element},
        routines::team::Shape,
        topk_rows,
    },
};

const U64: ElemType = ElemType::UInt(UIntKind::U64);

/// Numbers the single launches of this process, from a random start.
static CALLS: LazyLock<AtomicU64> =
    LazyLock::new(|| AtomicU64::new(RandomState::new().hash_one(0)));

impl VectorCall<'_> {
    /// Validates the call, launches its plan, and orders the output as asked.
    pub fn topk(&self) -> Result<Selected, KernelError> {
        self.execute(&self.plan()?)
    }

    /// [`topk`](Self::topk) and its workload. Waits for the device.
    pub fn topk_with_stats(&self) -> Result<(Selected, WorkloadStats), KernelError> {
        let stats = allocate(self.client, "stats", 2, U32)?;
        let VectorCall {
            client,
            input,
            dtype,
            length,
            options,
            index,
            ..
        } = *self;
        let call = VectorCall {
            client,
            input,
            dtype,
            length,
            options,
            index,
            stats: Some(&stats),
        };
        let plan = call.plan()?;
        let selected = call.execute(&plan)?;
        let stats = self.read_stats(&plan, stats)?;
        Ok((selected, stats))
    }

    fn read_stats(&self, plan: &Plan, stats: Handle) -> Result<WorkloadStats, KernelError> {
        let (length, k) = (self.length, self.options.k);
        let Plan::Delegates(partition, after) = plan else {
            return Ok(WorkloadStats {
                length,
                ..WorkloadStats::default()
            });
        };
        let unfiltered = WorkloadStats {
            length,
            delegates: partition.delegates(length),
            subranges: k,
            concatenated: k << partition.exponent,
        };
        // Candidates that exceed the room are not listed: the cube scans all selected subranges.
        let room = match &**after {
            AfterDelegates::Finish(config, _) => config.room,
            AfterDelegates::Filter { .. } => usize::MAX,
            AfterDelegates::Concatenate { .. } => return Ok(unfiltered),
        };
        let bytes = (self.client)
            .read_one(stats)
            .map_err(|error| device_failed(self.client, error.to_string()))?;
        let [subranges, candidates] = [0, 1].map(|at| u32::from_bytes(&bytes)[at] as usize);
        Ok(WorkloadStats {
            subranges,
            concatenated: if candidates <= room {
                candidates
            } else {
                unfiltered.concatenated
            },
            ..unfiltered
        })
    }

    fn execute(&self, plan: &Plan) -> Result<Selected, KernelError> {
        let VectorCall {
            client,
            input,
            dtype,
            length,
            options,
            index,
            ..
        } = *self;
        if options.k == 0 {
            return self.output();
        }
        let selected = with_element!(dtype, E => self.select::<E>(plan))?;
        if !options.sorted {
            return Ok(selected);
        }
        let rows = Rows::contiguous(input.clone(), dtype, 1, length);
        let options = TopkOptions {
            largest: options.largest,
            sorted: true,
            ..TopkOptions::new(options.k)
        };
        let job = Job {
            client,
            input: &rows,
            options: &options,
            index,
        };
        job.order(selected.values, selected.indices)
    }

    /// Launches the plan. The output is in index order.
    fn select<E: Element>(&self, plan: &Plan) -> Result<Selected, KernelError> {
        match plan {
            Plan::Whole(Selection::Rows) => {
                let rows = Rows::contiguous(self.input.clone(), self.dtype, 1, self.length);
                let options = TopkOptions {
                    largest: self.options.largest,
                    ..TopkOptions::new(self.options.k)
                };
                topk_rows(self.client, &rows, &options, self.index, None)
            }
            Plan::Whole(selection) => {
                let input = SelectionInput {
                    client: self.client,
                    handle: self.input,
                    dtype: self.dtype,
                    length: self.length,
                    largest: self.options.largest,
                    filled: None,
                };
                let selected = input.select::<E>(*selection, self.options.k, None)?;
                self.fetch::<E>(None, None, &selected.places)
            }
            Plan::Delegates(partition, after) => match &**after {
                AfterDelegates::Finish(config, first) => self.finish::<E>(partition, config, first),
                AfterDelegates::Concatenate { first, second } => {
                    let selections = [*first, *second];
                    if self.short_keys(partition, selections) {
                        self.concatenate::<E, i16>(partition, selections)
                    } else {
                        self.concatenate::<E, E::Key>(partition, selections)
                    }
                }
                AfterDelegates::Filter {
                    first,
                    second,
                    config,
                } => self.filter::<E>(partition, *config, [*first, *second]),
            },
        }
    }

    fn output(&self) -> Result<Selected, KernelError> {
        let k = self.options.k;
        Ok(Selected {
            values: allocate(self.client, "values", k, self.dtype)?,
            indices: allocate(self.client, "indices", k, self.index)?,
        })
    }

    /// Runs the first or second top-k over keys. `start` holds the search states of an earlier
    /// selection, `filled` the number of keys if only the device knows it.
    fn select_keys(
        &self,
        handle: &Handle,
        (dtype, length): (ElemType, usize),
        selection: Selection,
        start: Option<&Handle>,
        filled: Option<&Handle>,
    ) -> Result<SelectedPlaces, KernelError> {
        let keys = SelectionInput {
            client: self.client,
            handle,
            dtype,
            length,
            largest: true,
            filled,
        };
        let k = self.options.k;
        match dtype.size() {
            8 => keys.select::<u64>(selection, k, start),
            2 => keys.select::<i16>(selection, k, start),
            _ => keys.select::<u32>(selection, k, start),
        }
    }

    /// `in_registers` counts the delegates, or groups, that a finishing cube holds.
    fn layout(&self, partition: &Partition, in_registers: usize) -> SubrangeLayoutLaunch {
        SubrangeLayoutLaunch::new(
            self.length,
            partition.delegates(self.length) as u32,
            in_registers as u32,
            self.options.k as u32,
            partition.exponent,
        )
    }
}

/// Construction of the delegate vector.
impl VectorCall<'_> {
    /// Writes the keys of the delegates and returns their positions in the subranges if β > 1.
    fn delegates<E: Element>(
        &self,
        partition: &Partition,
        keys: &Handle,
    ) -> Result<Option<Handle>, KernelError> {
        if partition.staged {
            self.staged_delegates::<E>(partition, keys)?;
            return Ok(None);
        }
        let count = partition.delegates(self.length);
        let positions = (partition.beta > 1)
            .then(|| allocate(self.client, "positions", count, U32))
            .transpose()?;
        let config = self.delegate_config::<E>(partition);
        self.build::<E, E::Key>(partition, config, keys, positions.as_ref(), None)?;
        Ok(positions)
    }

    fn delegate_config<E: Element>(&self, partition: &Partition) -> DelegateVectorConfig {
        let vector = self.input_vector::<E>();
        DelegateVectorConfig::new(&vector, partition, CUBE_UNITS, self.options.largest)
    }

    /// Constructs delegates with keys of type `W`. Packs two bf16 in a word where possible, which
    /// takes fewer instructions.
    fn build<E: Element, W: Numeric>(
        &self,
        partition: &Partition,
        config: DelegateVectorConfig,
        keys: &Handle,
        positions: Option<&Handle>,
        groups: Option<&Handle>,
    ) -> Result<(), KernelError> {
        let source = DelegateSource {
            dtype: self.dtype,
            length: self.length,
            exponent: partition.exponent,
            config,
        };
        match source.packed_bf16() {
            Some(packed) => self.launch_build::<u32, W>(partition, packed, keys, positions, groups),
            None => self.launch_build::<E, W>(partition, source, keys, positions, groups),
        }
    }

    fn launch_build<E: Element, W: Numeric>(
        &self,
        partition: &Partition,
        source: DelegateSource,
        keys: &Handle,
        positions: Option<&Handle>,
        groups: Option<&Handle>,
    ) -> Result<(), KernelError> {
        let client = self.client;
        let DelegateSource {
            dtype,
            length,
            exponent,
            config,
        } = source;
        let count = partition.delegates(self.length);
        let subranges = length.div_ceil(1 << exponent);
        let cubes = subranges.div_ceil(config.subranges_per_cube());
        let dim = CubeDim::new_2d(config.cube.plane_lanes(), config.cube.planes);
        let grid = Grid::new(client, cubes, dim, length)?;
        let width = config.team.width;
        let whole = length / width * width;
        let positions = positions.map(|positions| argument(positions, "positions", U32, count));
        let key = E::Key::elem_type_native();
        let groups = groups.map(|groups| argument(groups, "groups", key, cubes));
        // SAFETY: the kernel reads below `length` only, and whole loads of whole subranges only.
        unsafe {
            build_delegates::launch_unchecked::<E, W>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                width,
                argument(self.input, "input", dtype, whole)?,
                argument(self.input, "input", dtype, length)?,
                argument(keys, "delegates", W::elem_type_native(), count)?,
                positions.transpose()?.into(),
                groups.transpose()?.into(),
                length,
                exponent,
                config,
            );
        }
        Ok(())
    }

    fn staged_delegates<E: Element>(
        &self,
        partition: &Partition,
        keys: &Handle,
    ) -> Result<(), KernelError> {
        let client = self.client;
        let count = partition.delegates(self.length);
        let config = StagedConfig {
            exponent: partition.exponent,
            width: self.input_vector::<E>().load_width(partition.exponent),
            units: units_per_cube(client, STAGED_UNITS),
            largest: self.options.largest,
        };
        let dim = CubeDim::new_1d(config.units);
        let cubes = count.div_ceil(config.units as usize);
        let grid = Grid::new(client, cubes, dim, self.length)?;
        let whole = self.length / config.width * config.width;
        // SAFETY: the kernel reads below `length` only, and only whole loads as loads.
        unsafe {
            build_delegates_staged::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                config.width,
                argument(self.input, "input", self.dtype, whole)?,
                argument(self.input, "input", self.dtype, self.length)?,
                argument(keys, "delegates", E::Key::elem_type_native(), count)?,
                self.length,
                config,
            );
        }
        Ok(())
    }
}

/// The elements that delegates are constructed from.
#[derive(Clone, Copy)]
struct DelegateSource {
    dtype: ElemType,
    length: usize,
    exponent: u32,
    config: DelegateVectorConfig,
}

impl DelegateSource {
    /// The same elements as words of two bf16, if the dtype is bf16 and the layout allows it.
    fn packed_bf16(self) -> Option<Self> {
        let config = self.config;
        let packs = self.dtype == ElemType::Float(FloatKind::BF16)
            && config.beta == 1
            && config.team.width > 1
            && self.length.is_multiple_of(2);
        packs.then(|| Self {
            dtype: U32,
            length: self.length / 2,
            exponent: self.exponent - 1,
            config: DelegateVectorConfig {
                team: Shape {
                    width: config.team.width / 2,
                    ..config.team
                },
                packed_bf16: true,
                ..config
            },
        })
    }
}

/// Concatenation of whole subranges.
impl VectorCall<'_> {
    /// Whether keys of 16 bits suffice.
    fn short_keys(&self, partition: &Partition, selections: [Selection; 2]) -> bool {
        let histograms = selections
            .iter()
            .all(|one| matches!(one, Selection::Radix | Selection::Bucket));
        let half = matches!(
            self.dtype,
            ElemType::Float(FloatKind::F16 | FloatKind::BF16)
        );
        let usage = self.client.properties().type_usage(SHORT);
        half && histograms && usage.contains(TypeUsage::Buffer) && !partition.staged
    }

    /// First top-k, copy of the selected subranges, second top-k, with keys of type `W`.
    fn concatenate<E: Element, W: Numeric>(
        &self,
        partition: &Partition,
        [first, second]: [Selection; 2],
    ) -> Result<Selected, KernelError> {
        let count = partition.delegates(self.length);
        let dtype = W::elem_type_native();
        let keys = allocate(self.client, "delegates", count, dtype)?;
        if dtype == SHORT {
            let config = DelegateVectorConfig {
                short_keys: true,
                ..self.delegate_config::<E>(partition)
            };
            self.build::<E, W>(partition, config, &keys, None, None)?;
        } else {
            self.delegates::<E>(partition, &keys)?;
        }
        let best = self.select_keys(&keys, (dtype, count), first, None, None)?;
        // Frees the delegates, so that the concatenated vector may reuse their memory.
        drop(keys);
        let slots = self.options.k << partition.exponent;
        let concatenated = self.gather::<E, W>(&best.places, slots, partition.exponent)?;
        let start = best.states.as_ref();
        let selected = self.select_keys(&concatenated, (dtype, slots), second, start, None)?;
        let subranges = (&best.places, partition.exponent, 1);
        self.fetch::<E>(Some(subranges), None, &selected.places)
    }

    fn gather<E: Element, W: Numeric>(
        &self,
        selected: &Handle,
        slots: usize,
        exponent: u32,
    ) -> Result<Handle, KernelError> {
        let (client, length) = (self.client, self.length);
        let dtype = W::elem_type_native();
        let keys = allocate(client, "candidates", slots, dtype)?;
        let width = self.input_vector::<E>().load_width(exponent);
        let grid = Grid::elementwise(client, slots / width, length)?;
        // SAFETY: the kernel reads below `length`, only whole loads as loads, and writes below
        // `slots`, which are whole subranges.
        unsafe {
            gather_subranges::launch_unchecked::<E, W>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                width,
                argument(self.input, "input", self.dtype, length / width * width)?,
                argument(self.input, "input", self.dtype, length)?,
                argument(selected, "subranges", U32, self.options.k)?,
                argument(&keys, "candidates", dtype, slots)?,
                length,
                slots,
                exponent,
                dtype == SHORT,
                self.options.largest,
            );
        }
        Ok(keys)
    }

    /// Values and indices of the selected elements. `places` are positions in the vector, or slots
    /// in the subranges of selected delegates (handle, exponent, β), or positions in a `listed` set
    /// of such slots.
    fn fetch<E: Element>(
        &self,
        subranges: Option<(&Handle, u32, u32)>,
        listed: Option<&Handle>,
        places: &Handle,
    ) -> Result<Selected, KernelError> {
        let k = self.options.k;
        let output = self.output()?;
        let grid = Grid::elementwise(self.client, k, self.length)?;
        let (selected, exponent, beta) = subranges.unwrap_or((places, 0, 1));
        let slots = |listed: &Handle| listed.size_in_used() as usize / size_of::<u32>();
        let listed = listed.map(|listed| argument(listed, "slots", U32, slots(listed)));
        // SAFETY: every slot maps to an element below `length`.
        unsafe {
            fetch_selected::launch_unchecked::<E>(
                self.client,
                grid.count,
                grid.dim,
                grid.address,
                argument(self.input, "input", self.dtype, self.length)?,
                argument(selected, "subranges", U32, k)?,
                argument(places, "selected", U32, k)?,
                listed.transpose()?.into(),
                argument(&output.values, "values", self.dtype, k)?,
                argument(&output.indices, "indices", self.index, k)?,
                k,
                exponent,
                beta,
                subranges.is_none(),
                self.index,
            );
        }
        Ok(output)
    }
}

/// Concatenation with Rules 2 and 3, over many cubes.
impl VectorCall<'_> {
    fn filter<E: Element>(
        &self,
        partition: &Partition,
        config: FilterConfig,
        [first, second]: [Selection; 2],
    ) -> Result<Selected, KernelError> {
        let (client, k) = (self.client, self.options.k);
        let key = E::Key::elem_type_native();
        let count = partition.delegates(self.length);
        let keys = allocate(client, "delegates", count, key)?;
        let positions = self.delegates::<E>(partition, &keys)?;
        let best = self.select_keys(&keys, (key, count), first, None, None)?;
        let (least, least_at) = match &best.states {
            // Any buffer: the kernels do not read it.
            _ if !config.filtered => (keys.clone(), 0),
            Some(states) => (
                states.clone(),
                final_state_at(8 * size_of::<E::Key>() as u32),
            ),
            None => (
                self.least_delegate::<E>(partition, &config, &keys, &best)?,
                0,
            ),
        };
        let room = (k << partition.exponent).next_multiple_of(CANDIDATE_LOAD);
        let candidates = allocate(client, "candidates", room, key)?;
        let slots = allocate(client, "slots", room, U32)?;
        let filled = allocate(client, "filled", 1, U32)?;
        let counted = !matches!(second, Selection::Rows | Selection::Bitonic);
        if !counted {
            // These selections read the whole room.
            fill_zero(client, &candidates, key, room)?;
        }
        let output = [&candidates, &slots, &filled];
        let least = (&least, least_at);
        self.list_candidates::<E>(
            partition,
            config,
            &best.places,
            positions.as_ref(),
            least,
            output,
        )?;
        let filled = counted.then_some(&filled);
        let start = best.states.as_ref();
        let selected = self.select_keys(&candidates, (key, room), second, start, filled)?;
        let subranges = (&best.places, partition.exponent, config.beta);
        self.fetch::<E>(Some(subranges), Some(&slots), &selected.places)
    }

    fn least_delegate<E: Element>(
        &self,
        partition: &Partition,
        config: &FilterConfig,
        keys: &Handle,
        best: &SelectedPlaces,
    ) -> Result<Handle, KernelError> {
        let (client, k) = (self.client, self.options.k);
        let count = partition.delegates(self.length);
        let key = E::Key::elem_type_native();
        let least = allocate(client, "least", 1, key)?;
        let shape = config.shape;
        let dim = CubeDim::new_2d(shape.plane_lanes(), shape.planes);
        let grid = Grid::new(client, 1, dim, count)?;
        // SAFETY: places are below the number of delegates.
        unsafe {
            find_least_delegate::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                argument(keys, "delegates", key, count)?,
                argument(&best.places, "subranges", U32, k)?,
                argument(&least, "least", key, 1)?,
                k as u32,
                shape,
            );
        }
        Ok(least)
    }

    /// Writes keys, slots and number of the candidates.
    fn list_candidates<E: Element>(
        &self,
        partition: &Partition,
        config: FilterConfig,
        selected: &Handle,
        positions: Option<&Handle>,
        (least, least_at): (&Handle, usize),
        [keys, slots, filled]: [&Handle; 3],
    ) -> Result<(), KernelError> {
        let (client, k) = (self.client, self.options.k);
        let count = partition.delegates(self.length);
        let key = E::Key::elem_type_native();
        let all = k << partition.exponent;
        let room = all.next_multiple_of(CANDIDATE_LOAD);
        let units = config.shape.lanes as usize;
        let per_cube = all.div_ceil(MAX_CUBES).next_multiple_of(units);
        let cubes = all.div_ceil(per_cube);
        let counts = allocate(client, "counts", 2 * cubes, U32)?;
        let dim = CubeDim::new_2d(config.shape.plane_lanes(), config.shape.planes);
        let elements = self.length.max(room).max(count);
        let layout = || self.layout(partition, 0);
        let input = || argument(self.input, "input", self.dtype, self.length);
        let best = || argument(selected, "subranges", U32, k);
        // With one delegate per subrange, the kernels do not read positions.
        let positions = || match positions {
            Some(positions) => argument(positions, "positions", U32, count),
            None => best(),
        };
        let words = least.size_in_used() as usize / size_of::<E::Key>();
        let least = || argument(least, "least", key, words);
        let stats = self.stats.map(|stats| argument(stats, "stats", U32, 2));
        // SAFETY: slots map to elements, which are read below `length`. There are at most as many
        // candidates as slots.
        unsafe {
            let grid = Grid::new(client, cubes, dim, elements)?;
            count_candidates::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                input()?,
                best()?,
                positions()?,
                least()?,
                argument(&counts, "counts", U32, 2 * cubes)?,
                layout(),
                least_at,
                per_cube,
                config,
            );
            let grid = Grid::new(client, cubes, dim, elements)?;
            list_candidates::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                input()?,
                best()?,
                positions()?,
                least()?,
                argument(&counts, "counts", U32, 2 * cubes)?,
                argument(keys, "candidates", key, room)?,
                argument(slots, "slots", U32, room)?,
                argument(filled, "filled", U32, 1)?,
                stats.transpose()?.into(),
                layout(),
                least_at,
                per_cube,
                cubes,
                config,
            );
        }
        Ok(())
    }
}

/// Inputs of the cube that finishes.
struct FinishInput<'a> {
    /// Keys of all delegates.
    keys: &'a Handle,
    /// Keys and number of the groups.
    groups: Option<(&'a Handle, usize)>,
    /// The k best delegates, if a separate launch has found them.
    best: Option<&'a Selected>,
    /// Positions of the delegates in their subranges, if β > 1.
    positions: Option<&'a Handle>,
}

/// Finish by one cube.
impl VectorCall<'_> {
    fn finish<E: Element>(
        &self,
        partition: &Partition,
        config: &FinishConfig,
        first: &FirstTopk,
    ) -> Result<Selected, KernelError> {
        let client = self.client;
        let count = partition.delegates(self.length);
        let key = E::Key::elem_type_native();
        let whole_loads = |count: usize| count.next_multiple_of(config.delegate_width(key.size()));
        if let FirstTopk::SeparateLaunch(first) = first {
            let keys = allocate(client, "delegates", count, key)?;
            let positions = self.delegates::<E>(partition, &keys)?;
            let best = self.best_delegates::<E>(first, &keys, count)?;
            let output = self.output()?;
            let input = FinishInput {
                keys: &keys,
                groups: None,
                best: Some(&best),
                positions: positions.as_ref(),
            };
            self.launch_finish::<E>(partition, config, &input, &output)?;
            return Ok(output);
        }
        let groups_count = match first {
            FirstTopk::Groups(build) => count.div_ceil(build.subranges_per_cube()),
            _ => 0,
        };
        // One allocation: each takes time, and these plans launch little.
        let [keys, groups, arrivals, values, indices] = allocate_together(
            client,
            [
                ("delegates", whole_loads(count), key),
                ("groups", whole_loads(groups_count), key),
                ("arrivals", 1, U64),
                ("values", self.options.k, self.dtype),
                ("indices", self.options.k, self.index),
            ],
        )?;
        let output = Selected { values, indices };
        let mut input = FinishInput {
            keys: &keys,
            groups: None,
            best: None,
            positions: None,
        };
        if let FirstTopk::SingleLaunch(build) = first {
            self.single_launch::<E>(partition, (build, config), &keys, &arrivals, &output)?;
            return Ok(output);
        }
        let positions;
        if let FirstTopk::Groups(build) = first {
            self.build::<E, E::Key>(partition, *build, &keys, None, Some(&groups))?;
            input.groups = Some((&groups, groups_count));
        } else {
            positions = self.delegates::<E>(partition, &keys)?;
            input.positions = positions.as_ref();
        }
        self.launch_finish::<E>(partition, config, &input, &output)?;
        Ok(output)
    }

    /// The k best delegates by a plan of their own: keys and places.
    fn best_delegates<E: Element>(
        &self,
        plan: &Plan,
        keys: &Handle,
        count: usize,
    ) -> Result<Selected, KernelError> {
        let options = VectorOptions::new(self.options.k);
        let call = VectorCall {
            client: self.client,
            input: keys,
            dtype: E::Key::elem_type_native(),
            length: count,
            options: &options,
            index: U32,
            stats: None,
        };
        if call.dtype.size() == 8 {
            call.select::<u64>(plan)
        } else {
            call.select::<u32>(plan)
        }
    }

    fn single_launch<E: Element>(
        &self,
        partition: &Partition,
        (build, config): (&DelegateVectorConfig, &FinishConfig),
        keys: &Handle,
        arrivals: &Handle,
        output: &Selected,
    ) -> Result<(), KernelError> {
        let (client, k) = (self.client, self.options.k);
        let count = partition.delegates(self.length);
        let key = E::Key::elem_type_native();
        let dim = CubeDim::new_2d(build.cube.plane_lanes(), build.cube.planes);
        let cubes = count.div_ceil(build.subranges_per_cube());
        let grid = Grid::new(client, cubes, dim, self.length)?;
        let width = config.shape.width;
        let delegate_width = config.delegate_width(key.size());
        let whole = self.length / width * width;
        let stats = self.stats.map(|stats| argument(stats, "stats", U32, 2));
        let call = CALLS.fetch_add(1, Ordering::Relaxed) << COUNT_BITS;
        // SAFETY: elements are read below `length`; the kernel writes one key per delegate and at
        // most k selected elements.
        unsafe {
            finish_single_launch::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                width,
                argument(self.input, "input", self.dtype, whole)?,
                argument(self.input, "input", self.dtype, self.length)?,
                argument(
                    keys,
                    "delegates",
                    key,
                    count.next_multiple_of(delegate_width),
                )?,
                argument(arrivals, "arrivals", U64, 1)?,
                argument(&output.values, "values", self.dtype, k)?,
                argument(&output.indices, "indices", self.index, k)?,
                stats.transpose()?.into(),
                self.layout(partition, count),
                call,
                *build,
                *config,
                delegate_width,
                self.index,
            );
        }
        Ok(())
    }

    fn launch_finish<E: Element>(
        &self,
        partition: &Partition,
        config: &FinishConfig,
        input: &FinishInput,
        output: &Selected,
    ) -> Result<(), KernelError> {
        let (client, k) = (self.client, self.options.k);
        let count = partition.delegates(self.length);
        let key = E::Key::elem_type_native();
        let dim = CubeDim::new_2d(config.shape.plane_lanes(), config.shape.planes);
        let grid = Grid::new(client, 1, dim, self.length)?;
        let width = config.shape.width;
        let delegate_width = config.delegate_width(key.size());
        let whole_loads = |count: usize| count.next_multiple_of(delegate_width);
        let places = (input.best).map(|best| argument(&best.indices, "subranges", U32, k));
        let positions =
            (input.positions).map(|positions| argument(positions, "positions", U32, count));
        let groups = (input.groups)
            .map(|(groups, count)| argument(groups, "groups", key, whole_loads(count)));
        let stats = self.stats.map(|stats| argument(stats, "stats", U32, 2));
        let delegates = match input.best {
            Some(best) => argument(&best.values, "delegates", key, k)?,
            None => argument(input.keys, "delegates", key, whole_loads(count))?,
        };
        let in_registers = input.groups.map_or(count, |(_, groups)| groups);
        let whole = self.length / width * width;
        // SAFETY: slots map to elements below `length`; at most k elements are written.
        unsafe {
            finish::launch_unchecked::<E>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                width,
                delegate_width,
                argument(self.input, "input", self.dtype, whole)?,
                argument(self.input, "input", self.dtype, self.length)?,
                delegates,
                groups.transpose()?.into(),
                places.transpose()?.into(),
                positions.transpose()?.into(),
                argument(&output.values, "values", self.dtype, k)?,
                argument(&output.indices, "indices", self.index, k)?,
                stats.transpose()?.into(),
                self.layout(partition, in_registers),
                *config,
                self.index,
            );
        }
        Ok(())
    }
}
