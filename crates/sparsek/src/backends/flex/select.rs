//! The selection in one row.

use sparsek_kernels::topk::Method;

use super::keys::{Bits, Key};
use crate::ops::TopkSpec;

/// Which keys of a row are taken: all above `high`, then the first with `low <= key <= high`.
struct Threshold<B> {
    low: B,
    high: B,
    above: usize,
}

/// Selects row after row, reusing its buffers.
pub(super) struct Selector<E: Key> {
    keys: Vec<E::Bits>,
    scratch: Vec<E::Bits>,
    members: Vec<usize>,
}

impl<E: Key> Selector<E> {
    pub fn new() -> Self {
        Self {
            keys: Vec::new(),
            scratch: Vec::new(),
            members: Vec::new(),
        }
    }

    /// Columns of the members of a row, in the order asked. `spec.k` is at least 1.
    pub fn select(&mut self, row: &[E], spec: &TopkSpec) -> &[usize] {
        self.keys.clear();
        if spec.largest {
            self.keys.extend(row.iter().map(|value| value.key()));
        } else {
            self.keys.extend(row.iter().map(|value| !value.key()));
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
        self.members.clear();
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
        if spec.sorted {
            let keys = &self.keys;
            self.members
                .sort_by(|&a, &b| keys[b].cmp(&keys[a]).then(a.cmp(&b)));
        }
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
        self.keys.iter().filter(|key| **key >= at_least).count()
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
