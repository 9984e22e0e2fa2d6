//! Row-wise top-k by sorting, and approximate top-k by literal bisection.
//!
//! ```text
//! Exact:          the k best by (value, lowest index)
//! EarlyStop(n):   n bisection steps on [worst, best] keep count(x ≥ lo) ≥ k;
//!                 then the first k elements with x ≥ lo          (RTop-K, Algorithm 2)
//! Precision(eps): bisect until count(x ≥ t) = k or the interval is at most eps · max|x| wide;
//!                 then all above it and the first in it          (RTop-K, Algorithm 1)
//! ```
//!
//! For the smallest elements `Row::order` reverses the order.

use std::cmp::Ordering;

use sparsek_kernels::topk::{Method, TopkOptions};

use crate::element::{Element, Wide};

/// Positions that top-k selects from a row, in output order.
pub fn select<T: Element>(row: &[T], options: &TopkOptions) -> Vec<usize> {
    let k = options.k;
    assert!(k <= row.len(), "k = {k} exceeds the row of {} elements", row.len());
    let row = Row::new(row, options.largest);
    let mut selected = match options.method {
        Method::Exact => row.best(0..row.values.len(), k),
        Method::EarlyStop(max_iter) => row.early_stop(k, max_iter),
        Method::Precision(eps) => row.precision(k, eps),
        #[allow(unreachable_patterns)]
        other => panic!("the oracle does not implement {other:?}"),
    };
    selected.sort_unstable();
    if options.sorted {
        selected.sort_by(|&i, &j| row.order(row.values[j], row.values[i]));
    }
    selected
}

/// Like [`select`] for a row that may be shorter than k; missing slots are `None`, at the end.
pub fn slots<T: Element>(existing: &[T], options: &TopkOptions) -> Vec<Option<usize>> {
    let k = options.k.min(existing.len());
    let selected = select(existing, &TopkOptions { k, ..*options });
    let mut slots: Vec<Option<usize>> = selected.into_iter().map(Some).collect();
    slots.resize(options.k, None);
    slots
}

/// How a `Precision(eps)` search ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Number of thresholds counted: the best finite element, then midpoints.
    pub counts: u32,
    /// Whether exactly k elements reached the last threshold; else the interval became narrow.
    pub found: bool,
}

/// How the search of [`select`] for `Precision(eps)` ends.
pub fn exit<T: Element>(row: &[T], k: usize, largest: bool, eps: f32) -> Exit {
    let search = Row::new(row, largest).bisect(k, eps);
    Exit { counts: search.counts, found: search.found }
}

/// How far below the k-th element `Precision(eps)` may select.
pub fn tolerance<T: Element>(row: &[T], eps: f32) -> f64 {
    let finite = row.iter().map(|x| x.wide()).filter(|x| x.is_finite());
    // Subnormal widths count as zero.
    let flushed = 2.0 * f64::from(f32::MIN_POSITIVE);
    f64::from(eps) * finite.fold(0.0, |most, x| x.to_f64().abs().max(most)) + flushed
}

struct Row<W> {
    values: Vec<W>,
    largest: bool,
}

struct Bisection<W> {
    /// At least k elements reach it.
    lower: W,
    /// Fewer than k elements reach it; `None` if no such threshold was counted.
    upper: Option<W>,
    counts: u32,
    /// Whether exactly k elements reach `lower`, the last threshold.
    found: bool,
}

impl<W: Wide> Row<W> {
    fn new<T: Element<Wide = W>>(row: &[T], largest: bool) -> Self {
        Self { values: row.iter().map(|x| x.wide()).collect(), largest }
    }

    /// `Greater` means better.
    fn order(&self, a: W, b: W) -> Ordering {
        if self.largest { a.order(b) } else { b.order(a) }
    }

    /// Positions of elements at least as good as `threshold`, ascending.
    fn at_least(&self, threshold: W) -> Vec<usize> {
        let better = |&i: &usize| self.order(self.values[i], threshold) != Ordering::Less;
        (0..self.values.len()).filter(better).collect()
    }

