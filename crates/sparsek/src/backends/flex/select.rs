//! ```text
//! guess a threshold from the last row
//! repeat up to COUNT_ROUNDS: count elements that reach it; done at k; else interpolate
//! else: kth order-preserving key by the standard library
//! ```
//!
//! The guess never changes the result.

use burn::tensor::{bf16, f16};
use multiversion::multiversion;
use sparsek_kernels::topk::{Method, TopkOptions};

use super::tuning::{BISECT_EVERY, CLOSE_COUNT, COUNT_ROUNDS, SPACING_WEIGHT, STUCK_BISECTIONS};

/// Keys above `high`, then the first within `low..=high`.
struct Threshold<B> {
    low: B,
    high: B,
    above: usize,
}

pub(super) struct Selector<E: Key> {
    keys: Vec<E::Bits>,
    scratch: Vec<E::Bits>,
    selected: Vec<usize>,
    guess: Option<Guess<E::Bits>>,
    direct_guess: Option<Guess<E::Direct>>,
}

impl<E: Key> Selector<E> {
    pub fn new() -> Self {
        Self {
            keys: Vec::new(),
            scratch: Vec::new(),
            selected: Vec::new(),
            guess: None,
            direct_guess: None,
        }
    }

    /// Columns in order; all if under k.
    pub fn select(&mut self, row: &[E], options: &TopkOptions) -> &[usize] {
        let options = &TopkOptions { k: options.k.min(row.len()), ..*options };
        self.selected.clear();
        if options.k == 0 {
            return &self.selected;
        }
        let exact = matches!(options.method, Method::Exact);
        let direct = exact && options.largest && !options.sorted && self.direct_guess.is_some();
        if direct
            && let Some(values) = E::direct(row)
            && let Some(least) = find_threshold(values, options.k, &mut self.direct_guess)
        {
            return self.take(values, least, options.k);
        }
        self.keys.resize(row.len(), E::Bits::LEAST);
        to_keys(row, options.largest, &mut self.keys);
        if exact
            && !direct
            && let Some(least) = find_threshold(&self.keys, options.k, &mut self.guess)
        {
            self.direct_guess = self.guess.as_ref().and_then(E::direct_guess);
            let keys = std::mem::take(&mut self.keys);
            self.take(&keys, least, options.k);
            self.keys = keys;
            return self.ordered(options);
        }
        let threshold = match options.method {
            Method::Exact => self.exact(options.k),
            Method::EarlyStop(max_iter) => {
                let low = self.early_stop(options, max_iter);
                self.at_least(low, options.k)
            }
            Method::Precision(eps) => self.precision(options, eps),
        };
        let mut quota = options.k - threshold.above;
        for (column, key) in self.keys.iter().enumerate() {
            if *key > threshold.high {
                self.selected.push(column);
            } else if *key >= threshold.low && quota > 0 {
                quota -= 1;
                self.selected.push(column);
            }
            if self.selected.len() == options.k {
                break;
            }
        }
        self.ordered(options)
    }

    fn ordered(&mut self, options: &TopkOptions) -> &[usize] {
        if options.sorted {
            let keys = &self.keys;
            self.selected.sort_unstable_by(|&a, &b| keys[b].cmp(&keys[a]).then(a.cmp(&b)));
        }
        &self.selected
    }

    fn take<T: Ordered>(&mut self, row: &[T], least: T, k: usize) -> &[usize] {
        self.selected.resize(k, 0);
        take_at_least(row, least, &mut self.selected);
        &self.selected
    }

    fn exact(&mut self, k: usize) -> Threshold<E::Bits> {
        self.scratch.clone_from(&self.keys);
        let position = self.keys.len() - k;
        let (_, kth, above) = self.scratch.select_nth_unstable(position);
        let kth = *kth;
        Threshold { low: kth, high: kth, above: above.iter().filter(|key| **key > kth).count() }
    }

    fn count(&self, at_least: E::Bits) -> usize {
        count_at_least(&self.keys, at_least)
    }

