use cubecl::{features::Plane, ir::ElemType, prelude::*};

use super::{
    key::{require_element, require_index},
    options::{Method, TopkOptions},
    threshold::{histogram::BINS, search::exact_passes},
    tuning::{
        BLOCK_CUBE_UNITS, CUBE_UNITS, DELEGATE_COLS, DELEGATE_SELECTED, DELEGATE_SUBRANGES,
        FEW_ROWS_COLS, FILTER_COLS, FILTER_LARGE_K, FILTER_LARGE_K_COLS, FILTER_LONG_COLS,
        FILTER_MANY_COLS, FILTER_ROWS, FILTER_SAMPLE_ITEMS, FILTER_SHORT_LIST, FILTER_UNITS,
        HISTOGRAM_COLS, HISTOGRAM_K, LIST_ITEMS, LONG_CUBE_UNITS, LONG_FILTER_UNITS, LONG_ROW,
        LONG_SAMPLE, LONG_SAMPLE_ITEMS, LONG_SAMPLED_UNITS, MAX_LISTED, MAX_UNIT_COLS,
        RADIX_TILE_BYTES, RADIX_UNITS, REGISTER_ITEMS, SAMPLE_ITEMS, SAMPLE_MARGIN, SAMPLE_SLACK,
        SAMPLED_COLS, SAMPLED_COLS_PER_UNIT, SAMPLED_MAX_UNITS, SAMPLED_MIN_UNITS, TILE_ITEMS,
        UNIT_BLOCK,
    },
    types::{MAX_COLS, Routine, Rows},
};
use crate::{
    device::{
        BROWSER_REFUSAL, LLVMPIPE_JUMPS, LLVMPIPE_REFUSAL, has_plane_barrier, is_gpu, is_llvmpipe,
        multiprocessors, plane_size, require_buffers, require_dtype, require_sums, units_per_cube,
    },
    error::KernelError,
    launch::aligned,
};

const FILTER_BUFFERS: usize = 9;
/// Shared memory of bins and exchanges.
const FILTER_BYTES: usize = 1 << 14;
/// Of bins and a list.
const HISTOGRAM_BYTES: usize = (BINS + MAX_LISTED) * size_of::<u32>();
/// Per plane.
const EXCHANGE_BYTES: usize = 160;

#[derive(Clone, Copy, Debug)]
pub(crate) struct RowProblem {
    pub rows: usize,
    pub k: usize,
    pub cols: usize,
    pub exact: bool,
    pub width: usize,
    pub ragged: bool,
    /// Own starts.
    pub starts: bool,
    pub passes: usize,
    pub key_bytes: usize,
}

impl RowProblem {
    pub fn new(client: &Client, input: &Rows, options: &TopkOptions) -> Self {
        Self {
            rows: input.rows,
            k: options.k,
            cols: input.cols,
            exact: options.method == Method::Exact,
            width: masked_load_width(client, input),
            ragged: input.lengths.is_some(),
            starts: input.starts.is_some(),
            passes: passes(options.method, input.dtype),
            key_bytes: input.dtype.size().max(size_of::<u32>()),
        }
    }

    fn has_few_rows(&self, client: &Client) -> bool {
        self.rows <= multiprocessors(client)
    }
}

pub(crate) fn check_request(
    client: &Client,
    input: &Rows,
    options: &TopkOptions,
    index: ElemType,
    longest: usize,
) -> Result<(), KernelError> {
    options.validate(input.rows, input.cols, longest)?;
    require_element(client, input.dtype)?;
    require_index(index, input.cols)?;
    require_dtype(client, index)?;
    input.bounds_argument().map(drop)
}

pub(crate) fn plan_rows(
    client: &Client,
    input: &Rows,
    options: &TopkOptions,
    index: ElemType,
    routine: Option<Routine>,
) -> Result<Routine, KernelError> {
    check_request(client, input, options, index, MAX_COLS)?;
    let problem = RowProblem::new(client, input, options);
    match routine {
        Some(routine) => {
            check(routine, client, &problem)?;
            Ok(routine)
        }
        None => select(client, &problem),
    }
}

