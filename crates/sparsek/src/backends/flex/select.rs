//! The selection in one row.

use multiversion::multiversion;
use sparsek_kernels::topk::Method;

use super::keys::{Bits, Key};
use crate::ops::TopkSpec;

/// Which keys of a row are taken: all above `high`, then the first with `low <= key <= high`.
struct Threshold<B> {
    low: B,
    high: B,
    above: usize,
}

/// Counts of a row before it is left to the standard library's selection.
const COUNTS: u32 = 12;
/// Of these one in so many halves the range of keys: counts may be far from even in it.
const HALVING: u32 = 4;

/// Keys that are looked at together when members are taken.
const CHUNK: usize = 16;

/// Where the last row's threshold was found: a guess for the next one's.
#[derive(Clone, Copy)]
struct Guess<B> {
    key: B,
    /// Distance of keys there.
    spacing: f64,
}

/// Selects row after row, reusing its buffers. Members depend on the row alone.
pub(super) struct Selector<E: Key> {
    keys: Vec<E::Bits>,
    scratch: Vec<E::Bits>,
    members: Vec<usize>,
    guess: Option<Guess<E::Bits>>,
}

impl<E: Key> Selector<E> {
    pub fn new() -> Self {
        Self {
            keys: Vec::new(),
            scratch: Vec::new(),
            members: Vec::new(),
            guess: None,
        }
    }

    /// Columns of the members of a row, in the order asked: all elements where they are fewer than k.
    pub fn select(&mut self, row: &[E], spec: &TopkSpec) -> &[usize] {
        let spec = &TopkSpec {
            k: spec.k.min(row.len()),
            ..*spec
        };
        self.members.clear();
        if spec.k == 0 {
            return &self.members;
        }
        self.keys.resize(row.len(), E::Bits::MIN);
        to_keys(row, spec.largest, &mut self.keys);
        if let Method::Exact = spec.method
            && let Some(least) = self.counted(spec.k)
        {
            self.members.resize(spec.k + 1, 0);
            take_reaching(&self.keys, least, &mut self.members);
            self.members.truncate(spec.k);
            return self.ordered(spec);
        }
        let threshold = match spec.method {
            Method::Exact => self.exact(spec.k),
            Method::EarlyStop(max_iter) => {
                let low = self.early_stop(spec, max_iter);
                self.at_least(low, spec.k)
            }
            Method::Precision(eps) => self.precision(spec, eps),
        };
        let mut quota = spec.k - threshold.above;
        for (column, key) in self.keys.iter().enumerate() {
            if *key > threshold.high {
                self.members.push(column);
            } else if *key >= threshold.low && quota > 0 {
                quota -= 1;
                self.members.push(column);
            }
            if self.members.len() == spec.k {
                break;
            }
        }
        self.ordered(spec)
    }

    fn ordered(&mut self, spec: &TopkSpec) -> &[usize] {
        if spec.sorted {
            let keys = &self.keys;
            self.members
                .sort_unstable_by(|&a, &b| keys[b].cmp(&keys[a]).then(a.cmp(&b)));
        }
        &self.members
    }

    /// A key that exactly k keys reach, if counts find one soon.
    fn counted(&mut self, k: usize) -> Option<E::Bits> {
        let (mut low, mut low_count) = (E::Bits::MIN, self.keys.len());
        let (mut high, mut high_count) = (E::Bits::MAX, 0);
        let (mut key, mut spacing) = match self.guess {
            Some(guess) => (guess.key, guess.spacing),
            None => {
                low = self.keys.iter().copied().fold(E::Bits::MAX, E::Bits::min);
                high = self.keys.iter().copied().fold(E::Bits::MIN, E::Bits::max);
                (low.moved(0.5 * high.above(low)), 0.0)
            }
        };
        let (mut low_seen, mut high_seen) = (spacing == 0.0, spacing == 0.0);
        for step in 1..=COUNTS {
            let count = self.count(key);
            if count == k {
                if low_seen && high_seen {
                    let between = high.above(low) / (low_count - high_count) as f64;
                    spacing = if spacing == 0.0 {
                        between
                    } else {
                        0.75 * spacing + 0.25 * between
                    };
                }
                self.guess = (spacing > 0.0).then_some(Guess { key, spacing });
                return Some(key);
            }
            let missed = count as f64 - k as f64;
            if count > k {
                (low, low_count, low_seen) = (key, count, true);
            } else {
                (high, high_count, high_seen) = (key, count, true);
            }
            let range = high.above(low);
            if range <= 1.0 {
                return None;
            }
            let target = if !low_seen || !high_seen {
                key.moved(missed * spacing * f64::from(step))
            } else if step % HALVING == 0 {
                low.moved(0.5 * range)
            } else {
                let share = (low_count - k) as f64 / (low_count - high_count) as f64;
                low.moved(share * range)
            };
            key = target.clamp(low.moved(1.0), high.decrement());
        }
        None
    }