    fn finite_range(&self, options: &TopkOptions) -> (E::Bits, E::Bits) {
        let ordered = |key: E::Bits| if options.largest { key } else { !key };
        let mut range = (E::Bits::GREATEST, E::Bits::LEAST);
        for &key in &self.keys {
            if E::is_finite(ordered(key)) {
                range = (range.0.min(key), range.1.max(key));
            }
        }
        if range.0 > range.1 {
            let zero = ordered(E::ZERO.key());
            (zero, zero)
        } else {
            range
        }
    }

    /// Returns the lower end.
    fn early_stop(&self, options: &TopkOptions, max_iter: u32) -> E::Bits {
        let mut ends = self.finite_range(options);
        for _ in 0..max_iter {
            let middle = E::midpoint(ends.0, ends.1, options.largest);
            let bisected = match self.count(middle) < options.k {
                true => (ends.0, middle),
                false => (middle, ends.1),
            };
            if bisected == ends {
                break;
            }
            ends = bisected;
        }
        ends.0
    }

    /// Exact if fewer than k reach `low`.
    fn at_least(&mut self, low: E::Bits, k: usize) -> Threshold<E::Bits> {
        if self.count(low) >= k {
            Threshold { low, high: E::Bits::GREATEST, above: 0 }
        } else {
            self.exact(k)
        }
    }

    fn precision(&mut self, options: &TopkOptions, eps: f32) -> Threshold<E::Bits> {
        let ordered = |key: E::Bits| if options.largest { key } else { !key };
        let ends = self.finite_range(options);
        let (mut low, mut high) = ends;
        let ends = (ordered(ends.0), ordered(ends.1));
        let mut above = None;
        let mut middle = high;
        loop {
            let count = self.count(middle);
            if count == options.k {
                return self.at_least(middle, options.k);
            }
            if count < options.k {
                high = middle;
                above = Some(count);
            } else {
                low = middle;
            }
            middle = E::midpoint(low, high, options.largest);
            let within = E::within(ordered(low), ordered(high), ends, eps);
            if middle <= low || middle >= high || within {
                break;
            }
        }
        match above {
            Some(above) if self.count(low) >= options.k => {
                Threshold { low, high: high.previous(), above }
            }
            _ => self.at_least(low, options.k),
        }
    }
}

#[multiversion(targets("x86_64+avx2+bmi1+bmi2+popcnt"))]
fn to_keys<E: Key>(row: &[E], largest: bool, keys: &mut [E::Bits]) {
    if largest {
        for (key, value) in keys.iter_mut().zip(row) {
            *key = value.key();
        }
    } else {
        for (key, value) in keys.iter_mut().zip(row) {
            *key = !value.key();
        }
    }
}

/// Orders as kernels: `-0 = +0`, NaN equal and greatest.
pub(super) trait Key: Copy + Send + Sync + Sized {
    type Bits: Bits;

    type Direct: Ordered;

    const ZERO: Self;

    fn direct(_row: &[Self]) -> Option<&[Self::Direct]> {
        None
    }

    fn direct_guess(_guess: &Guess<Self::Bits>) -> Option<Guess<Self::Direct>> {
        None
    }

    fn key(self) -> Self::Bits;

    /// Rounds 16-bit floats as f32, integers toward `low`. Subnormals count as zero.
    fn midpoint(low: Self::Bits, high: Self::Bits, largest: bool) -> Self::Bits;

    fn is_finite(key: Self::Bits) -> bool;

    fn within(low: Self::Bits, high: Self::Bits, ends: (Self::Bits, Self::Bits), eps: f32) -> bool;
}

pub(super) trait Bits: Ordered + Ord + Send + Sync + std::ops::Not<Output = Self> {}

impl Bits for u32 {}
impl Bits for u64 {}