/// Rounded up to compile few kernels; 0 without room.
pub(crate) fn listed(client: &Client, k: usize, cols: usize, rows: usize) -> usize {
    if is_llvmpipe(client) {
        return 0;
    }
    let quarter = cols.div_ceil(4);
    let listed = [quarter, 2 * quarter].into_iter().find(|&some| k <= some);
    let listed = listed.unwrap_or(cols);
    let room = list_room(client);
    if listed * rows <= room.min(MAX_LISTED) { listed } else { 0 }
}

/// None without planes, shared memory or buffer room.
pub(crate) fn radix_items(
    client: &Client,
    total: usize,
    cols: usize,
    key_bytes: usize,
) -> Option<usize> {
    let plane = plane_size(client).filter(|&plane| plane <= u32::BITS)?;
    let units = units_per_cube(client, RADIX_UNITS);
    let syncs = has_plane_barrier(client) && !is_llvmpipe(client);
    let properties = client.properties();
    let page = properties.memory.max_page_size as usize;
    if !syncs || units < RADIX_UNITS || total * key_bytes.max(size_of::<u32>()) > page {
        return None;
    }
    let units = units as usize;
    let counts = (units / plane as usize + 2) * units * size_of::<u32>();
    let room = properties.hardware.max_shared_memory_size.checked_sub(counts)?;
    let most = room.min(RADIX_TILE_BYTES) / (units * (key_bytes + size_of::<u32>()));
    let most = 1 << most.checked_ilog2()?;
    Some(cols.div_ceil(units).next_power_of_two().min(most))
}

fn list_room(client: &Client) -> usize {
    client.properties().hardware.max_shared_memory_size / (2 * size_of::<u32>())
}

pub(crate) struct SampledPlan {
    pub units: u32,
    pub sample: SamplePlan,
}

/// More units per cube suit few rows; fewer need longer lists.
pub(crate) fn sampled_plan(client: &Client, problem: &RowProblem) -> Result<SampledPlan, String> {
    let cols = problem.cols;
    let wanted = if cols < LONG_SAMPLE {
        (cols / SAMPLED_COLS_PER_UNIT)
            .clamp(SAMPLED_MIN_UNITS, SAMPLED_MAX_UNITS)
            .next_power_of_two() as u32
    } else {
        LONG_SAMPLED_UNITS
    };
    let few = cols >= FEW_ROWS_COLS && problem.has_few_rows(client);
    if few && let Ok(plan) = sampled_plan_of(client, problem, LONG_SAMPLED_UNITS) {
        return Ok(plan);
    }
    sampled_plan_of(client, problem, wanted)
}

fn sampled_plan_of(
    client: &Client,
    problem: &RowProblem,
    wanted: u32,
) -> Result<SampledPlan, String> {
    let RowProblem { cols, k, ragged, .. } = *problem;
    let plane = plane_size(client).unwrap_or(1);
    let count = units_per_cube(client, wanted.max(2 * plane));
    let units = count as usize;
    check_planes(plane as usize, units)?;
    if cols < units * TILE_ITEMS {
        return Err(format!(
            "rows of {cols} elements are shorter than the {} \
             that a cube of {units} units reads at a time",
            units * TILE_ITEMS
        ));
    }
    let room = list_room(client);
    match sample_plan(k, cols, units, ragged) {
        Ok(sample) if sample.list_items * units <= room => Ok(SampledPlan { units: count, sample }),
        Ok(SamplePlan { list_items, .. }) => Err(format!(
            "its list of {} columns exceeds half of the shared memory, {room}",
            list_items * units
        )),
        Err(needed) => Err(format!(
            "k = {k} of {cols} needs a list of {needed} columns, it holds {}",
            units * LIST_ITEMS[LIST_ITEMS.len() - 1]
        )),
    }
}

