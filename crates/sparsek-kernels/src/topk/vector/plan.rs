//! Host-side plan: validates and chooses kernels.
//!
//! ```text
//! k = 0, n <= Tuning::row, n < 16·k, or k > 1024 and n < Tuning::long: whole vector
//! k <= 1024 and k·2^α <= Tuning::finished, or forced filter: one cube finishes
//! forced filter or β > 1: filter kernels
//! else: concatenation
//! ```
//!
//! First top-k of one cube:
//!
//! ```text
//! single launch: delegates fit registers, stores visible to other cubes, one round of loads
//! in registers: delegates fit
//! groups: k best groups fit
//! separate launch
//! ```

use cubecl::{
    ir::{ElemType, FloatKind, IntKind},
    prelude::*,
};

use super::{
    kernels::{
        bitonic::MAX_RUN,
        concatenate::FilterConfig,
        delegates::{DelegateVectorConfig, StagedConfig},
        types::FinishConfig,
    },
    options::{Construction, Filter, Finish, Selection, Subrange, VectorOptions, VectorStrategy},
    tuning::{
        CANDIDATE_LOAD, CANDIDATE_ROOM, CUBE_UNITS, DELEGATE_BYTES_PER_UNIT,
        FINISH_LOADS_IN_FLIGHT, FINISH_UNITS, LOADS_IN_FLIGHT, LONG_ROW, LONG_ROW_MAX_K,
        LONG_ROW_MIN_LENGTH_PER_K, MAX_FINISH_K, MAX_STAGED_EXPONENT, MIN_LENGTH_PER_K,
        STAGED_UNITS, Tuning,
    },
    types::{AfterDelegates, FirstTopk, InputVector, Partition, Plan, U32, VectorCall},
};
use crate::{
    device::{
        LLVMPIPE_REFUSAL, is_gpu, is_llvmpipe, multiprocessors, plane_or_unit, require_arrivals,
        require_buffers, require_dtype, units_per_cube,
    },
    error::KernelError,
    launch::argument,
    primitives::team::TeamShape,
    topk::{
        key::{Element, require_element, require_index, with_element},
        options::{Method, TopkOptions},
        plan::filters_long_rows,
        types::{MAX_COLS, Routine, Rows},
    },
};

const FILTER_BUFFERS: usize = 9;

pub(crate) fn takes_rows(
    client: &Client,
    input: &Rows,
    options: &TopkOptions,
    routine: Option<Routine>,
) -> bool {
    let plain = input.col_stride == 1
        && input.lengths.is_none()
        && options.method == Method::Exact
        && routine.is_none();
    let Rows { rows, cols, .. } = *input;
    if !plain || rows == 0 || options.k > cols {
        return false;
    }
    if rows == 1 && cols > MAX_COLS {
        return true;
    }
    let large_k = options.k > LONG_ROW_MAX_K;
    if large_k && cols <= MAX_COLS && filters_long_rows(client, input, options) {
        return false;
    }
    let small_k = !large_k && options.k * LONG_ROW_MIN_LENGTH_PER_K <= cols;
    let single = rows == 1 && small_k && cols > Tuning::default().row;
    // Devices require aligned buffer offsets.
    let step = input.row_stride * input.dtype.size();
    let aligned = rows == 1 || step.is_multiple_of(client.properties().memory.alignment as usize);
    (single || (rows * LONG_ROW <= cols && aligned)) && is_gpu(client)
}

impl<'a> VectorCall<'a> {
    pub fn plan(&self) -> Result<Plan, KernelError> {
        let (client, dtype, index) = (self.client, self.dtype, self.index);
        require_element(client, dtype)?;
        require_index(index, usize::MAX)?;
        require_dtype(client, index)?;
        argument(self.input, "input", dtype, self.length)?;
        let vector = with_element!(dtype, E => Ok(self.input_vector::<E>()))?;
        self.options.validate(self.length, most_indices(index))?;
        dispatch(&vector, self.options)
    }

    pub fn input_vector<E: Element>(&self) -> InputVector<'a> {
        InputVector {
            client: self.client,
            dtype: self.dtype,
            key: E::Key::elem_type_native().size(),
            length: self.length,
            offset: self.input.offset_start.unwrap_or(0) as usize,
            tuning: self.options.strategy.tuning,
        }
    }
}