macro_rules! float_key {
    ($float:ident, $bits:ident, $signed:ident) => {
        impl Key for $float {
            type Bits = $bits;
            type Direct = Self;
            const ZERO: Self = 0.0;

            fn direct(row: &[Self]) -> Option<&[Self]> {
                all_ordered(row).then_some(row)
            }

            fn direct_guess(guess: &Guess<$bits>) -> Option<Guess<Self>> {
                let found = value(guess.value);
                let spacing = value(guess.value.moved(guess.spacing)).above(found);
                (spacing > 0.0 && spacing.is_finite()).then_some(Guess { value: found, spacing })
            }

            fn key(self) -> $bits {
                const SIGN: $bits = 1 << ($bits::BITS - 1);
                // Signed and branchless, to vectorize.
                let bits = self.to_bits();
                let magnitude = (bits & !SIGN) as $signed;
                let fill = ((bits as $signed) >> ($bits::BITS - 1)) as $bits | SIGN;
                let key = if magnitude == 0 { SIGN } else { bits ^ fill };
                if magnitude > $float::INFINITY.to_bits() as $signed { $bits::MAX } else { key }
            }

            fn midpoint(low: $bits, high: $bits, largest: bool) -> $bits {
                let flush = |x: $float| {
                    if x.abs() < $float::MIN_POSITIVE { 0.0 } else { x }
                };
                let ordered = |key: $bits| if largest { key } else { !key };
                let (low, high) = (flush(value(ordered(low))), flush(value(ordered(high))));
                let sum = low + high;
                let middle = if sum.is_finite() { sum * 0.5 } else { low * 0.5 + high * 0.5 };
                ordered(flush(middle).key())
            }

            fn is_finite(key: $bits) -> bool {
                key > $float::NEG_INFINITY.key() && key < $float::INFINITY.key()
            }

            fn within(low: $bits, high: $bits, ends: ($bits, $bits), eps: f32) -> bool {
                let scale = flush(value(ends.0)).abs().max(flush(value(ends.1)).abs());
                let width = (flush(value(high)) - flush(value(low))).abs();
                flush(width) <= flush($float::from(eps) * scale)
            }
        }

        fn flush(x: $float) -> $float {
            if x.abs() < $float::MIN_POSITIVE { 0.0 } else { x }
        }

        fn value(key: $bits) -> $float {
            const SIGN: $bits = 1 << ($bits::BITS - 1);
            $float::from_bits(if key & SIGN == 0 { !key } else { key ^ SIGN })
        }
    };
}

mod single {
    use super::{Guess, Key, Ordered, all_ordered};
    float_key!(f32, u32, i32);
}

mod double {
    use super::{Guess, Key, Ordered, all_ordered};
    float_key!(f64, u64, i64);
}

macro_rules! half_key {
    ($half:ident) => {
        impl Key for $half {
            type Bits = u32;
            type Direct = u32;
            const ZERO: Self = $half::from_bits(0);

            fn key(self) -> u32 {
                self.to_f32().key()
            }
            fn midpoint(low: u32, high: u32, largest: bool) -> u32 {
                <f32 as Key>::midpoint(low, high, largest)
            }
            fn is_finite(key: u32) -> bool {
                <f32 as Key>::is_finite(key)
            }
            fn within(low: u32, high: u32, ends: (u32, u32), eps: f32) -> bool {
                <f32 as Key>::within(low, high, ends, eps)
            }
        }
    };
}

half_key!(f16);
half_key!(bf16);

macro_rules! integer_key {
    ($int:ident, $bits:ident, $sign:expr) => {
        impl Key for $int {
            type Bits = $bits;
            type Direct = $bits;
            const ZERO: Self = 0;

            fn key(self) -> $bits {
                self as $bits ^ $sign
            }
            fn midpoint(low: $bits, high: $bits, _: bool) -> $bits {
                low + (high - low) / 2
            }
            fn is_finite(_: $bits) -> bool {
                true
            }
            fn within(low: $bits, high: $bits, ends: ($bits, $bits), eps: f32) -> bool {
                let size = |key: $bits| ((key ^ $sign) as $int as f32).abs();
                high.abs_diff(low) as f32 <= eps * size(ends.0).max(size(ends.1))
            }
        }
    };
}

integer_key!(i32, u32, 1 << 31);
integer_key!(u32, u32, 0);
integer_key!(i64, u64, 1 << 63);

const CHUNK: usize = u32::BITS as usize;