pub(crate) fn cube_units(client: &Client, cols: usize) -> u32 {
    let wanted = if cols >= LONG_ROW { LONG_CUBE_UNITS } else { CUBE_UNITS };
    units_per_cube(client, wanted)
}

/// Chooses the first routine that can run:
///
/// ```text
/// planes, cols >= FILTER_COLS:                          filter, sampled, block
/// planes, cols >= FILTER_MANY_COLS, many rows:          filter, sampled, block
/// planes, cols >= FILTER_LARGE_K_COLS, many, large k:   filter, sampled, block
/// planes, cols >= HISTOGRAM_COLS, few rows, or large k of whole ones,
///     except k <= DELEGATE_SELECTED, cols < DELEGATE_COLS: block, sampled, filter
/// planes, ragged:                                       plane, sampled, delegate, block, filter
/// planes, k <= DELEGATE_SELECTED, cols < DELEGATE_COLS: plane, delegate, block
/// planes, cols >= SAMPLED_COLS:                         plane, sampled, block, filter
/// planes, else:                                         plane, block, sampled
/// GPU, no browser, cols > MAX_UNIT_COLS:                cube
/// any:                                                  unit
/// ```
pub(crate) fn select(client: &Client, problem: &RowProblem) -> Result<Routine, KernelError> {
    let planes = client.features().plane.contains(Plane::Ops);
    let few = problem.cols < DELEGATE_COLS && problem.k <= DELEGATE_SELECTED;
    let long = problem.cols >= SAMPLED_COLS;
    let large = problem.k >= FILTER_LARGE_K && problem.cols >= FILTER_LARGE_K_COLS;
    let many = problem.rows >= FILTER_ROWS && (large || problem.cols >= FILTER_MANY_COLS);
    let filters = many || problem.cols >= FILTER_COLS;
    let large_whole = problem.k >= HISTOGRAM_K && !problem.ragged;
    let counts = !few
        && takes_histogram(client, problem.cols)
        && (large_whole || problem.has_few_rows(client));
    let preferred: &[Routine] = match (planes, few, long) {
        (true, _, _) if filters => &[Routine::Filter, Routine::Sampled, Routine::Block],
        (true, _, _) if counts => &[Routine::Block, Routine::Sampled, Routine::Filter],
        (true, _, _) if problem.ragged => {
            &[Routine::Plane, Routine::Sampled, Routine::Delegate, Routine::Block, Routine::Filter]
        }
        (true, true, _) => &[Routine::Plane, Routine::Delegate, Routine::Block],
        (true, false, true) => &[Routine::Plane, Routine::Sampled, Routine::Block, Routine::Filter],
        (true, false, false) => &[Routine::Plane, Routine::Block, Routine::Sampled],
        (false, _, _) => &[],
    };
    let runs = |routine: &&Routine| check(**routine, client, problem).is_ok();
    if let Some(&routine) = preferred.iter().find(runs) {
        return Ok(routine);
    }
    let cube = is_gpu(client) && !cfg!(target_family = "wasm") && problem.cols > MAX_UNIT_COLS;
    let routine = if cube { Routine::Cube } else { Routine::Unit };
    check(routine, client, problem)?;
    Ok(routine)
}

/// Whether `block` searches by histograms.
pub(crate) fn takes_histogram(client: &Client, cols: usize) -> bool {
    if cols < HISTOGRAM_COLS {
        return false;
    }
    let planes = plane_size(client).map_or(BLOCK_CUBE_UNITS, |plane| BLOCK_CUBE_UNITS / plane);
    let needed = HISTOGRAM_BYTES + planes as usize * EXCHANGE_BYTES;
    let room = client.properties().hardware.max_shared_memory_size;
    needed <= room && require_sums(client).is_ok()
}

