use std::sync::Arc;

use burn::tensor::{Int, Tensor, TensorData, read_sync};

use super::{
    error::DistanceError,
    neighbors::without_self,
    pairwise::check,
    types::{NearestNeighbors, Samples},
};
use crate::{
    sparse::Csr,
    topk::{TopkOptions, topk_ragged},
};

/// Allowed index rows, for all or each query.
///
/// As in cuVS, row `j` for query `i` of n rows is bit `i n + j` of 32-bit words, least significant
/// first.
///
/// ```
/// use sparsek::distance::Prefilter;
///
/// // Query 0 may find rows 0 and 2, query 1 row 1.
/// let filter = Prefilter::per_query([2, 3], |query, row| (query + row) % 2 == 0);
/// assert_eq!(filter, Prefilter::from_bitmap([2, 3], vec![0b010_101]));
/// assert!(filter.allows(0, 2) && !filter.allows(1, 2));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefilter {
    /// `None`: for all queries.
    queries: Option<usize>,
    rows: usize,
    words: Vec<u32>,
}

impl Prefilter {
    /// Allows the same rows for all queries.
    pub fn shared(allowed: &[bool]) -> Self {
        let bits = pack(allowed.len(), |row| allowed[row]);
        Self { queries: None, rows: allowed.len(), words: bits }
    }

    /// Allows rows where `allowed(query, row)`.
    pub fn per_query([queries, rows]: [usize; 2], allowed: impl Fn(usize, usize) -> bool) -> Self {
        let bits = pack(queries * rows, |bit| allowed(bit / rows, bit % rows));
        Self { queries: Some(queries), rows, words: bits }
    }

    /// Takes a bitset; ignores excess bits. Panics if words are missing.
    pub fn from_bitset(rows: usize, words: Vec<u32>) -> Self {
        check_words("from_bitset", rows, &words);
        Self { queries: None, rows, words }
    }

    /// Takes a bitmap, likewise.
    pub fn from_bitmap([queries, rows]: [usize; 2], words: Vec<u32>) -> Self {
        check_words("from_bitmap", queries * rows, &words);
        Self { queries: Some(queries), rows, words }
    }

    /// Whether a row is allowed; panics out of bounds.
    pub fn allows(&self, query: usize, row: usize) -> bool {
        assert!(row < self.rows, "allows: row {row} of {}", self.rows);
        let bit = row + self.queries.map_or(0, |_| query * self.rows);
        self.words[bit / 32] >> (bit % 32) & 1 == 1
    }

    fn of(&self, query: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.rows).filter(move |&row| self.allows(query, row))
    }
}

fn pack(bits: usize, is_set: impl Fn(usize) -> bool) -> Vec<u32> {
    let word = |at: usize| {
        let bits = at * 32..bits.min(at * 32 + 32);
        bits.rev().fold(0, |word, bit| word << 1 | u32::from(is_set(bit)))
    };
    (0..bits.div_ceil(32)).map(word).collect()
}

fn check_words(operation: &str, bits: usize, words: &[u32]) {
    let (found, needed) = (words.len(), bits.div_ceil(32));
    assert!(found >= needed, "{operation}: {found} words, but {bits} bits need {needed}");
}

impl<S: Samples> NearestNeighbors<S> {
    /// [`kneighbors`](NearestNeighbors::kneighbors) among allowed rows: cuVS's prefilter.
    ///
    /// Errors as there, for another size, or fewer than `k` allowed rows.
    ///
    /// # Cost
    ///
    /// Shared: a search of copied rows. Per query:
    /// [`pairwise_distances`](super::pairwise_distances) in batches, gathering ≤
    /// [`MAX_COLS`](crate::topk::MAX_COLS) allowed rows.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor, TensorData};
    /// use sparsek::{
    ///     distance::{Metric, NearestNeighbors, Prefilter},
    ///     sparse::Csr,
    /// };
    ///
    /// let x = Tensor::<2>::from_data([[1.0, 0.0], [0.0, 4.0], [2.0, 0.0]], &Device::flex());
    /// let index = NearestNeighbors::fit(Csr::from_dense(x).unwrap(), Metric::Manhattan);
    /// let filter = Prefilter::shared(&[true, true, false]);
    /// let (_, indices) = index.kneighbors_filtered(None, 1, &filter).unwrap();
    /// indices.into_data().assert_eq(&TensorData::from([[1], [0], [0]]), false);
    /// ```
    pub fn kneighbors_filtered(
        &self,
        query: Option<&S>,
        k: usize,
        filter: &Prefilter,
    ) -> Result<(Tensor<2>, Tensor<2, Int>), DistanceError> {
        let exclude_self = query.is_none();
        let query = query.unwrap_or(&self.index);
        check(query, &self.index)?;
        self.measure.check()?;
        for (what, found, expected) in [
            ("index rows", filter.rows, self.index.rows()),
            ("queries", filter.queries.unwrap_or(query.rows()), query.rows()),
        ] {
            if found != expected {
                return Err(DistanceError::Filter { what, found, expected });
            }
        }
        if k == 0 {
            return self.kneighbors(Some(query), 0);
        }
        if filter.queries.is_none() && self.index.is_direct(query, &self.measure) {
            return self.among_shared(query, k, filter, exclude_self);
        }
        let search = read_sync(self.to_sparse())?;
        let query = read_sync(query.to_csr())?;
        match filter.queries {
            None => search.among_shared(&query, k, filter, exclude_self),
            Some(_) => search.among_own(&query, k, filter, exclude_self),
        }
    }