fn most_indices(index: ElemType) -> usize {
    match index {
        ElemType::Int(IntKind::I32) => i32::MAX as usize + 1,
        U32 => u32::MAX as usize,
        _ => usize::MAX,
    }
}

fn dispatch(vector: &InputVector, options: &VectorOptions) -> Result<Plan, KernelError> {
    let (k, length) = (options.k, vector.length);
    let strategy = &options.strategy;
    let filtered =
        strategy.filter == Filter::On || strategy.delegates > 1 || strategy.finish != Finish::Auto;
    let exponent = match strategy.subrange {
        Subrange::Auto if length <= strategy.tuning.row && !filtered => None,
        Subrange::Auto => rule_4(length, k, options),
        Subrange::Exponent(exponent) => Some(exponent.min(length.max(1).ilog2())),
        Subrange::Whole => None,
    };
    let Some(exponent) = exponent.filter(|_| k > 0) else {
        if filtered && k > 0 {
            return Err(refused("filter", "there are no delegates".into()));
        }
        return Ok(Plan::Whole(selection(vector, k, strategy.selection)?));
    };
    let beta = strategy.delegates.min(1 << exponent);
    let staged = strategy.construction == Construction::Staged;
    if staged {
        require_staged(vector, exponent, options)?;
    }
    let subranges = Subranges { vector, options, partition: Partition { exponent, beta, staged } };
    subranges.require_k_delegates()?;
    let (partition, after) = match subranges.finish()? {
        Some(finish) => finish,
        None if filtered => (subranges.partition, subranges.filter()?),
        None => (subranges.partition, subranges.concatenate()?),
    };
    Ok(Plan::Delegates(partition, Box::new(after)))
}

fn rule_4(length: usize, k: usize, options: &VectorOptions) -> Option<u32> {
    let per_k = length.checked_div(k)?;
    if per_k < MIN_LENGTH_PER_K || (k > MAX_FINISH_K && length < options.strategy.tuning.long) {
        return None;
    }
    Some(options.strategy.tuning.exponent(length, k, options.strategy.delegates))
}

fn selection(vector: &InputVector, k: usize, asked: Selection) -> Result<Selection, KernelError> {
    let InputVector { client, dtype, length, .. } = *vector;
    let rows = dtype.size() <= 4 && length <= MAX_COLS;
    let histograms = length < u32::MAX as usize && !is_llvmpipe(client);
    let selection = match asked {
        Selection::Auto if rows && (length <= vector.tuning.row || !histograms) => Selection::Rows,
        Selection::Auto => Selection::Bucket,
        asked => asked,
    };
    match selection {
        Selection::Rows if !rows => Err(refused(
            "rows",
            format!("{length} elements of {dtype}; a row has at most {MAX_COLS}, of 4 bytes each"),
        )),
        Selection::Radix | Selection::Bucket if is_llvmpipe(client) => {
            Err(refused("histograms", LLVMPIPE_REFUSAL.into()))
        }
        Selection::Radix | Selection::Bucket if !histograms => {
            Err(refused("histograms", format!("{length} elements; fewer than 2^32 are possible")))
        }
        Selection::Bitonic if is_llvmpipe(client) => {
            Err(refused("bitonic", LLVMPIPE_REFUSAL.into()))
        }
        Selection::Bitonic if k > MAX_RUN || length >= u32::MAX as usize => Err(refused(
            "bitonic",
            format!("{k} of {length} elements; at most {MAX_RUN} of fewer than 2^32 are possible"),
        )),
        selection => Ok(selection),
    }
}

#[derive(Clone, Copy)]
struct Subranges<'a> {
    vector: &'a InputVector<'a>,
    options: &'a VectorOptions,
    partition: Partition,
}