    /// The kth key and how many are above it.
    fn exact(&mut self, k: usize) -> Threshold<E::Bits> {
        self.scratch.clone_from(&self.keys);
        let position = self.keys.len() - k;
        let (_, kth, above) = self.scratch.select_nth_unstable(position);
        let kth = *kth;
        Threshold {
            low: kth,
            high: kth,
            above: above.iter().filter(|key| **key > kth).count(),
        }
    }

    fn count(&self, at_least: E::Bits) -> usize {
        count_reaching(&self.keys, at_least)
    }

    /// Least and greatest finite key, or twice zero.
    fn finite_range(&self, spec: &TopkSpec) -> (E::Bits, E::Bits) {
        let ordered = |key: E::Bits| if spec.largest { key } else { !key };
        let mut range = (E::Bits::MAX, E::Bits::MIN);
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

    /// Algorithm 2: the lower end of the interval after `max_iter` halvings.
    fn early_stop(&self, spec: &TopkSpec, max_iter: u32) -> E::Bits {
        let (mut low, mut high) = self.finite_range(spec);
        for _ in 0..max_iter {
            let middle = E::midpoint(low, high, spec.largest);
            if self.count(middle) < spec.k {
                high = middle;
            } else {
                low = middle;
            }
        }
        low
    }

    /// The first k keys at or above `low`; when there are fewer, all of them and the best others.
    fn at_least(&mut self, low: E::Bits, k: usize) -> Threshold<E::Bits> {
        if self.count(low) >= k {
            Threshold {
                low,
                high: E::Bits::MAX,
                above: 0,
            }
        } else {
            self.exact(k)
        }
    }

    /// Algorithm 1.
    fn precision(&mut self, spec: &TopkSpec, eps: f32) -> Threshold<E::Bits> {
        let ordered = |key: E::Bits| if spec.largest { key } else { !key };
        let ends = self.finite_range(spec);
        let (mut low, mut high) = ends;
        let ends = (ordered(ends.0), ordered(ends.1));
        let mut above = None;
        let mut middle = high;
        loop {
            let count = self.count(middle);
            if count == spec.k {
                return self.at_least(middle, spec.k);
            }
            if count < spec.k {
                high = middle;
                above = Some(count);
            } else {
                low = middle;
            }
            middle = E::midpoint(low, high, spec.largest);
            let within = E::within(ordered(low), ordered(high), ends, eps);
            if middle <= low || middle >= high || within {
                break;
            }
        }
        match above {
            Some(above) if self.count(low) >= spec.k => Threshold {
                low,
                high: high.decrement(),
                above,
            },
            _ => self.at_least(low, spec.k),
        }
    }
}

// Loops, not closures: what is compiled for wider vectors is not put into the iterators of `core`.

/// Ordered keys of a row.
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

/// How many keys are at least `least`.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+popcnt"))]
fn count_reaching<B: Bits>(keys: &[B], least: B) -> usize {
    let mut total = 0;
    for keys in keys.chunks(1 << 16) {
        // Sums of 32 bits keep up with the comparisons of as many keys at once.
        let mut sum = 0u32;
        for key in keys {
            sum += u32::from(*key >= least);
        }
        total += sum as usize;
    }
    total
}

/// Columns of the keys that are at least `least`, and a spare place.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+popcnt"))]
fn take_reaching<B: Bits>(keys: &[B], least: B, columns: &mut [usize]) {
    let mut taken = 0;
    for (chunk, keys) in keys.chunks(CHUNK).enumerate() {
        // Most of the chunks of a row with few members have none.
        let mut reach = 0u32;
        for key in keys {
            reach += u32::from(*key >= least);
        }
        if reach == 0 {
            continue;
        }
        for (i, key) in keys.iter().enumerate() {
            // Written whether or not it stays, which is faster than a branch that is hard to foresee.
            columns[taken] = chunk * CHUNK + i;
            taken += usize::from(*key >= least);
        }
    }
}