/// Keys, and floats without NaN.
pub(super) trait Ordered: Copy + PartialOrd {
    const LEAST: Self;
    const GREATEST: Self;
    fn above(self, low: Self) -> f64;
    /// Approximate; saturates.
    fn moved(self, distance: f64) -> Self;
    fn next(self) -> Self;
    fn previous(self) -> Self;
}

macro_rules! ordered_bits {
    ($bits:ident) => {
        impl Ordered for $bits {
            const LEAST: Self = Self::MIN;
            const GREATEST: Self = Self::MAX;
            fn above(self, low: Self) -> f64 {
                (self - low) as f64
            }
            fn moved(self, distance: f64) -> Self {
                if distance < 0.0 {
                    self.saturating_sub(-distance as Self)
                } else {
                    self.saturating_add(distance as Self)
                }
            }
            fn next(self) -> Self {
                self.saturating_add(1)
            }
            fn previous(self) -> Self {
                self.saturating_sub(1)
            }
        }
    };
}

macro_rules! ordered_float {
    ($float:ident) => {
        impl Ordered for $float {
            const LEAST: Self = Self::NEG_INFINITY;
            const GREATEST: Self = Self::INFINITY;
            fn above(self, low: Self) -> f64 {
                f64::from(self) - f64::from(low)
            }
            fn moved(self, distance: f64) -> Self {
                (f64::from(self) + distance) as Self
            }
            fn next(self) -> Self {
                self.next_up()
            }
            fn previous(self) -> Self {
                self.next_down()
            }
        }
    };
}

ordered_bits!(u32);
ordered_bits!(u64);
ordered_float!(f32);
ordered_float!(f64);

#[derive(Clone, Copy)]
pub(super) struct Guess<T> {
    pub value: T,
    pub spacing: f64,
}

/// Exactly `k` elements reach it.
fn find_threshold<T: Ordered>(row: &[T], k: usize, guess: &mut Option<Guess<T>>) -> Option<T> {
    let (mut low, mut low_count, mut low_seen) = (T::LEAST, row.len(), false);
    let (mut high, mut high_count, mut high_seen) = (T::GREATEST, 0, false);
    let start = guess.unwrap_or_else(|| {
        (low, high) = ends(row);
        (low_seen, high_seen) = (true, true);
        let range = high.above(low);
        Guess { value: low.moved(0.5 * range), spacing: range / row.len() as f64 }
    });
    let fresh = guess.is_none();
    let mut spacing = start.spacing;
    let mut value = start.value;
    let mut first_count = k;
    let (mut stuck, mut bisected) = (0, false);
    for step in 1..=COUNT_ROUNDS {
        let count = count_at_least(row, value);
        if step == 1 {
            first_count = count;
        }
        if count == k {
            if !fresh && first_count != k {
                let way = if value > start.value {
                    value.above(start.value)
                } else {
                    start.value.above(value)
                };
                spacing += SPACING_WEIGHT * (way / first_count.abs_diff(k) as f64 - spacing);
            }
            *guess = (spacing > 0.0).then_some(Guess { value, spacing });
            return Some(value);
        }
        let known = count == low_count || count == high_count;
        let far = known && low_count - high_count > CLOSE_COUNT;
        stuck += u32::from(far && bisected);
        if stuck == STUCK_BISECTIONS {
            return None;
        }
        if count > k {
            (low, low_count, low_seen) = (value, count, true);
        } else {
            (high, high_count, high_seen) = (value, count, true);
        }
        if low.next() >= high {
            return None;
        }
        // Narrow brackets underestimate the spacing.
        if fresh && low_count - high_count > CLOSE_COUNT {
            spacing = high.above(low) / (low_count - high_count) as f64;
        }
        bisected = false;
        let target = if !low_seen || !high_seen {
            value.moved((count as f64 - k as f64) * start.spacing)
        } else if far || step % BISECT_EVERY == 0 {
            bisected = true;
            low.moved(0.5 * high.above(low))
        } else {
            let share = (low_count - k) as f64 / (low_count - high_count) as f64;
            low.moved(share * high.above(low))
        };
        let inside = if target >= high { high.previous() } else { target };
        value = if inside > low { inside } else { low.next() };
    }
    *guess = None;
    None
}