impl Subranges<'_> {
    fn delegates(&self) -> usize {
        self.partition.delegates(self.vector.length)
    }

    fn slots(&self) -> usize {
        self.options.k << self.partition.exponent
    }

    fn require_k_delegates(&self) -> Result<(), KernelError> {
        let Partition { exponent, beta, .. } = self.partition;
        let (length, k) = (self.vector.length, self.options.k);
        let whole = length.div_ceil(1 << exponent) - 1;
        let last = length - (whole << exponent);
        let delegates = whole * beta + last.min(beta);
        if delegates < k {
            let reason = format!(
                "{length} elements in subranges of 2^{exponent} have {delegates}; k is {k}"
            );
            return Err(refused("delegates", reason));
        }
        Ok(())
    }

    fn selections(&self, candidates: usize) -> Result<[Selection; 2], KernelError> {
        let delegates = self.vector.delegate_vector(&self.partition);
        let candidates = InputVector { length: candidates, ..delegates };
        let (k, asked) = (self.options.k, self.options.strategy.selection);
        Ok([selection(&delegates, k, asked)?, selection(&candidates, k, asked)?])
    }

    fn concatenate(&self) -> Result<AfterDelegates, KernelError> {
        let [first, second] = self.selections(self.slots())?;
        Ok(AfterDelegates::Concatenate { first, second })
    }

    fn filter(&self) -> Result<AfterDelegates, KernelError> {
        self.require_filter()?;
        let client = self.vector.client;
        let plane = plane_or_unit(client);
        let units = units_per_cube(client, CUBE_UNITS.max(plane));
        let config = FilterConfig {
            shape: TeamShape::of_cube(units, plane),
            beta: self.partition.beta as u32,
            filtered: self.options.strategy.filter != Filter::Off,
            largest: self.options.largest,
        };
        let [first, second] = self.selections(self.slots().next_multiple_of(CANDIDATE_LOAD))?;
        Ok(AfterDelegates::Filter { first, second, config })
    }

    /// Kernels number delegates and slots with u32.
    fn require_filter(&self) -> Result<(), KernelError> {
        if is_llvmpipe(self.vector.client) {
            return Err(refused("filter", LLVMPIPE_REFUSAL.into()));
        }
        require_buffers(self.vector.client, FILTER_BUFFERS)
            .map_err(|error| refused("filter", error.to_string()))?;
        if self.slots() > 1 << 31 || self.delegates() > 1 << 31 {
            let reason = "more than 2^31 delegates or elements of selected subranges";
            return Err(refused("filter", reason.into()));
        }
        Ok(())
    }

    /// Groups change the partition.
    fn finish(&self) -> Result<Option<(Partition, AfterDelegates)>, KernelError> {
        let Self { vector, options, partition } = *self;
        let strategy = &options.strategy;
        let asked = strategy.finish;
        let forced = asked != Finish::Auto;
        let config = match self.finish_config() {
            Ok(config) if strategy.filter != Filter::Off => config,
            Err(error) if forced => return Err(error),
            _ if !forced => return Ok(None),
            _ => return Err(refused("finish", "selected subranges are not filtered".into())),
        };
        let auto = strategy.selection == Selection::Auto;
        let saves_time = auto && self.slots() <= strategy.tuning.finished;
        if strategy.filter == Filter::Auto && strategy.delegates == 1 && !saves_time {
            let reason = "selected subranges have too many elements";
            return if forced { Err(refused("finish", reason.into())) } else { Ok(None) };
        }
        let plan = |config, first| (partition, AfterDelegates::Finish(config, first));
        let allowed = |finish| asked == finish || !forced;
        let require = |finish: Finish, reason: String| match asked == finish {
            true => Err(refused(finish.name(), reason)),
            false => Ok(()),
        };
        if allowed(Finish::SingleLaunch) {
            match self.single_launch(config) {
                Ok((config, build)) => {
                    return Ok(Some(plan(config, FirstTopk::SingleLaunch(build))));
                }
                Err(reason) => require(Finish::SingleLaunch, reason)?,
            }
        }
        let items = keys_per_unit(&config, self.delegates(), vector.key);
        if let Some(delegate_items) = items.filter(|_| auto)
            && allowed(Finish::SeparateLaunch)
        {
            let config = FinishConfig { delegate_items, ..config };
            return Ok(Some(plan(config, FirstTopk::InRegisters)));
        }
        if allowed(Finish::Groups) {
            match self.groups() {
                Ok(grouped) => return Ok(Some(grouped)),
                Err(reason) => require(Finish::Groups, reason)?,
            }
        }
        let strategy = VectorStrategy {
            subrange: if auto { Subrange::Auto } else { Subrange::Whole },
            selection: strategy.selection,
            ..VectorStrategy::default()
        };
        let options = VectorOptions { strategy, ..VectorOptions::new(options.k) };
        let first = dispatch(&vector.delegate_vector(&partition), &options)?;
        Ok(Some(plan(config, FirstTopk::SeparateLaunch(first))))
    }

    fn finish_config(&self) -> Result<FinishConfig, KernelError> {
        let Self { vector, options, partition } = *self;
        let (client, k) = (vector.client, options.k);
        if k > MAX_FINISH_K && !is_llvmpipe(client) {
            let reason = format!("k = {k}; one cube selects at most {MAX_FINISH_K} elements");
            return Err(refused("filter", reason));
        }
        self.require_filter()?;
        let plane = plane_or_unit(client);
        let wanted = if plane > 1 { FINISH_UNITS } else { CUBE_UNITS };
        let units = units_per_cube(client, wanted.max(plane));
        let width = vector.load_width(partition.exponent);
        let loads = self.slots() / (width * units as usize);
        let config = FinishConfig {
            shape: TeamShape { width, ..TeamShape::of_cube(units, plane) },
            delegate_items: 0,
            group_exponent: 0,
            grouped_items: 0,
            beta: partition.beta as u32,
            loads_in_flight: loads.clamp(1, FINISH_LOADS_IN_FLIGHT),
            max_k: k.next_power_of_two().max(32),
            room: CANDIDATE_ROOM,
            spacing: key_spacing(vector.dtype),
            largest: options.largest,
        };
        require_shared(client, "filter", config.shared_bytes(vector.key))?;
        Ok(config)
    }

    fn require_plain(&self) -> Result<(), String> {
        let Partition { beta, staged, .. } = self.partition;
        if self.options.strategy.selection != Selection::Auto || beta > 1 || staged {
            let reason = "needs one delegate per subrange, by planes, and no given selection";
            return Err(reason.into());
        }
        Ok(())
    }

    fn single_launch(
        &self,
        config: FinishConfig,
    ) -> Result<(FinishConfig, DelegateVectorConfig), String> {
        let Self { vector, options, partition } = *self;
        let client = vector.client;
        require_arrivals(client)?;
        self.require_plain()?;
        let delegates = self.delegates();
        let delegate_items = keys_per_unit(&config, delegates, vector.key)
            .ok_or_else(|| format!("{delegates} delegates do not fit the registers of a cube"))?;
        let lanes = config.shape.lanes;
        let build = DelegateVectorConfig::new(vector, &partition, lanes, options.largest);
        let cubes = multiprocessors(client);
        let mut concurrent = 1;
        while delegates.div_ceil(build.teams() * concurrent) > cubes {
            concurrent *= 2;
        }
        let build = build
            .with_subranges_per_cube(partition.exponent, build.teams() * concurrent)
            .filter(|build| build.rounds == 1)
            .ok_or_else(|| format!("{cubes} cubes need more than one round of loads"))?;
        Ok((FinishConfig { delegate_items, ..config }, build))
    }

    fn groups(&self) -> Result<(Partition, AfterDelegates), String> {
        self.require_plain()?;
        let (vector, options) = (self.vector, self.options);
        let (k, length) = (options.k, vector.length);
        let exponent = match options.strategy.subrange {
            Subrange::Auto => options.strategy.tuning.grouped(length / k),
            _ => self.partition.exponent,
        };
        let partition = Partition { exponent, ..self.partition };
        let subranges = Self { partition, ..*self };
        let config = subranges.finish_config().map_err(|error| error.to_string())?;
        let build = DelegateVectorConfig::new(vector, &partition, CUBE_UNITS, options.largest);
        let delegates = subranges.delegates();
        let most = DELEGATE_BYTES_PER_UNIT / vector.key * config.shape.lanes as usize;
        let balanced = (delegates / k).max(1).ilog2().div_ceil(2);
        let least = (delegates.div_ceil(most)).next_power_of_two().max(build.teams());
        let group_exponent = balanced.min(build.subranges_per_cube().ilog2()).max(least.ilog2());
        let count = delegates.div_ceil(1 << group_exponent);
        if count < k || k << group_exponent > most {
            return Err(format!(
                "{delegates} delegates in groups of {}; k = {k}, and a cube holds {most} delegates",
                1 << group_exponent
            ));
        }
        let build = build
            .with_subranges_per_cube(exponent, 1 << group_exponent)
            .ok_or_else(|| format!("subranges of 2^{exponent} need several rounds of loads"))?;
        let items = |count| keys_per_unit(&config, count, vector.key).ok_or("too many delegates");
        let config = FinishConfig {
            delegate_items: items(count)?,
            grouped_items: items(k << group_exponent)?,
            group_exponent,
            ..config
        };
        Ok((partition, AfterDelegates::Finish(config, FirstTopk::Groups(build))))
    }
}

