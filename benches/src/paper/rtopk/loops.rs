//! The paper's loops where ours deviates. They show which deviation changes a figure.

use std::cmp::Ordering;

/// Algorithm 1 as printed: the midpoint at which it exits, from 1. It tests thres - min, with eps
/// relative to max (R7, R8 of docs/papers.md).
pub fn printed_exit(row: &[f32], k: usize, eps: f32) -> u32 {
    let (mut min, mut max) = extremes(row);
    let width = eps * max;
    let mut threshold = max;
    let mut midpoints = 0;
    while threshold - min > width {
        match count(row, threshold).cmp(&k) {
            Ordering::Less => max = threshold,
            Ordering::Greater => min = threshold,
            Ordering::Equal => break,
        }
        let next = (min + max) / 2.0;
        // The printed loop never exits here (R9).
        if next == threshold {
            break;
        }
        threshold = next;
        midpoints += 1;
    }
    midpoints
}

/// Algorithm 2 with the `break` of Algorithm 1: it exits when the count is k, but still takes the
/// first k elements that reach min, not the threshold.
pub fn early_stop_with_break(row: &[f32], k: usize, max_iter: u32) -> Vec<usize> {
    let (mut min, mut max) = extremes(row);
    for _ in 0..max_iter {
        let threshold = (min + max) / 2.0;
        match count(row, threshold).cmp(&k) {
            Ordering::Less => max = threshold,
            Ordering::Greater => min = threshold,
            Ordering::Equal => break,
        }
    }
    (0..row.len()).filter(|&i| row[i] >= min).take(k).collect()
}

fn extremes(row: &[f32]) -> (f32, f32) {
    let min = row.iter().copied().fold(f32::INFINITY, f32::min);
    let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    (min, max)
}

fn count(row: &[f32], threshold: f32) -> usize {
    row.iter().filter(|&&x| x >= threshold).count()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Thresholds 8, 4, 6: two elements reach the last.
    const ROW: [f32; 6] = [5.0, 0.0, 4.0, 6.0, 8.0, 1.0];

    // With eps = 0.5, 4 - 0 is not above eps * 8 = 4.
    #[rstest]
    #[case(1, 0.0, 0)]
    #[case(2, 0.0, 2)]
    #[case::eps(2, 0.5, 1)]
    fn the_printed_loop_counts_midpoints(
        #[case] k: usize,
        #[case] eps: f32,
        #[case] expected: u32,
    ) {
        assert_eq!(printed_exit(&ROW, k, eps), expected);
    }

    #[test]
    fn the_printed_loop_goes_on_between_equal_elements() {
        assert!(printed_exit(&[2.0, 1.0, 1.0, 0.0], 2, 0.0) > 20);
    }

    #[test]
    fn a_break_leaves_the_lower_bound_behind() {
        assert_eq!(early_stop_with_break(&ROW, 2, 8), [0, 2]);
    }
}
