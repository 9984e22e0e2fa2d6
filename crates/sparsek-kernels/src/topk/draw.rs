//! A cube, or without shared memory a unit, takes a row; `w = exp((x - greatest) / temperature)`:
//!
//! ```text
//! few unsorted candidates: each unit ranks its own among all
//! total  = sum of w
//! kept   = candidates with (sum of w before them) < top_p * total and w >= min_p
//! chosen = number of kept candidates with (sum of w through them) <= uniform * sum of kept w
//! ```
//!
//! Weights descend, so kept candidates come first.

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::{
    key::{Element, is_single, ordered_key, require_element, require_index, with_element},
    tuning::{CUBE_UNITS, DRAW_ITEMS, DRAW_RANKED, LONG_CUBE_UNITS, RANKED_FLIGHT},
    types::{DRAW_FACTORS, DRAW_NUMBERS, DrawSettings},
};
use crate::{
    device::{accumulator, has_many_units, is_llvmpipe, require_dtype, units_per_cube},
    error::KernelError,
    launch::{Grid, allocate, argument},
};

/// Candidates to draw from.
#[derive(Clone, Copy, Debug)]
pub struct Draw<'a> {
    /// Logits: `[rows, k]`.
    pub values: &'a Handle,
    /// Float dtype of `values`.
    pub dtype: ElemType,
    /// Tokens: `[rows, k]`.
    pub tokens: &'a Handle,
    /// Index dtype: see [`topk`](super::topk).
    pub index: ElemType,
    /// Greatest first; false only if [`draws_unsorted`].
    pub sorted: bool,
    /// One, or one per row.
    pub settings: &'a [DrawSettings],
    /// Seed of [`draw_uniform`](super::draw_uniform).
    pub seed: [u32; 2],
    /// Rows.
    pub rows: usize,
    /// Candidates per row, ≥ 1.
    pub k: usize,
}

/// Whether [`draw`] takes `k` candidates in index order.
pub fn draws_unsorted(client: &Client, k: usize) -> bool {
    let units = units_of_row(client, k) as usize;
    units > 1 && k <= DRAW_RANKED.min(units * DRAW_ITEMS)
}

/// Draws a token per row: `[rows]`. Computes in f32, in fixed order.
///
/// The first candidate is always kept; others need a positive weight.
///
/// # Panics
///
/// Wrong number of settings, or unsorted candidates unless [`draws_unsorted`].
pub fn draw(client: &Client, request: &Draw) -> Result<Handle, KernelError> {
    let Draw { dtype, index, rows, k, settings, sorted, .. } = *request;
    assert!(settings.len() == 1 || settings.len() == rows, "{} settings", settings.len());
    assert!(sorted || draws_unsorted(client, k), "{k} unsorted candidates");
    require_element(client, dtype)?;
    accumulator(client, dtype)?;
    require_index(index, k)?;
    require_dtype(client, index)?;
    if k > u32::MAX as usize / 2 {
        return Err(KernelError::RowTooLong { cols: k, limit: u32::MAX as usize / 2 });
    }
    let output = allocate(client, "tokens", rows, index)?;
    if rows > 0 {
        with_element!(dtype, E => launch::<E>(client, request, &output))?;
    }
    Ok(output)
}

fn launch<E: Element>(client: &Client, request: &Draw, output: &Handle) -> Result<(), KernelError> {
    let Draw { dtype, index, rows, k, settings, seed, .. } = *request;
    let units = units_of_row(client, k);
    let (cubes, dim) = match units {
        1 => {
            let units = units_per_cube(client, CUBE_UNITS);
            (rows.div_ceil(units as usize), CubeDim::new_1d(units))
        }
        units => (rows, CubeDim::new_1d(units)),
    };
    let grid = Grid::new(client, cubes, dim, rows * k.max(SETTING_WORDS))?;
    let per_row = (settings.len() > 1).then(|| upload(client, settings));
    let word = u32::elem_type_native();
    let per_row =
        per_row.as_ref().map(|words| argument(words, "settings", word, rows * SETTING_WORDS));
    let first = settings[0];
    let config = DrawConfig {
        units,
        whole: k <= units as usize * DRAW_ITEMS,
        ranked: !request.sorted,
        single: is_single(dtype),
    };
    // SAFETY: lengths checked; the kernel checks places.
    unsafe {
        draw_kernel::launch_unchecked::<E>(
            client,
            grid.count,
            grid.dim,
            grid.address,
            argument(request.values, "values", dtype, rows * k)?,
            argument(request.tokens, "tokens", index, rows * k)?,
            per_row.transpose()?.into(),
            RowSettingsLaunch::new(first.temperature, first.top_p, first.min_p, first.count),
            argument(output, "output", index, rows)?,
            rows,
            k as u32,
            seed[0],
            seed[1],
            config,
            [accumulator(client, dtype)?, index],
        );
    }
    Ok(())
}