fn require_shared(
    client: &Client,
    routine: &'static str,
    needed: usize,
) -> Result<(), KernelError> {
    let limit = client.properties().hardware.max_shared_memory_size;
    if needed > limit {
        let reason = format!("{needed} bytes of shared memory; the device has {limit}");
        return Err(refused(routine, reason));
    }
    Ok(())
}

fn key_spacing(dtype: ElemType) -> u32 {
    match dtype {
        ElemType::Float(FloatKind::F16) => 13,
        ElemType::Float(FloatKind::BF16) => 16,
        _ => 0,
    }
}

fn keys_per_unit(config: &FinishConfig, delegates: usize, key: usize) -> Option<usize> {
    let items = delegates.div_ceil(config.shape.lanes as usize);
    let items = items.next_power_of_two();
    (items * key <= DELEGATE_BYTES_PER_UNIT).then_some(items)
}

fn require_staged(
    vector: &InputVector,
    exponent: u32,
    options: &VectorOptions,
) -> Result<(), KernelError> {
    let client = vector.client;
    let reason = if is_llvmpipe(client) {
        LLVMPIPE_REFUSAL.into()
    } else if exponent > MAX_STAGED_EXPONENT {
        format!("subranges of 2^{exponent} elements; at most 2^{MAX_STAGED_EXPONENT} are staged")
    } else if options.strategy.delegates > 1 {
        format!("{} delegates per subrange", options.strategy.delegates)
    } else {
        let units = units_per_cube(client, STAGED_UNITS);
        let config = StagedConfig { exponent, width: 1, units, largest: options.largest };
        return require_shared(client, "staged", config.keys() * vector.key);
    };
    Err(refused("staged", reason))
}