/// A forced `plane` runs on llvmpipe, which does not list `Plane::Ops`.
pub(crate) fn check(
    routine: Routine,
    client: &Client,
    problem: &RowProblem,
) -> Result<(), KernelError> {
    let refuse = |reason: String| Err(KernelError::Routine { routine: routine.name(), reason });
    let cols = problem.cols;
    match routine {
        Routine::Plane => match plane_size(client) {
            None => refuse("the device has no planes of one fixed size".into()),
            Some(plane) if cols > plane as usize * REGISTER_ITEMS => refuse(format!(
                "rows of {cols} elements exceed the {} that a plane of {plane} units holds",
                plane as usize * REGISTER_ITEMS
            )),
            Some(_) => Ok(()),
        },
        Routine::Block => check_block(client, cols).or_else(refuse),
        Routine::Delegate => check_delegate(client, problem).or_else(refuse),
        Routine::Sampled => check_sampled(client, problem).or_else(refuse),
        Routine::Filter => check_filter(client, problem).or_else(refuse),
        Routine::Radix => check_radix(client, problem).or_else(refuse),
        Routine::Cube if is_llvmpipe(client) => refuse(LLVMPIPE_REFUSAL.into()),
        Routine::Cube if cfg!(target_family = "wasm") => refuse(BROWSER_REFUSAL.into()),
        Routine::Unit if is_llvmpipe(client) => {
            let jumps = cols.div_ceil(UNIT_BLOCK as usize) * (problem.passes + 2) + problem.passes;
            if jumps > LLVMPIPE_JUMPS {
                refuse(format!(
                    "rows of {cols} elements may take {jumps} loop iterations, \
                     llvmpipe stops after {LLVMPIPE_JUMPS}"
                ))
            } else {
                Ok(())
            }
        }
        Routine::Cube | Routine::Unit => Ok(()),
    }
}

fn check_candidates(client: &Client, problem: &RowProblem) -> Result<usize, String> {
    let plane = plane_size(client).ok_or("the device has no planes of one fixed size")?;
    if is_llvmpipe(client) {
        return Err(LLVMPIPE_REFUSAL.into());
    }
    if !problem.exact {
        return Err("it serves the exact method only".into());
    }
    Ok(plane as usize)
}

fn check_radix(client: &Client, problem: &RowProblem) -> Result<(), String> {
    let plane = check_candidates(client, problem)?;
    check_planes(plane, cube_units(client, problem.cols) as usize)
}

fn check_block(client: &Client, cols: usize) -> Result<(), String> {
    if is_llvmpipe(client) {
        return Err(LLVMPIPE_REFUSAL.into());
    }
    let units = units_per_cube(client, BLOCK_CUBE_UNITS) as usize;
    let plane = plane_size(client).ok_or("the device has no planes of one fixed size")?;
    check_planes(plane as usize, units)?;
    match cols > units * REGISTER_ITEMS {
        true => Err(format!(
            "rows of {cols} elements exceed the {} that a cube of {units} units holds",
            units * REGISTER_ITEMS
        )),
        false => Ok(()),
    }
}

fn check_planes(plane: usize, units: usize) -> Result<(), String> {
    match 2 * plane > units {
        true => Err(format!("a cube of {units} units holds one plane only")),
        false => Ok(()),
    }
}

fn check_lists(plane: usize, width: usize) -> Result<(), String> {
    match width * plane < TILE_ITEMS {
        true => Err(format!(
            "a plane of {plane} units, {width} elements a load, \
             reads less than the {TILE_ITEMS} that a unit lists"
        )),
        false => Ok(()),
    }
}

pub(crate) fn filters_long_rows(client: &Client, input: &Rows, options: &TopkOptions) -> bool {
    let problem = RowProblem::new(client, input, options);
    problem.cols >= FILTER_LONG_COLS && check_filter(client, &problem).is_ok()
}