    fn among_shared(
        &self,
        query: &S,
        k: usize,
        filter: &Prefilter,
        exclude_self: bool,
    ) -> Result<(Tensor<2>, Tensor<2, Int>), DistanceError> {
        let rows: Vec<usize> = filter.of(0).collect();
        // Excluding itself leaves one fewer.
        let fewest = rows.len().saturating_sub(usize::from(exclude_self));
        if k > fewest {
            let itself = rows.first().filter(|_| exclude_self);
            let query = itself.copied().unwrap_or(0);
            return Err(DistanceError::Allowed { k, query, allowed: fewest });
        }
        if query.rows() == 0 {
            return self.kneighbors(Some(query), k);
        }
        let part = Self {
            index: self.index.select_rows(&rows),
            // Keeps the whole index's routine.
            measure: self.index.measure_of_parts(self.measure),
            prepared: Arc::default(),
            ..self.clone()
        };
        let requested = k + usize::from(exclude_self);
        let (values, indices) = part.kneighbors(Some(query), requested)?;
        let numbers: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
        let numbers = TensorData::new(numbers, [rows.len()]);
        let numbers = Tensor::<1, Int>::from_data(numbers, &indices.device());
        let shape = indices.dims();
        let places = indices.reshape([shape[0] * shape[1]]);
        let indices = numbers.select(0, places).reshape(shape);
        Ok(match exclude_self {
            true => without_self(values, indices, 0),
            false => (values, indices),
        })
    }
}

impl NearestNeighbors {
    fn among_own(
        &self,
        query: &Csr,
        k: usize,
        filter: &Prefilter,
        exclude_self: bool,
    ) -> Result<(Tensor<2>, Tensor<2, Int>), DistanceError> {
        let allowed = |query: usize| -> Vec<i64> {
            let rows = filter.of(query).filter(|&row| !exclude_self || row != query);
            rows.map(|row| row as i64).collect()
        };
        let counts: Vec<usize> = (0..query.rows()).map(|query| allowed(query).len()).collect();
        if let Some(query) = counts.iter().position(|&count| count < k) {
            return Err(DistanceError::Allowed { k, query, allowed: counts[query] });
        }
        if query.rows() == 0 {
            return self.kneighbors(Some(query), k);
        }
        let device = self.index.device();
        let options = TopkOptions::new(k)
            .with_largest(self.measure.distance.algebra().largest)
            .with_sorted(true);
        let step = self.batch(self.index.rows());
        let (mut values, mut indices) = (Vec::new(), Vec::new());
        for first in (0..query.rows()).step_by(step) {
            let part = first..query.rows().min(first + step);
            let distances = self.distances(&query.slice_rows(part.clone()))?;
            // Allowed rows first; others have no influence, even NaN.
            let lengths = &counts[part.clone()];
            let width = lengths.iter().copied().max().unwrap_or(0);
            let mut table = Vec::with_capacity(part.len() * width);
            for query in part.clone() {
                table.extend(allowed(query));
                table.resize((query + 1 - first) * width, 0);
            }
            let table = TensorData::new(table, [part.len(), width]);
            let table = Tensor::<2, Int>::from_data(table, &device);
            let lengths: Vec<i64> = lengths.iter().map(|&length| length as i64).collect();
            let lengths = TensorData::new(lengths, [part.len()]);
            let lengths = Tensor::<1, Int>::from_data(lengths, &device);
            let distances = distances.gather(1, table.clone());
            let (nearest, places) = topk_ragged(distances, lengths, &options, 1);
            values.push(nearest);
            indices.push(table.gather(1, places));
        }
        Ok((Tensor::cat(values, 0), Tensor::cat(indices, 0)))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    fn bits_lie_as_in_cuvs(#[values(1, 31, 32, 33, 70)] rows: usize) {
        let allowed = |query: usize, row: usize| (query * rows + row).is_multiple_of(3);
        let filter = Prefilter::per_query([5, rows], allowed);
        let mut words = vec![0; (5 * rows).div_ceil(32)];
        for bit in (0..5 * rows).step_by(3) {
            words[bit / 32] |= 1 << (bit % 32);
        }
        assert_eq!(filter, Prefilter::from_bitmap([5, rows], words));
        for (query, row) in (0..5).flat_map(|query| (0..rows).map(move |row| (query, row))) {
            assert_eq!(filter.allows(query, row), allowed(query, row));
        }
        let first: Vec<bool> = (0..rows).map(|row| allowed(0, row)).collect();
        let shared = Prefilter::shared(&first);
        assert_eq!(shared, Prefilter::from_bitset(rows, shared.words.clone()));
        assert!((0..rows).all(|row| shared.allows(3, row) == first[row]));
    }

    #[test]
    #[should_panic(expected = "1 words, but 33 bits need 2")]
    fn missing_words_are_refused() {
        Prefilter::from_bitset(33, vec![0]);
    }
}