fn ends<T: Ordered>(row: &[T]) -> (T, T) {
    let mut ends = (row[0], row[0]);
    for &value in row {
        if value < ends.0 {
            ends.0 = value;
        }
        if value > ends.1 {
            ends.1 = value;
        }
    }
    ends
}

// `multiversion` misses closures of iterators.

#[multiversion(targets("x86_64+avx2+bmi1+bmi2+popcnt"))]
fn count_at_least<T: Ordered>(row: &[T], least: T) -> usize {
    let mut total = 0;
    for values in row.chunks(1 << 16) {
        // 32-bit sums vectorize.
        let mut sum = 0u32;
        for value in values {
            sum += u32::from(*value >= least);
        }
        total += sum as usize;
    }
    total
}

/// `columns` must fit all.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+popcnt"))]
fn take_at_least<T: Ordered>(row: &[T], least: T, columns: &mut [usize]) {
    let (chunks, rest) = row.as_chunks::<CHUNK>();
    let mut taken = 0;
    for (chunk, values) in chunks.iter().enumerate() {
        let mut reach = 0u32;
        for (i, value) in values.iter().enumerate() {
            reach |= u32::from(*value >= least) << i;
        }
        while reach != 0 {
            columns[taken] = chunk * CHUNK + reach.trailing_zeros() as usize;
            taken += 1;
            reach &= reach - 1;
        }
    }
    for (i, value) in rest.iter().enumerate() {
        if *value >= least {
            columns[taken] = chunks.len() * CHUNK + i;
            taken += 1;
        }
    }
}

fn all_ordered<T: Ordered>(row: &[T]) -> bool {
    // NaN compares false.
    count_at_least(row, T::LEAST) == row.len()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn low<E: Key>(row: &[E], largest: bool, max_iter: u32) -> E::Bits {
        let options = TopkOptions::new(2).with_largest(largest);
        let mut selector = Selector::<E>::new();
        selector.keys.resize(row.len(), E::Bits::LEAST);
        to_keys(row, largest, &mut selector.keys);
        selector.early_stop(&options, max_iter)
    }

    fn ends<E: Key>(row: &[E], halvings: u32) {
        for largest in [true, false] {
            let found = low(row, largest, halvings);
            assert!(found == low(row, largest, u32::MAX));
        }
    }

    fn magnitudes(least: f64, greatest: f64) -> impl Iterator<Item = f64> {
        let steps = (0..60).map(move |step| {
            let exponent = (greatest.log2() - least.log2()) * f64::from(step) / 59.0;
            least * exponent.exp2() * (1.0 + f64::from(step) / 997.0)
        });
        steps.flat_map(|x| [x, -x]).chain([0.0])
    }

    #[rstest]
    fn halving_ends_where_no_interval_of_f32_shrinks(#[values(f32::MIN, -1.0, 0.0)] low: f32) {
        let high = f32::MAX;
        let single = magnitudes(1e-45, 1e38).map(|x| x as f32);
        for middle in single.chain([f32::MIN_POSITIVE, 1e-38]) {
            ends(&[high, low, middle], 320);
            ends(&[low, f32::INFINITY, middle, f32::NEG_INFINITY], 320);
        }
    }

    #[rstest]
    fn halving_ends_where_no_interval_of_f64_shrinks(#[values(f64::MIN, -1e-7, 0.0)] low: f64) {
        for middle in magnitudes(1e-300, 1e300).chain([f64::MIN_POSITIVE]) {
            ends(&[f64::MAX, low, middle], 2_200);
        }
    }

    #[rstest]
    fn halving_ends_where_no_interval_of_integers_shrinks(
        #[values(i32::MIN, -1, 0, 1, 7, i32::MAX - 1)] middle: i32,
    ) {
        ends(&[i32::MAX, i32::MIN, middle], 320);
        ends(&[i64::MAX, i64::MIN, middle.into()], 2_200);
    }
}
