//! Threshold search on keys, for every method.
//!
//! ```text
//! exact:      [low, high] <- bracket of the kth key
//!             repeat: interpolate in the square root of the counts,
//!                     in turns with halving and snapping high to the next key present
//!             until count(low) = k or low = high
//! precision:  halve the finite range by value until count = k or it is within eps
//! early stop: halve it max_iter times
//! ```
//!
//! Precision and early stop fill rows with too few finite elements exactly. Smooth data takes three
//! to five counts; halving bounds them, snapping ends ties.

#![allow(
    clippy::collapsible_if,
    reason = "outer conditions are decided when the kernel is compiled"
)]

use cubecl::prelude::*;

use crate::{
    primitives::approx::{approx_inverse, approx_sqrt},
    topk::{
        key::{Element, ordered_within, ordered_zero},
        options::{MethodKind, SearchConfig},
        tuning::INTERPOLATIONS,
    },
};

pub(crate) fn exact_passes(bits: usize) -> usize {
    // The bracket is a pass; a step in three halves, one takes two passes.
    INTERPOLATIONS as usize + 4 * (bits + 1) + 1
}

#[derive(CubeType, Clone, Copy)]
pub struct KeyRange<K: Int> {
    pub low: K,
    pub high: K,
}

#[derive(CubeType, Clone, Copy)]
pub struct KeyBracket<K: Int> {
    pub low: K,
    pub high: K,
    /// For speed only.
    pub expected: f32,
}

/// Selects `above < k` keys above `high`, then the first others with `low <= key <= high`.
#[derive(CubeType, Clone, Copy)]
pub struct Threshold<K: Int> {
    pub low: K,
    pub high: K,
    pub above: u32,
}

/// All units of a row must agree.
#[cube]
pub trait SearchRow<E: Element>: CubeType {
    /// At least `k` keys reach `low`, none exceeds `high`.
    fn bracket(&self, k: u32) -> KeyBracket<E::Key>;
    /// `low > high` if none is finite.
    fn finite_range(&self) -> KeyRange<E::Key>;
    /// May include padding for the least.
    fn count(&self, key: E::Key) -> u32;
    fn greatest(&self, key: E::Key) -> E::Key;
    /// True for any row searched in step, visibly uniform.
    fn agreed(&self, condition: bool) -> bool;
}

#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub struct SearchParams {
    pub k: u32,
    pub max_iter: u32,
    pub eps: f32,
}

/// Needs `params.k > 0` elements.
#[cube]
pub fn find_threshold<E: Element, R: SearchRow<E>>(
    row: &R,
    params: &SearchParams,
    #[comptime] search: SearchConfig,
) -> Threshold<E::Key> {
    if comptime!(search.method == MethodKind::Exact) {
        let start = row.bracket(params.k);
        find_exact::<E, R>(row, params.k, &start, 0u32, start.low < start.high, search)
    } else {
        let found = find_finite::<E, R>(row, params, search);
        let mut threshold =
            Threshold::<E::Key> { low: found.low, high: found.high, above: found.above };
        let lacking = found.reached < params.k;
        if row.agreed(lacking) {
            let rest = KeyBracket::<E::Key> {
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

#[derive(CubeType, Clone, Copy)]
struct Found<K: Int> {
    low: K,
    high: K,
    above: u32,
    reached: u32,
}

#[cube]
fn find_finite<E: Element, R: SearchRow<E>>(
    row: &R,
    params: &SearchParams,
    #[comptime] search: SearchConfig,
) -> Found<E::Key> {
    let k = params.k;
    let finite = finite_or_zero::<E, R>(row, search);
    let mut lower = finite.low;
    let mut upper = finite.high;
    let mut reached = 0u32;
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

/// `above_start < k` keys exceed the bracket.
#[cube]
fn find_exact<E: Element, R: SearchRow<E>>(
    row: &R,
    k: u32,
    start: &KeyBracket<E::Key>,
    above_start: u32,
    open_start: bool,
    #[comptime] search: SearchConfig,
) -> Threshold<E::Key> {
    let mut low = start.low;
    let mut high = start.high;
    let mut above = above_start;
    let mut open = open_start;
    let mut hit = false;
    let target = approx_sqrt(f32::cast_from(k));
    let mut low_root = approx_sqrt(start.expected);
    let mut high_root = approx_sqrt(select(above == 0, 0.5, f32::cast_from(above)));
    let mut step = 0u32;
    let mut running = row.agreed(open);
    while running {
        let turn = (step + 1) % 3;
        let late = step >= INTERPOLATIONS;
        let snap = open && (above + 1 == k || (late && turn == 0));
        if row.agreed(snap) {
            let greatest = row.greatest(high);
            high = select(snap, greatest, high);
        }
        let ratio = (low_root - target) * approx_inverse(low_root - high_root);
        let guess = E::interpolate(low, high, max(min(ratio, 0.95), 0.05), search.largest);
        let guess = max(min(guess, high), low + E::Key::new(1));
        let half = low + ((high - low) >> E::Key::new(1)) + E::Key::new(1);
        let middle = select(late && turn == 1, half, guess);
        let middle = select(snap, high, middle);
        let count = row.count(middle);
        let root = approx_sqrt(max(f32::cast_from(count), 0.25));
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

#[cube]
fn finite_or_zero<E: Element, R: SearchRow<E>>(
    row: &R,
    #[comptime] search: SearchConfig,
) -> KeyRange<E::Key> {
    let finite = row.finite_range();
    let zero = ordered_zero::<E>(search.largest);
    let none = finite.low > finite.high;
    KeyRange::<E::Key> {
        low: select(none, zero, finite.low),
        high: select(none, zero, finite.high),
    }
}

#[derive(CubeType, Clone, Copy)]
pub struct Cursor {
    pub above: u32,
    pub level: u32,
}

#[derive(CubeType, Clone, Copy)]
pub struct Placement {
    pub member: bool,
    pub position: u32,
}

#[cube]
impl Cursor {
    /// Both must fit 16 bits.
    pub fn packed(&self) -> u32 {
        self.above + (self.level << 16)
    }

    /// Moved by packed counts.
    pub fn after(&self, packed: u32) -> Cursor {
        Cursor { above: self.above + (packed & 0xffff), level: self.level + (packed >> 16) }
    }

    pub fn skip(&mut self, packed: u32) {
        self.above += packed & 0xffff;
        self.level += packed >> 16;
    }

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