    fn count(&self, threshold: W) -> usize {
        self.values.iter().filter(|&&x| self.order(x, threshold) != Ordering::Less).count()
    }

    /// The `k` best of `among`, ties to the lowest index.
    fn best(&self, among: impl IntoIterator<Item = usize>, k: usize) -> Vec<usize> {
        let mut positions: Vec<usize> = among.into_iter().collect();
        positions.sort_by(|&i, &j| self.order(self.values[j], self.values[i]).then(i.cmp(&j)));
        positions.truncate(k);
        positions
    }

    /// The worst and best finite element; zeros if none is finite.
    fn extremes(&self) -> (W, W) {
        let mut finite = self.values.iter().copied().filter(|x| x.is_finite());
        let Some(first) = finite.next() else {
            return (W::zero(), W::zero());
        };
        finite.fold((first, first), |(worst, best), x| {
            (
                if self.order(x, worst) == Ordering::Less { x } else { worst },
                if self.order(x, best) == Ordering::Greater { x } else { best },
            )
        })
    }

    /// Fills k slots from `certain`, then the first of `borderline`, then the best of the rest.
    fn fill(&self, certain: Vec<usize>, borderline: Vec<usize>, k: usize) -> Vec<usize> {
        let mut taken = vec![false; self.values.len()];
        certain.iter().for_each(|&i| taken[i] = true);
        let mut selected = certain;
        for i in borderline {
            if selected.len() < k && !taken[i] {
                taken[i] = true;
                selected.push(i);
            }
        }
        let rest = (0..self.values.len()).filter(|&i| !taken[i]);
        let missing = k.saturating_sub(selected.len());
        selected.extend(self.best(rest, missing));
        selected
    }

    /// RTop-K, Algorithm 2.
    fn early_stop(&self, k: usize, max_iter: u32) -> Vec<usize> {
        let (mut lo, mut hi) = self.extremes();
        for _ in 0..max_iter {
            let mid = lo.middle(hi);
            let end = if self.count(mid) < k { &mut hi } else { &mut lo };
            // An unchanged interval stays unchanged.
            if self.order(std::mem::replace(end, mid), mid) == Ordering::Equal {
                break;
            }
        }
        self.fill(Vec::new(), self.at_least(lo), k)
    }

    /// RTop-K, Algorithm 1.
    fn precision(&self, k: usize, eps: f32) -> Vec<usize> {
        let search = self.bisect(k, eps);
        let at_or_above = self.at_least(search.lower);
        if search.found {
            return at_or_above;
        }
        let certain = search.upper.map_or(Vec::new(), |upper| self.at_least(upper));
        self.fill(certain, at_or_above, k)
    }

