//! The threshold search: which keys of a row are taken. Shared by every routine.

use cubecl::prelude::*;

use super::element::{Element, ordered_is_finite, ordered_within, ordered_zero};
use super::options::{MethodKind, Search};

/// Halvings in the arithmetic of the values before the exact search halves the key range instead:
/// values converge in about nine steps on smooth data, keys in at most 32 (64) on any data.
pub(crate) const VALUE_HALVINGS: u32 = 16;

/// The least and the greatest of a set of keys.
#[derive(CubeType, Clone, Copy)]
pub struct KeyRange<K: Int> {
    pub low: K,
    pub high: K,
}

/// What is taken from a row: every key above `high` (`above` of them, fewer than k), then the first
/// `k - above` in index order with `low <= key <= high`.
#[derive(CubeType, Clone, Copy)]
pub struct Threshold<K: Int> {
    pub low: K,
    pub high: K,
    pub above: u32,
}

/// One row as the search sees it. A routine implements it over registers or memory; the results
/// must be the same in every unit that works on the row.
#[cube]
pub trait Row<E: Element>: CubeType {
    /// Least and greatest key of the row.
    fn range(&self) -> KeyRange<E::Key>;
    /// Least and greatest key among the finite elements; `low > high` when there are none.
    fn finite_range(&self) -> KeyRange<E::Key>;
    /// How many keys are at least `key`, which is above the row's least.
    fn count(&self, key: E::Key) -> u32;
}

/// Runtime parameters of the search.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub struct SearchParams {
    pub k: u32,
    pub max_iter: u32,
    pub eps: f32,
}

/// Finds the threshold of a row whose length is at least `params.k > 0`.
#[cube]
pub fn find_threshold<E: Element, R: Row<E>>(
    row: &R,
    params: &SearchParams,
    #[comptime] search: Search,
) -> Threshold<E::Key> {
    let k = params.k;
    let range = row.range();
    let mut low = range.low;
    let mut high = range.high;
    let mut above = 0u32;
    let mut open = low < high;

    if comptime!(search.method != MethodKind::Exact) {
        let finite = finite_or_zero::<E, R>(row, search);
        let mut lower = finite.low;
        let mut upper = finite.high;
        // Keys at or above `lower`; 0 until it has been counted.
        let mut reached = 0u32;
        // Keys at or above `upper`, once a count fell below k there.
        let mut upper_count = 0u32;
        let mut capped = false;
        let mut hit = false;

        if comptime!(search.method == MethodKind::EarlyStop) {
            for _ in 0..params.max_iter {
                let middle = E::midpoint(lower, upper, search.largest);
                let count = row.count(middle);
                if count < k {
                    upper = middle;
                } else {
                    lower = middle;
                    reached = count;
                }
            }
        } else {
            let mut middle = upper;
            let mut running = true;
            while running {
                let count = row.count(middle);
                if count == k {
                    lower = middle;
                    reached = count;
                    hit = true;
                    running = false;
                } else {
                    if count < k {
                        upper = middle;
                        upper_count = count;
                        capped = true;
                    } else {
                        lower = middle;
                        reached = count;
                    }
                    middle = E::midpoint(lower, upper, search.largest);
                    running = middle > lower
                        && middle < upper
                        && !ordered_within::<E>(
                            lower,
                            upper,
                            finite.low,
                            finite.high,
                            params.eps,
                            search.largest,
                        );
                }
            }
        }

        if reached == 0 {
            reached = row.count(lower);
        }
        if reached >= k {
            low = lower;
            high = E::Key::max_value();
            if comptime!(search.method == MethodKind::Precision) {
                if capped && !hit {
                    high = upper - E::Key::new(1);
                    above = upper_count;
                }
            }
            open = false.runtime();
        } else {
            // Fewer than k elements are finite or better: the others are chosen exactly.
            high = lower - E::Key::new(1);
            above = reached;
            open = low < high;
        }
    }

    let mut step = 0u32;
    while open {
        let mut middle = low + ((high - low) >> E::Key::new(1)) + E::Key::new(1);
        if step < VALUE_HALVINGS {
            let between = E::midpoint(low, high, search.largest);
            if between > low && between <= high {
                middle = between;
            }
        }
        step += 1;
        let count = row.count(middle);
        if count == k {
            low = middle;
            high = E::Key::max_value();
            above = 0u32.runtime();
            open = false.runtime();
        } else {
            if count > k {
                low = middle;
            } else {
                high = middle - E::Key::new(1);
                above = count;
            }
            open = low < high;
        }
    }

    Threshold::<E::Key> { low, high, above }
}

/// The range that the paper's algorithms halve: the finite elements, or zero when there are none.
#[cube]
fn finite_or_zero<E: Element, R: Row<E>>(row: &R, #[comptime] search: Search) -> KeyRange<E::Key> {
    let finite = row.finite_range();
    let zero = ordered_zero::<E>(search.largest);
    let none = finite.low > finite.high;
    KeyRange::<E::Key> {
        low: select(none, zero, finite.low),
        high: select(none, zero, finite.high),
    }
}

/// Whether a key counts for [`Row::finite_range`].
#[cube]
pub fn counts_as_finite<E: Element>(key: E::Key, #[comptime] search: Search) -> bool {
    ordered_is_finite::<E>(key, search.largest)
}

/// How many elements before the present one are above the threshold and level with it.
#[derive(CubeType, Clone, Copy)]
pub struct Cursor {
    pub above: u32,
    pub level: u32,
}

/// Whether an element is taken, and its place among the members in index order.
#[derive(CubeType, Clone, Copy)]
pub struct Placement {
    pub member: bool,
    pub position: u32,
}

#[cube]
impl Cursor {
    /// Judges the next element in index order and moves past it.
    pub fn place<K: Int>(&mut self, key: K, threshold: &Threshold<K>, quota: u32) -> Placement {
        let above = key > threshold.high;
        let level = key >= threshold.low && !above;
        let placement = Placement {
            member: above || (level && self.level < quota),
            position: self.above + min(self.level, quota),
        };
        self.above += select(above, 1u32, 0u32);
        self.level += select(level, 1u32, 0u32);
        placement
    }
}