fn check_filter(client: &Client, problem: &RowProblem) -> Result<(), String> {
    let plane = check_candidates(client, problem)?;
    let RowProblem { cols, width, .. } = *problem;
    require_sums(client)?;
    require_buffers(client, FILTER_BUFFERS + usize::from(problem.starts))
        .map_err(|error| error.to_string())?;
    check_lists(plane, width)?;
    let plan = filter_plan(client, problem)?;
    let [units, select_units] = [plan.units, plan.select_units].map(|units| units as usize);
    check_planes(plane, units.min(select_units))?;
    let tiles = cols.div_ceil(units * TILE_ITEMS).next_power_of_two();
    let list = plan.list() + 3 * units;
    let bits = plan.list_items * select_units.div_ceil(plane.min(u32::BITS as usize));
    let select = 2 * tiles + 4 * (bits + 1) + 2 * select_units;
    let needed =
        FILTER_BYTES + list.max(select) * size_of::<u32>() + problem.key_bytes * select_units;
    let room = client.properties().hardware.max_shared_memory_size;
    match needed <= room {
        true => Ok(()),
        false => Err(format!("its list needs {needed} bytes of shared memory of {room}")),
    }
}

fn check_delegate(client: &Client, problem: &RowProblem) -> Result<(), String> {
    let plane = check_candidates(client, problem)?;
    let least = plane * DELEGATE_SUBRANGES * problem.width;
    if problem.cols < least {
        return Err(format!(
            "rows of {} elements are shorter than the {least} \
             that a plane of {plane} units reads at a time",
            problem.cols
        ));
    }
    let most = most_selected(plane);
    if problem.k > most {
        return Err(format!("k = {} exceeds {most}, a quarter of its delegates", problem.k));
    }
    Ok(())
}

fn check_sampled(client: &Client, problem: &RowProblem) -> Result<(), String> {
    let plane = check_candidates(client, problem)?;
    check_lists(plane, problem.width)?;
    sampled_plan(client, problem).map(drop)
}

/// Halvings that can change the interval: floats span `2^(E + 2)`, normal ones ≥ `2^-(E + P)`
/// apart: 279 for f32, 2100 for f64.
pub(crate) fn halvings(max_iter: u32, dtype: ElemType) -> u32 {
    let most = match dtype {
        ElemType::Float(_) if dtype.size() == 8 => 2_200,
        ElemType::Float(_) => 320,
        _ => 8 * dtype.size() as u32 + 1,
    };
    max_iter.min(most)
}