    fn bisect(&self, k: usize, eps: f32) -> Bisection<W> {
        let extremes = self.extremes();
        let (lower, mut better) = extremes;
        let mut threshold = better;
        let mut search = Bisection { lower, upper: None, counts: 0, found: false };
        loop {
            let count = self.count(threshold);
            search.counts += 1;
            search.found = count == k;
            if count < k {
                better = threshold;
                search.upper = Some(threshold);
            } else {
                search.lower = threshold;
            }
            let next = search.lower.middle(better);
            let stuck = self.order(next, search.lower) != Ordering::Greater
                || self.order(next, better) != Ordering::Less;
            if search.found || stuck || search.lower.is_narrow(better, eps, extremes) {
                return search;
            }
            threshold = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn options(k: usize, largest: bool, sorted: bool, method: Method) -> TopkOptions {
        TopkOptions { k, largest, sorted, method }
    }

    #[rstest]
    #[case::greatest(4, true, &[0, 1, 2, 3])]
    #[case::least(4, false, &[5, 4, 3, 2])]
    #[case::all(6, false, &[5, 4, 3, 2, 1, 0])]
    fn nan_is_greatest(#[case] k: usize, #[case] largest: bool, #[case] expected: &[usize]) {
        let row = [f32::NAN, f32::INFINITY, 1e4, 0.0, -1e4, f32::NEG_INFINITY];
        let found = select(&row, &options(k, largest, true, Method::Exact));
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case::sorted(3, true, true, &[2, 0, 1])]
    #[case::least(2, false, false, &[0, 1])]
    fn ties_go_to_the_lowest_index_and_zeros_are_equal(
        #[case] k: usize,
        #[case] largest: bool,
        #[case] sorted: bool,
        #[case] expected: &[usize],
    ) {
        let row = [0.0f32, -0.0, 1.0, -0.0, 0.0];
        let found = select(&row, &options(k, largest, sorted, Method::Exact));
        assert_eq!(found, expected);
    }

    #[test]
    fn missing_slots_come_last() {
        let options = options(3, true, true, Method::Exact);
        assert_eq!(slots(&[1i32, 2], &options), [Some(1), Some(0), None]);
        assert_eq!(slots::<i32>(&[], &options), [None, None, None]);
    }

    #[rstest]
    #[case(0, [0, 1])]
    #[case(1, [0, 2])]
    #[case(2, [3, 4])]
    #[case(60, [3, 4])]
    #[case(u32::MAX, [3, 4])]
    fn early_stop_takes_the_first_above_the_lower_bound(
        #[case] max_iter: u32,
        #[case] expected: [usize; 2],
    ) {
        // [0, 8]: count(4) = 4, count(6) = 2, count(7) = 1.
        let row = [5i32, 0, 4, 6, 8, 1];
        let found = select(&row, &options(2, true, false, Method::EarlyStop(max_iter)));
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case::greatest(&[f32::NEG_INFINITY, 1.0, f32::NEG_INFINITY, f32::NAN], 3, true, &[0, 1, 3])]
    #[case::least(&[f32::NAN, f32::INFINITY, 1.0], 2, false, &[1, 2])]
    fn early_stop_fills_from_infinities(
        #[case] row: &[f32],
        #[case] k: usize,
        #[case] largest: bool,
        #[case] expected: &[usize],
    ) {
        let found = select(row, &options(k, largest, false, Method::EarlyStop(5)));
        assert_eq!(found, expected);
    }

    #[rstest]
    fn precision_zero_is_exact(
        #[values(1, 2, 17, 100, 199, 200)] k: usize,
        #[values(true, false)] largest: bool,
    ) {
        let row: Vec<f32> = (0..200u32).map(|i| ((i * 7919) % 211) as f32 - 90.5).collect();
        let exact = select(&row, &options(k, largest, true, Method::Exact));
        assert_eq!(select(&row, &options(k, largest, true, Method::Precision(0.0))), exact);
    }

    #[test]
    fn an_exit_counts_its_thresholds() {
        // Counts 8, 4, 6; two elements reach 6.
        let row = [5i32, 0, 4, 6, 8, 1];
        let end = |counts, found| Exit { counts, found };
        assert_eq!(exit(&row, 2, true, 0.0), end(3, true));
        assert_eq!(exit(&row, 1, true, 0.0), end(1, true));
        // 7.0, 3.5, 5.25, ... down to 4.0; no threshold separates the two 4.0.
        let row = [4.0f32, 0.0, 4.0, 7.0];
        assert!(!exit(&row, 2, true, 0.0).found);
        assert_eq!(exit(&row, 2, true, 1.0), end(1, false));
    }

    #[test]
    fn a_midpoint_of_integers_rounds_to_the_worse_end() {
        assert_eq!((-3i128).middle(0), -2);
        assert_eq!(0i128.middle(-3), -1);
        assert_eq!(3e38f32.middle(3.2e38), 3e38f32 * 0.5 + 3.2e38f32 * 0.5);
    }
}
