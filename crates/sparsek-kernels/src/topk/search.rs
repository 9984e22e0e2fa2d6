//! The threshold search: which keys of a row are taken. Shared by every routine.
#![allow(
    clippy::collapsible_if,
    reason = "outer conditions are decided when the kernel is compiled"
)]

use cubecl::prelude::*;

use super::element::{Element, ordered_is_finite, ordered_within, ordered_zero};
use super::options::{MethodKind, Search};

/// Steps in which the exact search guesses by interpolation before it halves the range of keys. On
/// smooth data interpolation takes four to five steps (simulated on 256 normal values, k = 32: 3.4 and
/// the last member picked in 4 rows of 9, against 8.3 halvings of the values); halving keys takes at
/// most 32 (64) on any.
pub(crate) const GUESSES: u32 = 8;

/// The least and the greatest of a set of keys.
#[derive(CubeType, Clone, Copy)]
pub struct KeyRange<K: Int> {
    pub low: K,
    pub high: K,
}

/// Where the search for the kth key begins.
#[derive(CubeType, Clone, Copy)]
pub struct Bracket<K: Int> {
    pub low: K,
    pub high: K,
    /// About how many keys are at or above `low`; only the speed depends on it.
    pub expected: f32,
}

/// What is taken from a row: every key above `high` (`above` of them, fewer than k), then the first
/// `k - above` in index order with `low <= key <= high`.
#[derive(CubeType, Clone, Copy)]
pub struct Threshold<K: Int> {
    pub low: K,
    pub high: K,
    pub above: u32,
    /// Exactly k keys are at or above `low`, and none is above `high`.
    pub complete: bool,
}

/// One row as the search sees it. A routine implements it over registers or memory; the results
/// must be the same in every unit that works on the row.
#[cube]
pub trait Row<E: Element>: CubeType {
    /// Keys between which the kth greatest lies: at least `k` keys are at or above `low`, none is
    /// above `high`.
    fn bracket(&self, k: u32) -> Bracket<E::Key>;
    /// Least and greatest key among the finite elements; `low > high` when there are none.
    fn finite_range(&self) -> KeyRange<E::Key>;
    /// How many keys are at least `key`, which is above the row's least.
    fn count(&self, key: E::Key) -> u32;
    /// The greatest key that is at most `key`.
    fn greatest(&self, key: E::Key) -> E::Key;
    /// The condition, which is the same in every unit of the row, in a form from which a compiler can
    /// see that.
    fn agreed(&self, condition: bool) -> bool;
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
    let start = if comptime!(search.method == MethodKind::Exact) {
        row.bracket(k)
    } else {
        Bracket::<E::Key> {
            low: E::Key::min_value(),
            high: E::Key::max_value(),
            expected: f32::cast_from(2 * k),
        }
    };
    let mut low = start.low;
    let mut high = start.high;
    let mut above = 0u32;
    let mut open = row.agreed(low < high);

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
                    running = row.agreed(
                        middle > lower
                            && middle < upper
                            && !ordered_within::<E>(
                                lower,
                                upper,
                                finite.low,
                                finite.high,
                                params.eps,
                                search.largest,
                            ),
                    );
                }
            }
        }

        if row.agreed(reached == 0) {
            reached = row.count(lower);
        }
        if row.agreed(reached >= k) {
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
            open = row.agreed(low < high);
        }
    }

    let target = rough_root(f32::cast_from(k));
    let mut low_root = rough_root(start.expected);
    let mut high_root = rough_root(select(above == 0, 0.5, f32::cast_from(above)));
    let mut step = 0u32;
    let mut hit = false;
    let mut guessing = row.agreed(open && above + 1 < k);
    while guessing {
        let ratio = (low_root - target) * rough_inverse(low_root - high_root);
        let guess = E::interpolate(low, high, max(min(ratio, 0.95), 0.05), search.largest);
        let middle = max(min(guess, high), low + E::Key::new(1));
        let count = row.count(middle);
        let root = rough_root(f32::cast_from(count));
        let enough = count >= k;
        low = select(enough, middle, low);
        low_root = select(enough, root, low_root);
        high = select(enough, high, middle - E::Key::new(1));
        high_root = select(enough, high_root, root);
        above = select(enough, above, count);
        hit = count == k;
        step += 1;
        guessing = row.agreed(!hit && above + 1 != k && low < high && step < GUESSES);
    }

    if row.agreed(open && !hit && above + 1 == k) {
        // All but one are found: the last is the greatest of the others.
        low = row.greatest(high);
        high = low;
        hit = row.count(low) == k;
    }

    let mut halving = row.agreed(open && !hit && low < high);
    while halving {
        let middle = low + ((high - low) >> E::Key::new(1)) + E::Key::new(1);
        let count = row.count(middle);
        let enough = count >= k;
        low = select(enough, middle, low);
        high = select(enough, high, middle - E::Key::new(1));
        above = select(enough, above, count);
        hit = count == k;
        halving = row.agreed(!hit && low < high);
    }
    if hit {
        high = E::Key::max_value();
        above = 0u32.runtime();
    }

    Threshold::<E::Key> {
        low,
        high,
        above,
        complete: hit,
    }
}

/// About the square root of a number: counts interpolate well in it. Rough, but monotone and the same
/// everywhere.
#[cube]
fn rough_root(x: f32) -> f32 {
    f32::reinterpret((u32::reinterpret(x) >> 1) + 0x1fbd_1df5)
}

/// About the inverse of a positive number, without a division.
#[cube]
fn rough_inverse(x: f32) -> f32 {
    let guess = f32::reinterpret(0x7ef3_11c3u32 - u32::reinterpret(x));
    guess * (2.0 - x * guess)
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