const SETTING_WORDS: usize = 4;

fn upload(client: &Client, settings: &[DrawSettings]) -> Handle {
    let words = settings.iter().flat_map(|row| {
        [row.temperature.to_bits(), row.top_p.to_bits(), row.min_p.to_bits(), row.count]
    });
    client.create_from_slice(u32::as_bytes(&words.collect::<Vec<_>>()))
}

fn units_of_row(client: &Client, k: usize) -> u32 {
    if !has_many_units(client) || is_llvmpipe(client) {
        return 1;
    }
    let wanted = k.div_ceil(DRAW_ITEMS).next_power_of_two().max(32);
    units_per_cube(client, wanted.min(LONG_CUBE_UNITS as usize) as u32)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct DrawConfig {
    units: u32,
    whole: bool,
    ranked: bool,
    single: bool,
}

impl DrawConfig {
    fn tile(&self) -> usize {
        self.units as usize * DRAW_ITEMS
    }
}

#[derive(CubeType, Clone, Copy)]
struct Prefix<T: Numeric> {
    before: T,
    total: T,
}

/// Every unit must call it.
#[cube]
fn prefix_sum<T: Numeric>(value: T, #[comptime] units: u32) -> Prefix<T> {
    let mut before = T::from_int(0);
    let mut total = value;
    if comptime!(units > 1) {
        let mut sums = Shared::<[T]>::new_slice(comptime!(2 * units as usize));
        // Others may still read.
        sync_cube();
        sums[UNIT_POS as usize] = value;
        sync_cube();
        #[unroll]
        for step in 0..comptime!(units.ilog2()) {
            let distance = comptime!(1u32 << step);
            let from = comptime!(step % 2 * units);
            let to = comptime!(units - from);
            let mut sum = sums[(from + UNIT_POS) as usize];
            if UNIT_POS >= distance {
                sum += sums[(from + UNIT_POS - distance) as usize];
            }
            sums[(to + UNIT_POS) as usize] = sum;
            sync_cube();
        }
        let last = comptime!(units.ilog2() % 2 * units);
        if UNIT_POS > 0 {
            before = sums[(last + UNIT_POS - 1) as usize];
        }
        total = sums[comptime!((last + units - 1) as usize)];
    }
    Prefix::<T> { before, total }
}

#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct RowSettings {
    temperature: f32,
    top_p: f32,
    min_p: f32,
    count: u32,
}

/// Compensated sum (Kahan, 1965).
#[derive(CubeType, Clone, Copy)]
struct LongSum {
    sum: f32,
    excess: f32,
}

#[cube]
impl LongSum {
    pub fn new() -> LongSum {
        LongSum { sum: 0.0f32.runtime(), excess: 0.0f32.runtime() }
    }

    pub fn add(&mut self, term: f32) {
        let rest = term - self.excess;
        let sum = self.sum + rest;
        self.excess = (sum - self.sum) - rest;
        self.sum = sum;
    }
}

#[cube]
fn logit<E: Element, A: Float>(value: E, #[comptime] single: bool) -> A {
    if comptime!(single) { A::cast_from(E::single(value)) } else { A::cast_from(value) }
}

#[cube]
fn mix(state: u32) -> u32 {
    let state = (state ^ (state >> 16)) * comptime!(DRAW_FACTORS[0]);
    let state = (state ^ (state >> 15)) * comptime!(DRAW_FACTORS[1]);
    state ^ (state >> 16)
}

