//! Thresholds found by counting, several values at once.

use multiversion::multiversion;

/// Counts of a row before it is left to the standard library's selection.
const COUNTS: u32 = 16;
/// Of these one in so many halves the range: counts may be far from even in it.
const HALVING: u32 = 4;
/// Halvings that tell nothing new, with more than so many values in between, before equal ones are suspected.
const STUCK: u32 = 4;
const CLOSE: usize = 8;
/// How far one row moves what is known of the distance of values.
const WEIGHT: f64 = 0.25;
/// Values that are looked at together when members are taken.
const CHUNK: usize = u32::BITS as usize;

/// What compares as it is: keys, and floats that are not NaN.
pub(super) trait Ordered: Copy + PartialOrd {
    const LEAST: Self;
    const GREATEST: Self;
    /// About how far it is from a lower one.
    fn above(self, low: Self) -> f64;
    /// What lies about so far away, the least or the greatest where nothing does.
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
                // Casts of floats saturate.
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

/// Where the last row's threshold was found: a guess for the next one's. Members do not depend on it.
#[derive(Clone, Copy)]
pub(super) struct Guess<T> {
    pub value: T,
    /// Distance of values there.
    pub spacing: f64,
}

/// A value that exactly `k` of the row reach, if counts find one soon.
pub(super) fn counted<T: Ordered>(row: &[T], k: usize, guess: &mut Option<Guess<T>>) -> Option<T> {
    let (mut low, mut low_count, mut low_seen) = (T::LEAST, row.len(), false);
    let (mut high, mut high_count, mut high_seen) = (T::GREATEST, 0, false);
    let start = guess.unwrap_or_else(|| {
        (low, high) = ends(row);
        (low_seen, high_seen) = (true, true);
        let range = high.above(low);
        Guess {
            value: low.moved(0.5 * range),
            spacing: range / row.len() as f64,
        }
    });
    let fresh = guess.is_none();
    let mut spacing = start.spacing;
    let mut value = start.value;
    let mut first_count = k;
    let (mut stuck, mut halved) = (0, false);
    for step in 1..=COUNTS {
        let count = count_reaching(row, value);
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
                spacing += WEIGHT * (way / first_count.abs_diff(k) as f64 - spacing);
            }
            *guess = (spacing > 0.0).then_some(Guess { value, spacing });
            return Some(value);
        }
        let known = count == low_count || count == high_count;
        let far = known && low_count - high_count > CLOSE;
        stuck += u32::from(far && halved);
        if stuck == STUCK {
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
        // Between closer ends the distance would seem less than it is: values ended up there.
        if fresh && low_count - high_count > CLOSE {
            spacing = high.above(low) / (low_count - high_count) as f64;
        }
        halved = false;
        let target = if !low_seen || !high_seen {
            value.moved((count as f64 - k as f64) * start.spacing)
        } else if far || step % HALVING == 0 {
            halved = true;
            low.moved(0.5 * high.above(low))
        } else {
            let share = (low_count - k) as f64 / (low_count - high_count) as f64;
            low.moved(share * high.above(low))
        };
        let inside = if target >= high {
            high.previous()
        } else {
            target
        };
        value = if inside > low { inside } else { low.next() };
    }
    *guess = None;
    None
}

/// Least and greatest of a row.
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

// Loops, not closures: what is compiled for wider vectors is not put into the iterators of `core`.

/// How many of a row are at least `least`.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+popcnt"))]
pub(super) fn count_reaching<T: Ordered>(row: &[T], least: T) -> usize {
    let mut total = 0;
    for values in row.chunks(1 << 16) {
        // Sums of 32 bits keep up with the comparisons of as many values at once.
        let mut sum = 0u32;
        for value in values {
            sum += u32::from(*value >= least);
        }
        total += sum as usize;
    }
    total
}

/// Columns of those that are at least `least`, which `columns` has room for.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+popcnt"))]
pub(super) fn take_reaching<T: Ordered>(row: &[T], least: T, columns: &mut [usize]) {
    let (chunks, rest) = row.as_chunks::<CHUNK>();
    let mut taken = 0;
    for (chunk, values) in chunks.iter().enumerate() {
        // A bit each, all by the same few wide instructions.
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

/// Whether a row has no NaN.
pub(super) fn all_ordered<T: Ordered>(row: &[T]) -> bool {
    // NaN compares with nothing.
    count_reaching(row, T::LEAST) == row.len()
}
