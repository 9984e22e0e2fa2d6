//! Comparisons of a device's results with those of Flex.

/// Largest |a − b| / max(1, |b|). Equal infinities and two NaN differ by 0, other non-finite pairs
/// by infinity, as do slices of different lengths.
pub fn difference(found: &[f32], expected: &[f32]) -> f32 {
    if found.len() != expected.len() {
        return f32::INFINITY;
    }
    let each =
        found.iter().zip(expected).map(|(&a, &b)| match a == b || (a.is_nan() && b.is_nan()) {
            true => 0.0,
            false if a.is_finite() && b.is_finite() => (a - b).abs() / b.abs().max(1.0),
            false => f32::INFINITY,
        });
    each.fold(0.0, f32::max)
}

/// Whether all bits are equal.
pub fn same_bits(found: &[f32], expected: &[f32]) -> bool {
    let bits = |x: &f32| x.to_bits();
    found.iter().map(bits).eq(expected.iter().map(bits))
}

/// Neighbors found by a device, and what Flex says about them.
#[derive(Clone, Copy, Debug)]
pub struct Neighbors<'a> {
    /// Distances found, `[rows, k]`.
    pub distances: &'a [f32],
    /// Neighbors found, `[rows, k]`.
    pub indices: &'a [u32],
    /// Flex's distances of the nearest, `[rows, k]`.
    pub expected: &'a [f32],
    /// Flex's distances of all rows to all rows, `[rows, rows]`.
    pub all: &'a [f32],
    /// Neighbors of each row.
    pub k: usize,
}

impl Neighbors<'_> {
    /// Largest difference: of the distances, and of what Flex measures to the neighbors found,
    /// which may be others where distances tie. Infinity if a neighbor repeats or is the row.
    pub fn difference(&self) -> f32 {
        let distances = difference(self.distances, self.expected);
        if self.k == 0 || self.indices.len() != self.expected.len() {
            return distances;
        }
        let rows = self.indices.len() / self.k;
        let mut measured = Vec::with_capacity(self.indices.len());
        for (row, found) in self.indices.chunks_exact(self.k).enumerate() {
            let mut sorted = found.to_vec();
            sorted.sort_unstable();
            let repeats = sorted.windows(2).any(|pair| pair[0] == pair[1]);
            let outside = sorted.last().is_some_and(|&last| last as usize >= rows);
            if repeats || outside || found.contains(&(row as u32)) {
                return f32::INFINITY;
            }
            measured.extend(found.iter().map(|&at| self.all[row * rows + at as usize]));
        }
        distances.max(difference(&measured, self.expected))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const ALL: [f32; 9] = [0.0, 1.0, 1.0, 1.0, 0.0, 2.0, 1.0, 2.0, 0.0];

    #[rstest]
    #[case(&[1.0, 200.0], &[1.0, 100.0], 1.0)]
    #[case(&[f32::NAN, f32::INFINITY], &[f32::NAN, f32::INFINITY], 0.0)]
    #[case(&[f32::NAN], &[1.0], f32::INFINITY)]
    #[case(&[1.0], &[], f32::INFINITY)]
    fn differences_are_relative(#[case] a: &[f32], #[case] b: &[f32], #[case] expected: f32) {
        assert_eq!(difference(a, b), expected);
    }

    #[rstest]
    #[case::equal(&[1, 0, 0], 0.0)]
    #[case::tied(&[2, 0, 0], 0.0)]
    #[case::farther(&[1, 2, 0], 1.0)]
    #[case::own(&[0, 0, 0], f32::INFINITY)]
    #[case::outside(&[3, 0, 0], f32::INFINITY)]
    fn neighbors_may_differ_where_they_tie(#[case] indices: &[u32], #[case] expected: f32) {
        let found = [1.0; 3];
        let neighbors = Neighbors { distances: &found, indices, expected: &found, all: &ALL, k: 1 };
        assert_eq!(neighbors.difference(), expected);
    }

    #[test]
    fn repeated_neighbors_are_wrong() {
        let expected = [1.0, 1.0, 1.0, 2.0, 1.0, 2.0];
        let mut neighbors = Neighbors {
            distances: &expected,
            indices: &[1, 2, 0, 2, 0, 1],
            expected: &expected,
            all: &ALL,
            k: 2,
        };
        assert_eq!(neighbors.difference(), 0.0);
        neighbors.indices = &[1, 1, 0, 2, 0, 1];
        assert_eq!(neighbors.difference(), f32::INFINITY);
    }
}