#[derive(CubeType)]
struct Ranked<A: Float> {
    logits: Shared<[A]>,
    places: Shared<[u32]>,
}

#[cube]
impl<A: Float> Ranked<A> {
    /// Takes one tile in index order.
    pub fn new<E: Element>(
        values: &[E],
        start: usize,
        k: u32,
        #[comptime] config: DrawConfig,
    ) -> Ranked<A> {
        let mut keys = Shared::<[E::Key]>::new_slice(comptime!(config.tile()));
        let mut logits = Shared::<[A]>::new_slice(comptime!(config.tile()));
        let mut places = Shared::<[u32]>::new_slice(comptime!(config.tile()));
        let mut own = Array::<E::Key>::new(DRAW_ITEMS);
        let mut moved = Array::<A>::new(DRAW_ITEMS);
        let mut ranks = Array::<u32>::new(DRAW_ITEMS);
        #[unroll]
        for i in 0..DRAW_ITEMS {
            let place = UNIT_POS + comptime!(i as u32 * config.units);
            let value = values[start + min(place, k - 1) as usize];
            moved[i] = logit::<E, A>(value, config.single);
            own[i] = ordered_key::<E>(value, true);
            own[i] = select(place < k, own[i], E::Key::min_value());
            ranks[i] = 0u32;
            keys[place as usize] = own[i];
        }
        sync_cube();
        for flight in 0..k.div_ceil(RANKED_FLIGHT) {
            #[unroll]
            for ahead in 0..RANKED_FLIGHT {
                let other = flight * RANKED_FLIGHT + ahead;
                let key = keys[other as usize];
                #[unroll]
                for i in 0..DRAW_ITEMS {
                    let place = UNIT_POS + comptime!(i as u32 * config.units);
                    let precedes = key > own[i] || (key == own[i] && other < place);
                    ranks[i] += select(precedes, 1u32, 0u32);
                }
            }
        }
        #[unroll]
        for i in 0..DRAW_ITEMS {
            let place = UNIT_POS + comptime!(i as u32 * config.units);
            if place < k {
                let rank = ranks[i] as usize;
                logits[rank] = moved[i];
                places[rank] = place;
            }
        }
        sync_cube();
        Ranked::<A> { logits, places }
    }
}

#[derive(CubeType, Clone, Copy)]
struct DrawRow<A: Float> {
    start: usize,
    settings: RowSettings,
    greatest: A,
}

#[cube]
impl<A: Float> DrawRow<A> {
    fn weight<E: Element>(
        &self,
        values: &[E],
        ranked: &Array<A>,
        place: u32,
        #[comptime] i: usize,
        #[comptime] config: DrawConfig,
    ) -> f32 {
        let mut weight = 0.0f32;
        if place < self.settings.count {
            let logit = if comptime!(config.ranked) {
                ranked[i]
            } else {
                logit::<E, A>(values[self.start + place as usize], config.single)
            };
            // Infinities and NaN weigh 0, which WGSL does not promise.
            let exponent = f32::cast_from(logit - self.greatest) / self.settings.temperature;
            if exponent > -200.0f32 {
                weight = f32::exp(exponent);
            }
        }
        weight
    }

