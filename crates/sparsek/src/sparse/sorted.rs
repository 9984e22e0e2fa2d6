use burn::tensor::Tensor;

use super::{
    adjacency::Adjacency,
    error::CsrError,
    pattern::{Pattern, check_size},
    spmm::spmm,
    tensor::gather,
};

#[derive(Debug)]
pub(super) struct Sorted {
    pub pattern: Pattern,
    /// In pattern order.
    sources: Vec<u32>,
    /// First source per entry, and the end; `None` without repeats.
    starts: Option<Vec<u32>>,
}

impl Sorted {
    pub fn from_coo(shape: [usize; 2], rows: &[u32], cols: &[u32]) -> Result<Self, CsrError> {
        check_size("rows", shape[0])?;
        check_size("columns", shape[1])?;
        check_size("entries", rows.len())?;
        let mut indptr = vec![0u32; shape[0] + 1];
        for (entry, &row) in rows.iter().enumerate() {
            let count = indptr[1..].get_mut(row as usize);
            *count.ok_or(CsrError::Row { entry, row, rows: shape[0] })? += 1;
        }
        for row in 0..shape[0] {
            indptr[row + 1] += indptr[row];
        }
        let mut next = indptr.clone();
        let mut sources = vec![0u32; rows.len()];
        for (entry, &row) in rows.iter().enumerate() {
            let slot = &mut next[row as usize];
            sources[*slot as usize] = entry as u32;
            *slot += 1;
        }
        Self::sort(shape, &indptr, sources, cols)
    }

    pub fn from_pattern(pattern: &Pattern) -> Self {
        let sources = (0..pattern.nnz() as u32).collect();
        let shape = [pattern.rows(), pattern.cols()];
        Self::sort(shape, pattern.indptr(), sources, pattern.indices()).expect("checked")
    }

    fn sort(
        [rows, cols]: [usize; 2],
        indptr: &[u32],
        mut sources: Vec<u32>,
        columns: &[u32],
    ) -> Result<Self, CsrError> {
        let column = |&source: &u32| columns[source as usize];
        let (mut starts, mut indices, mut offsets) = (Vec::new(), Vec::new(), vec![0]);
        for row in indptr.windows(2) {
            let entries = &mut sources[row[0] as usize..row[1] as usize];
            if !entries.is_sorted_by_key(column) {
                entries.sort_by_key(column);
            }
            let first = indices.len();
            for (at, source) in (row[0]..).zip(entries.iter()) {
                let column = column(source);
                if indices.len() == first || indices.last() != Some(&column) {
                    starts.push(at);
                    indices.push(column);
                }
            }
            offsets.push(indices.len() as u32);
        }
        starts.push(sources.len() as u32);
        let several = indices.len() < sources.len();
        Ok(Self {
            pattern: Pattern::new(rows, cols, offsets, indices)?,
            sources,
            starts: several.then_some(starts),
        })
    }

    /// Sums repeated values in the given order.
    pub fn collect(&self, values: Tensor<1>) -> Tensor<1> {
        let Some(starts) = &self.starts else {
            let in_order = self.sources.is_sorted();
            return if in_order { values } else { gather(values, &self.sources) };
        };
        let (entries, given) = (self.pattern.nnz(), self.sources.len());
        let sums = Pattern::new(entries, given, starts.clone(), self.sources.clone());
        let sums = Adjacency::new(&sums.expect("every source is counted"), &values.device());
        spmm(&sums, values.reshape([given, 1])).reshape([entries])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_one_place_keep_their_order() {
        let sorted = Sorted::from_coo([3, 4], &[2, 0, 2, 2, 0], &[3, 1, 0, 3, 2]).unwrap();
        assert_eq!(sorted.pattern.indptr(), [0, 2, 2, 4]);
        assert_eq!(sorted.pattern.indices(), [1, 2, 0, 3]);
        assert_eq!(sorted.sources, [1, 4, 2, 0, 3]);
        assert_eq!(sorted.starts, Some(vec![0, 1, 2, 3, 5]));
    }

    #[test]
    fn equal_columns_of_neighboring_rows_stay_apart() {
        let pattern = Pattern::new(3, 2, vec![0, 2, 2, 3], vec![1, 0, 1]).unwrap();
        let sorted = Sorted::from_pattern(&pattern);
        assert_eq!(sorted.pattern.indices(), [0, 1, 1]);
        assert_eq!(sorted.sources, [1, 0, 2]);
        assert_eq!(sorted.starts, None);
    }

    #[test]
    fn rows_are_refused_before_anything_is_allocated() {
        let limit = crate::sparse::pattern::MAX_ENTRIES;
        let error = Sorted::from_coo([limit + 1, 1], &[], &[]).unwrap_err();
        assert!(error.to_string().contains(&limit.to_string()), "{error}");
    }
}