pub(crate) fn passes(method: Method, dtype: ElemType) -> usize {
    let wide = dtype.size() == 8;
    let exact = exact_passes(if wide { 64 } else { 32 });
    let found = match method {
        Method::Exact => 0,
        Method::EarlyStop(max_iter) => halvings(max_iter, dtype) as usize,
        Method::Precision(_) => {
            if wide {
                2 * 1024 + 53
            } else {
                2 * 128 + 24
            }
        }
    };
    exact + found + 2
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SamplePlan {
    pub sample_items: usize,
    /// From 1, the greatest.
    pub rank: usize,
    /// Rank's tolerance.
    pub slack: usize,
    pub list_items: usize,
}

pub(crate) struct FilterPlan {
    /// Of a sample or tile.
    pub units: u32,
    pub select_units: u32,
    /// Per unit that selects.
    pub list_items: usize,
}

impl FilterPlan {
    fn list(&self) -> usize {
        self.select_units as usize * self.list_items
    }
}

/// Lists whole rows shorter than a sample.
pub(crate) fn filter_plan(client: &Client, problem: &RowProblem) -> Result<FilterPlan, String> {
    let RowProblem { k, cols, ragged, .. } = *problem;
    let busy = !problem.has_few_rows(client);
    let select_units = if busy { LONG_FILTER_UNITS } else { LONG_CUBE_UNITS };
    let select_units = units_per_cube(client, select_units);
    let [few, many] = [FILTER_UNITS, LONG_FILTER_UNITS].map(|wanted| {
        let units = units_per_cube(client, wanted);
        let samples = units as usize * FILTER_SAMPLE_ITEMS;
        let needed = match (ragged, cols < samples) {
            (true, _) => sample_ranks(k, cols, samples).needed.min(cols).max(samples),
            (false, true) => cols,
            (false, false) => sample_ranks(k, cols, samples).needed.min(cols),
        };
        let list_items = needed.div_ceil(select_units as usize);
        FilterPlan { units, select_units, list_items }
    });
    let short = few.list() <= FILTER_SHORT_LIST;
    let plan = if (busy || short) && few.list_items <= TILE_ITEMS { few } else { many };
    match plan.list_items <= TILE_ITEMS {
        true => Ok(plan),
        false => Err(format!(
            "k = {k} of {cols} needs a list of {} columns; the most is {}",
            plan.list(),
            select_units as usize * TILE_ITEMS
        )),
    }
}

struct SampleRanks {
    rank: f64,
    slack: f64,
    needed: usize,
}

fn sample_ranks(k: usize, cols: usize, samples: usize) -> SampleRanks {
    let weight = cols as f64 / samples as f64;
    // At least k elements reach it, no more than the list holds.
    let expected = k as f64 / weight;
    let rank = (expected + SAMPLE_MARGIN * expected.sqrt() + SAMPLE_MARGIN).ceil();
    let slack = (rank / SAMPLE_SLACK).ceil();
    let most = rank + slack;
    let needed = ((most + SAMPLE_MARGIN * most.sqrt()) * weight).ceil() as usize;
    SampleRanks { rank, slack, needed }
}

/// Errs with the needed list length. Lists of `ragged` rows hold a sample.
pub(crate) fn sample_plan(
    k: usize,
    cols: usize,
    units: usize,
    ragged: bool,
) -> Result<SamplePlan, usize> {
    let sample_items = if cols < LONG_SAMPLE { SAMPLE_ITEMS } else { LONG_SAMPLE_ITEMS };
    let samples = units * sample_items;
    let SampleRanks { rank, slack, needed } = sample_ranks(k, cols, samples);
    let needed = if ragged { needed.max(samples) } else { needed };
    let fits = LIST_ITEMS.into_iter().find(|items| items * units >= needed);
    match fits {
        Some(list_items) if rank + slack <= samples as f64 => {
            Ok(SamplePlan { sample_items, rank: rank as usize, slack: slack as usize, list_items })
        }
        _ => Err(needed),
    }
}

/// Of random elements, 1.15 k reach the kth delegate.
pub(crate) fn most_selected(plane: usize) -> usize {
    plane * DELEGATE_SUBRANGES / 4
}

pub(crate) fn load_widths(client: &Client, input: &Rows) -> impl Iterator<Item = usize> {
    aligned_widths(client, input).filter(|width| input.starts.is_none() || *width == 1)
}

pub(crate) fn masked_load_width(client: &Client, input: &Rows) -> usize {
    aligned_widths(client, input).max().unwrap_or(1)
}

fn aligned_widths(client: &Client, input: &Rows) -> impl Iterator<Item = usize> {
    let size = input.dtype.size();
    let sizes = client.io_optimized_vector_sizes(size);
    sizes.filter(move |width| {
        input.col_stride == 1
            && input.cols.is_multiple_of(*width)
            && input.row_stride.is_multiple_of(*width)
            && aligned(&input.handle, width * size)
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(1, 1 << 13, 128)]
    #[case(256, 1 << 15, 256)]
    #[case(1024, 1 << 20, 512)]
    #[case(64, 1 << 22, 512)]
    fn the_list_holds_more_than_k(#[case] k: usize, #[case] cols: usize, #[case] units: usize) {
        let plan = sample_plan(k, cols, units, false).expect("a plan");
        assert!(plan.list_items * units > k);
        assert!(plan.rank * cols > k * plan.sample_items * units);
    }

    #[rstest]
    #[case(1 << 13, 1 << 15)]
    #[case(1 << 14, 1 << 24)]
    fn large_k_has_no_plan(#[case] k: usize, #[case] cols: usize) {
        assert!(sample_plan(k, cols, 256, false).is_err());
    }
}
