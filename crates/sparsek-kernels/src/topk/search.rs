//! The threshold search: which keys of a row are taken. Shared by every routine.
#![allow(
    clippy::collapsible_if,
    reason = "outer conditions are decided when the kernel is compiled"
)]

use cubecl::prelude::*;

use super::element::{Element, ordered_is_finite, ordered_within, ordered_zero};
use super::options::{MethodKind, Search};

/// Steps in which the exact search guesses by interpolation only; then guesses, halvings of the range of
/// keys and steps to the next key present take turns. Interpolation takes three to five steps on smooth
/// data; halvings bound the search on any, steps to the next key end it where many are equal.
pub(crate) const GUESSES: u32 = 5;

/// Most passes over a row that the exact search takes for keys of so many bits.
pub(crate) fn exact_passes(bits: usize) -> usize {
    // One step in three halves the range, one makes two passes; the bracket is a pass.
    GUESSES as usize + 4 * (bits + 1) + 1
}

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
    /// How many keys are at least `key`. Routines may also count padding at the least key of all.
    fn count(&self, key: E::Key) -> u32;
    /// The greatest key that is at most `key`.
    fn greatest(&self, key: E::Key) -> E::Key;
    /// Whether the condition, which is the same in every unit of a row, holds for this row or one that
    /// is searched in step with it, in a form from which a compiler can see that it is the same for all.
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
    if comptime!(search.method == MethodKind::Exact) {
        let start = row.bracket(params.k);
        find_exact::<E, R>(row, params.k, &start, 0u32, start.low < start.high, search)
    } else {
        let found = find_finite::<E, R>(row, params, search);
        let mut threshold = Threshold::<E::Key> {
            low: found.low,
            high: found.high,
            above: found.above,
        };
        let lacking = found.reached < params.k;
        if row.agreed(lacking) {
            // Fewer than k elements are finite or better: the others are chosen exactly.
            let rest = Bracket::<E::Key> {
                low: E::Key::min_value(),
                high: select(lacking, found.low - E::Key::new(1), E::Key::min_value()),
                expected: f32::cast_from(2 * params.k),
            };
            let open = lacking && rest.high > rest.low;
            let exact = find_exact::<E, R>(row, params.k, &rest, found.reached, open, search);
            threshold.low = select(lacking, exact.low, found.low);
            threshold.high = select(lacking, exact.high, found.high);
            threshold.above = select(lacking, exact.above, found.above);
        }
        threshold
    }
}

/// Where the paper's algorithms end.
#[derive(CubeType, Clone, Copy)]
struct Found<K: Int> {
    low: K,
    high: K,
    above: u32,
    /// Keys at or above `low`.
    reached: u32,
}

/// The paper's algorithms: the finite range halved by values.
#[cube]
fn find_finite<E: Element, R: Row<E>>(
    row: &R,
    params: &SearchParams,
    #[comptime] search: Search,
) -> Found<E::Key> {
    let k = params.k;
    let finite = finite_or_zero::<E, R>(row, search);
    let mut lower = finite.low;
    let mut upper = finite.high;
    // Keys at or above `lower`; 0 until it has been counted.
    let mut reached = 0u32;
    // Keys at or above `upper`, once a count fell below k there.
    let mut upper_count = 0u32;
    let mut capped = false;

    if comptime!(search.method == MethodKind::EarlyStop) {
        for _ in 0..params.max_iter {
            let middle = E::midpoint(lower, upper, search.largest);
            let count = row.count(middle);
            let enough = count >= k;
            upper = select(enough, upper, middle);
            lower = select(enough, middle, lower);
            reached = select(enough, count, reached);
        }
    } else {
        let mut middle = upper;
        // The row's own search goes on; others of the plane may.
        let mut open = true.runtime();
        let mut running = row.agreed(open);
        while running {
            let count = row.count(middle);
            let enough = open && count >= k;
            let fewer = open && count < k;
            upper = select(fewer, middle, upper);
            upper_count = select(fewer, count, upper_count);
            capped = capped || fewer;
            lower = select(enough, middle, lower);
            reached = select(enough, count, reached);
            let hit = enough && count == k;
            capped = capped && !hit;
            middle = E::midpoint(lower, upper, search.largest);
            let close = ordered_within::<E>(
                lower,
                upper,
                finite.low,
                finite.high,
                params.eps,
                search.largest,
            );
            open = open && !hit && middle > lower && middle < upper && !close;
            running = row.agreed(open);
        }
    }

    if row.agreed(reached == 0) {
        let count = row.count(lower);
        reached = select(reached == 0, count, reached);
    }
    let split = capped && reached >= k;
    Found::<E::Key> {
        low: lower,
        high: select(split, upper - E::Key::new(1), E::Key::max_value()),
        above: select(split, upper_count, 0u32),
        reached,
    }
}

/// The kth key of a row, between the ends of a bracket above which `above_start < k` keys lie; it is
/// looked for where `open_start`, which needs `low < high`.
#[cube]
fn find_exact<E: Element, R: Row<E>>(
    row: &R,
    k: u32,
    start: &Bracket<E::Key>,
    above_start: u32,
    open_start: bool,
    #[comptime] search: Search,
) -> Threshold<E::Key> {
    let mut low = start.low;
    let mut high = start.high;
    let mut above = above_start;
    let mut open = open_start;
    let mut hit = false;
    let target = rough_root(f32::cast_from(k));
    let mut low_root = rough_root(start.expected);
    let mut high_root = rough_root(select(above == 0, 0.5, f32::cast_from(above)));
    let mut step = 0u32;
    let mut running = row.agreed(open);
    while running {
        // The greatest key that is left is tried where it is the last one wanted, and now and then
        // elsewhere: equal keys end the search so.
        let turn = (step + 1) % 3;
        let late = step >= GUESSES;
        let snap = open && (above + 1 == k || (late && turn == 0));
        if row.agreed(snap) {
            let greatest = row.greatest(high);
            high = select(snap, greatest, high);
        }
        let ratio = (low_root - target) * rough_inverse(low_root - high_root);
        let guess = E::interpolate(low, high, max(min(ratio, 0.95), 0.05), search.largest);
        let guess = max(min(guess, high), low + E::Key::new(1));
        let half = low + ((high - low) >> E::Key::new(1)) + E::Key::new(1);
        let middle = select(late && turn == 1, half, guess);
        let middle = select(snap, high, middle);
        // A snapped end may be the low end itself.
        let count = row.count(middle);
        let root = rough_root(max(f32::cast_from(count), 0.25));
        let enough = open && count >= k;
        let fewer = open && count < k;
        low = select(enough, middle, low);
        low_root = select(enough, root, low_root);
        high = select(fewer, middle - E::Key::new(1), high);
        high_root = select(fewer, root, high_root);
        above = select(fewer, count, above);
        hit = hit || (enough && count == k);
        open = open && !hit && low < high;
        step += 1;
        running = row.agreed(open);
    }

    Threshold::<E::Key> {
        low,
        high: select(hit, E::Key::max_value(), high),
        above: select(hit, 0u32, above),
    }
}

/// About the square root of a number: counts interpolate well in it. Rough, but monotone and the same
/// everywhere.
#[cube]
pub fn rough_root(x: f32) -> f32 {
    f32::reinterpret((u32::reinterpret(x) >> 1) + 0x1fbd_1df5)
}

/// About the inverse of a positive number, without a division.
#[cube]
pub fn rough_inverse(x: f32) -> f32 {
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
