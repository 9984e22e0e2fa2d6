//! The selection in one row.

use multiversion::multiversion;
use sparsek_kernels::topk::Method;

use super::{
    count::{Guess, Ordered, count_reaching, counted, take_reaching},
    keys::Key,
};
use crate::ops::TopkSpec;

/// Which keys of a row are taken: all above `high`, then the first with `low <= key <= high`.
struct Threshold<B> {
    low: B,
    high: B,
    above: usize,
}

/// Selects row after row, reusing its buffers. Members depend on the row alone.
pub(super) struct Selector<E: Key> {
    keys: Vec<E::Bits>,
    scratch: Vec<E::Bits>,
    members: Vec<usize>,
    guess: Option<Guess<E::Bits>>,
    direct_guess: Option<Guess<E::Direct>>,
}

impl<E: Key> Selector<E> {
    pub fn new() -> Self {
        Self {
            keys: Vec::new(),
            scratch: Vec::new(),
            members: Vec::new(),
            guess: None,
            direct_guess: None,
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
        let exact = matches!(spec.method, Method::Exact);
        let direct = exact && spec.largest && !spec.sorted && self.direct_guess.is_some();
        if direct
            && let Some(values) = E::direct(row)
            && let Some(least) = counted(values, spec.k, &mut self.direct_guess)
        {
            return self.take(values, least, spec.k);
        }
        self.keys.resize(row.len(), E::Bits::LEAST);
        to_keys(row, spec.largest, &mut self.keys);
        if exact
            && !direct
            && let Some(least) = counted(&self.keys, spec.k, &mut self.guess)
        {
            self.direct_guess = self.guess.as_ref().and_then(E::direct_guess);
            let keys = std::mem::take(&mut self.keys);
            self.take(&keys, least, spec.k);
            self.keys = keys;
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

    /// Takes the `k` that are at least `least`, of which there are so many.
    fn take<T: Ordered>(&mut self, row: &[T], least: T, k: usize) -> &[usize] {
        self.members.resize(k, 0);
        take_reaching(row, least, &mut self.members);
        &self.members
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

    /// Algorithm 2: the lower end of the interval after `max_iter` halvings.
    fn early_stop(&self, spec: &TopkSpec, max_iter: u32) -> E::Bits {
        let mut ends = self.finite_range(spec);
        for _ in 0..max_iter {
            let middle = E::midpoint(ends.0, ends.1, spec.largest);
            let halved = match self.count(middle) < spec.k {
                true => (ends.0, middle),
                false => (middle, ends.1),
            };
            // Each halving depends on the ends alone: all further ones would leave them too.
            if halved == ends {
                break;
            }
            ends = halved;
        }
        ends.0
    }

    /// The first k keys at or above `low`; when there are fewer, all of them and the best others.
    fn at_least(&mut self, low: E::Bits, k: usize) -> Threshold<E::Bits> {
        if self.count(low) >= k {
            Threshold {
                low,
                high: E::Bits::GREATEST,
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
                high: high.previous(),
                above,
            },
            _ => self.at_least(low, spec.k),
        }
    }
}

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

#[cfg(test)]
mod tests {
    use burn::tensor::IntDType;

    use super::*;

    /// The lower end after `max_iter` halvings.
    fn low<E: Key>(row: &[E], largest: bool, max_iter: u32) -> E::Bits {
        let spec = TopkSpec {
            k: 2,
            largest,
            sorted: false,
            method: Method::EarlyStop(max_iter),
            index: IntDType::I32,
        };
        let mut selector = Selector::<E>::new();
        selector.keys.resize(row.len(), E::Bits::LEAST);
        to_keys(row, largest, &mut selector.keys);
        selector.early_stop(&spec, max_iter)
    }

    /// That the halvings which the kernels carry out at most change nothing any more.
    fn ends<E: Key>(row: &[E], halvings: u32) {
        for largest in [true, false] {
            let found = low(row, largest, halvings);
            assert!(found == low(row, largest, u32::MAX));
        }
    }

    #[test]
    fn halving_ends_where_no_interval_shrinks() {
        let magnitudes = |least: f64, greatest: f64| {
            let steps = (0..60).map(move |step| {
                let exponent = (greatest.log2() - least.log2()) * f64::from(step) / 59.0;
                least * exponent.exp2() * (1.0 + f64::from(step) / 997.0)
            });
            steps.flat_map(|x| [x, -x]).chain([0.0])
        };
        let single = magnitudes(1e-45, 1e38).map(|x| x as f32);
        for middle in single.chain([f32::MIN_POSITIVE, 1e-38]) {
            for (low, high) in [(f32::MIN, f32::MAX), (-1.0, f32::MAX), (0.0, f32::MAX)] {
                ends(&[high, low, middle], 320);
                ends(&[low, f32::INFINITY, middle, f32::NEG_INFINITY], 320);
            }
        }
        for middle in magnitudes(1e-300, 1e300).chain([f64::MIN_POSITIVE]) {
            for (low, high) in [(f64::MIN, f64::MAX), (-1e-7, f64::MAX), (0.0, f64::MAX)] {
                ends(&[high, low, middle], 2_200);
            }
        }
        for middle in [i32::MIN, -1, 0, 1, 7, i32::MAX - 1] {
            ends(&[i32::MAX, i32::MIN, middle], 320);
            ends(&[i64::MAX, i64::MIN, middle.into()], 2_200);
        }
    }
}