impl DelegateVectorConfig {
    pub(super) fn new(
        vector: &InputVector,
        partition: &Partition,
        units: u32,
        largest: bool,
    ) -> Self {
        let width = vector.load_width(partition.exponent);
        let loads = (1usize << partition.exponent) / width;
        let plane = plane_or_unit(vector.client);
        let units = units_per_cube(vector.client, units.max(plane));
        let lanes = loads.min(plane as usize);
        let loads_in_flight = (loads / lanes).min(LOADS_IN_FLIGHT);
        let concurrent_subranges = if loads / lanes <= LOADS_IN_FLIGHT && partition.beta == 1 {
            LOADS_IN_FLIGHT / loads_in_flight
        } else {
            1
        };
        Self {
            cube: TeamShape::of_cube(units, plane),
            team: TeamShape { lanes: lanes as u32, planes: 1, width, loads: 1, exact_fit: true },
            loads_in_flight,
            concurrent_subranges,
            rounds: 1,
            beta: partition.beta,
            short_keys: false,
            packed_bf16: false,
            largest,
        }
    }

    fn is_short(&self, exponent: u32) -> bool {
        let loads = (1usize << exponent) / self.team.width;
        self.beta == 1 && loads == self.team.lanes as usize * self.loads_in_flight
    }

    fn with_subranges_per_cube(self, exponent: u32, subranges: usize) -> Option<Self> {
        let per_team = subranges / self.teams();
        let concurrent_subranges = self.concurrent_subranges.min(per_team);
        (self.is_short(exponent) && per_team > 0).then(|| Self {
            concurrent_subranges,
            rounds: (per_team / concurrent_subranges) as u32,
            ..self
        })
    }
}

fn refused(routine: &'static str, reason: String) -> KernelError {
    KernelError::Routine { routine, reason }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(1 << 30, 128, Some(11))]
    #[case(1 << 28, 1 << 20, Some(4))]
    #[case(1 << 20, 32, Some(7))]
    #[case::too_many_results(1 << 24, 1 << 16, None)]
    #[case::too_short(100, 50, None)]
    #[case::no_results(100, 0, None)]
    fn delegates_and_subranges_balance(
        #[case] length: usize,
        #[case] k: usize,
        #[case] exponent: Option<u32>,
    ) {
        assert_eq!(rule_4(length, k, &VectorOptions::new(k)), exponent);
    }
}