    fn tile_sums<E: Element>(
        &self,
        values: &[E],
        ranked: &Array<A>,
        weights: &mut Array<f32>,
        first: u32,
        #[comptime] config: DrawConfig,
    ) -> Prefix<f32> {
        let mut sum = 0.0f32;
        #[unroll]
        for i in 0..DRAW_ITEMS {
            let place = first + comptime!(i as u32);
            weights[i] = self.weight::<E>(values, ranked, place, i, config);
            sum += weights[i];
        }
        prefix_sum::<f32>(sum, config.units)
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn draw_kernel<E: Element, A: Float, I: Numeric>(
    values: &[E],
    tokens: &[I],
    per_row: ComptimeOption<&[u32]>,
    shared: RowSettings,
    output: &mut [I],
    rows: usize,
    k: u32,
    seed_low: u32,
    seed_high: u32,
    #[comptime] config: DrawConfig,
    #[define(A, I)] _dtypes: [ElemType; 2],
) {
    let units = comptime!(config.units);
    let index = if comptime!(units > 1) { CUBE_POS } else { ABSOLUTE_POS };
    if index >= rows {
        terminate!();
    }
    let lane = if comptime!(units > 1) { UNIT_POS } else { 0u32.runtime() };
    let at = index * SETTING_WORDS;
    let mut settings = #[comptime]
    match per_row {
        ComptimeOption::Some(words) => RowSettings {
            temperature: f32::reinterpret(words[at]),
            top_p: f32::reinterpret(words[at + 1]),
            min_p: f32::reinterpret(words[at + 2]),
            count: words[at + 3],
        },
        ComptimeOption::None => shared,
    };
    settings.count = min(settings.count, k);
    let uniform = f32::cast_from(mix(mix(index as u32 ^ seed_low) ^ seed_high) >> 8)
        / comptime!(DRAW_NUMBERS);
    let start = index * k as usize;
    let tile = comptime!(config.tile() as u32);
    let mine = lane * comptime!(DRAW_ITEMS as u32);

    let mut greatest = logit::<E, A>(values[start], config.single);
    let mut logits = Array::<A>::new(DRAW_ITEMS);
    let mut drawn = Array::<I>::new(DRAW_ITEMS);
    if comptime!(config.ranked) {
        let ranked = Ranked::<A>::new::<E>(values, start, k, config);
        greatest = ranked.logits[0];
        #[unroll]
        for i in 0..DRAW_ITEMS {
            let place = min(mine + comptime!(i as u32), k - 1) as usize;
            logits[i] = ranked.logits[place];
            drawn[i] = tokens[start + ranked.places[place] as usize];
        }
    }
    let row = DrawRow::<A> { start, settings, greatest };

    let tiles = k.div_ceil(tile);
    let mut weights = Array::<f32>::new(DRAW_ITEMS);
    let mut own = LongSum::new();
    for at in 0..tiles {
        #[unroll]
        for i in 0..DRAW_ITEMS {
            let place = at * tile + mine + comptime!(i as u32);
            weights[i] = row.weight::<E>(values, &logits, place, i, config);
            own.add(weights[i]);
        }
    }
    let sums = prefix_sum::<f32>(own.sum, units);
    let limit = settings.top_p * sums.total;
    let mut ahead = sums.before;
    let mut tile_sum = sums.total;

    let mut through = LongSum::new();
    let mut kept = 0u32;
    let mut kept_sum = LongSum::new();
    for at in 0..tiles {
        let first = at * tile + mine;
        if comptime!(!config.whole) {
            let sums = row.tile_sums::<E>(values, &logits, &mut weights, first, config);
            ahead = sums.before;
            tile_sum = sums.total;
        }
        let mut before = through.sum + ahead;
        #[unroll]
        for i in 0..DRAW_ITEMS {
            let weight = weights[i];
            let stays = weight > 0.0f32 && weight >= settings.min_p && before < limit;
            if stays || first + comptime!(i as u32) == 0 {
                kept += 1;
                kept_sum.add(weight);
            }
            before += weight;
        }
        through.add(tile_sum);
    }
    let kept = prefix_sum::<u32>(kept, units).total;
    let point = uniform * prefix_sum::<f32>(kept_sum.sum, units).total;

    let mut through = LongSum::new();
    let mut passed = 0u32;
    for at in 0..tiles {
        let first = at * tile + mine;
        if comptime!(!config.whole) {
            let sums = row.tile_sums::<E>(values, &logits, &mut weights, first, config);
            ahead = sums.before;
            tile_sum = sums.total;
        }
        let mut sum = through.sum + ahead;
        #[unroll]
        for i in 0..DRAW_ITEMS {
            sum += weights[i];
            if first + comptime!(i as u32) < kept && sum <= point {
                passed += 1;
            }
        }
        through.add(tile_sum);
    }
    let passed = prefix_sum::<u32>(passed, units).total;
    // Rounding may leave the point at the end.
    let chosen = min(passed, kept - 1);
    if comptime!(config.ranked) {
        #[unroll]
        for i in 0..DRAW_ITEMS {
            if mine + comptime!(i as u32) == chosen {
                output[index] = drawn[i];
            }
        }
    } else if lane == 0 {
        output[index] = tokens[start + chosen as usize];
    }
}
