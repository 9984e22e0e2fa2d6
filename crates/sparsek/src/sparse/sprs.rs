use std::ops::Deref;

use ::sprs::{CsMat, CsMatBase, SpIndex};
use burn::tensor::{Device, Element, TensorData};

use super::{
    csr::{Csr, CsrData, check_order},
    error::CsrError,
    pattern::{Pattern, check_size},
};

impl Csr {
    /// Uploads a CSR or CSC matrix or view, explicit zeros included.
    ///
    /// Errors: [`CsrError::Pattern`], [`CsrError::Dtype`]. CSC panics as [`Pattern::transpose`].
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use sparsek::sparse::Csr;
    /// use sprs::CsMat;
    ///
    /// // [. 5 .]
    /// // [6 . 7]
    /// let a = CsMat::new_csc((2, 3), vec![0, 1, 2, 3], vec![1, 0, 1], vec![6.0_f32, 5.0, 7.0]);
    /// let b = Csr::from_sprs(&a, &Device::flex()).unwrap();
    /// assert_eq!(b.pattern().indices(), [1, 0, 2]);
    /// assert_eq!(b.to_sprs::<f32>(), a.to_csr());
    /// ```
    pub fn from_sprs<N, I, Iptr, Offsets, Ids, Values>(
        matrix: &CsMatBase<N, I, Offsets, Ids, Values, Iptr>,
        device: &Device,
    ) -> Result<Self, CsrError>
    where
        N: Element,
        I: SpIndex,
        Iptr: SpIndex,
        Offsets: Deref<Target = [Iptr]>,
        Ids: Deref<Target = [I]>,
        Values: Deref<Target = [N]>,
    {
        Self::from_data(CsrData::try_from(matrix)?, device)
    }

    /// Reads the matrix back as CSR, rounded to `N`.
    pub fn to_sprs<N: Element>(&self) -> CsMat<N> {
        to_csmat(self.pattern(), &self.values().to_data())
    }
}

/// Takes any dtype. Errors and panics as [`Csr::from_sprs`].
impl<N, I, Iptr, Offsets, Ids, Values> TryFrom<&CsMatBase<N, I, Offsets, Ids, Values, Iptr>>
    for CsrData
where
    N: Element,
    I: SpIndex,
    Iptr: SpIndex,
    Offsets: Deref<Target = [Iptr]>,
    Ids: Deref<Target = [I]>,
    Values: Deref<Target = [N]>,
{
    type Error = CsrError;

    fn try_from(matrix: &CsMatBase<N, I, Offsets, Ids, Values, Iptr>) -> Result<Self, CsrError> {
        let (rows, cols) = matrix.shape();
        check_size("rows", rows)?;
        check_size("columns", cols)?;
        check_size("entries", matrix.nnz())?;
        let indptr = matrix.proper_indptr();
        let indptr = indptr.iter().map(|offset| offset.index() as u32).collect();
        let indices = matrix.indices().iter().map(|id| id.index() as u32).collect();
        let (pattern, values) = match matrix.is_csr() {
            true => (Pattern::new(rows, cols, indptr, indices)?, matrix.data().to_vec()),
            false => {
                let (pattern, entries) = Pattern::new(cols, rows, indptr, indices)?.transpose();
                let value = |&entry: &u32| matrix.data()[entry as usize];
                (pattern, entries.iter().map(value).collect())
            }
        };
        let shape = [values.len()];
        Ok(Self { pattern, values: TensorData::new(values, shape) })
    }
}

/// Takes any dtype and rounds to `N`. Errors as [`Csr::new`].
impl<N: Element> TryFrom<CsrData> for CsMat<N> {
    type Error = CsrError;

    fn try_from(CsrData { pattern, values }: CsrData) -> Result<Self, CsrError> {
        let (entries, found) = (pattern.nnz(), values.num_elements());
        if found != entries {
            return Err(CsrError::Values { entries, found });
        }
        check_order(&pattern)?;
        Ok(to_csmat(&pattern, &values))
    }
}

/// Columns must ascend.
fn to_csmat<N: Element>(pattern: &Pattern, values: &TensorData) -> CsMat<N> {
    let wide = |ids: &[u32]| -> Vec<usize> { ids.iter().map(|&id| id as usize).collect() };
    let shape = (pattern.rows(), pattern.cols());
    let values = values.iter::<N>().collect();
    CsMat::new(shape, wide(pattern.indptr()), wide(pattern.indices()), values)
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use ::sprs::CsMatI;
    use rstest::rstest;

    use super::*;
    use crate::sparse::{MAX_ENTRIES, PatternError};

    fn matrix() -> CsMat<f64> {
        let (offsets, columns) = (vec![0, 0, 1, 1, 3, 4, 4], vec![2, 0, 3, 2]);
        CsMat::new((6, 4), offsets, columns, vec![5.0, 0.0, -1.5, 7.0])
    }

    fn elements(matrix: &Csr) -> Vec<f64> {
        matrix.to_dense().into_data().iter::<f64>().collect()
    }

    #[test]
    fn both_storages_make_the_round_trip() {
        let rows = matrix();
        for given in [rows.clone(), rows.to_csc()] {
            let uploaded = Csr::from_sprs(&given, &Device::flex()).unwrap();
            assert_eq!(uploaded.pattern().indptr(), [0, 0, 1, 1, 3, 4, 4]);
            assert_eq!(uploaded.pattern().indices(), [2, 0, 3, 2]);
            assert_eq!(uploaded.to_sprs::<f64>(), rows);
            let expected: Vec<f64> = rows.to_dense().into_iter().collect();
            assert_eq!(elements(&uploaded), expected);
            assert_eq!(CsMat::<f64>::try_from(uploaded.to_data()).unwrap(), rows);
        }
    }

    #[test]
    fn ids_and_values_have_any_width() {
        let (ids, offsets) = (vec![2_u16, 0], vec![0_i64, 1, 2]);
        let narrow: CsMatI<f32, u16, i64> = CsMatI::new((2, 3), offsets, ids, vec![1.5, 2.5]);
        let uploaded = Csr::from_sprs(&narrow, &Device::flex()).unwrap();
        assert_eq!(elements(&uploaded), [0.0, 0.0, 1.5, 2.5, 0.0, 0.0]);
        assert_eq!(uploaded.to_sprs::<f64>().data(), [1.5, 2.5]);
    }

    #[test]
    fn views_begin_at_any_entry() {
        let rows = matrix();
        let uploaded = Csr::from_sprs(&rows.slice_outer(2..5), &Device::flex()).unwrap();
        assert_eq!(uploaded.pattern().indptr(), [0, 0, 2, 3]);
        assert_eq!(uploaded.to_sprs::<f64>().data(), [0.0, -1.5, 7.0]);
    }

    #[rstest]
    fn matrices_may_be_empty(#[values((0, 3), (3, 0), (0, 0), (2, 5))] shape: (usize, usize)) {
        let none = CsMat::<f32>::zero(shape);
        for given in [none.clone(), none.to_csc()] {
            let uploaded = Csr::from_sprs(&given, &Device::flex()).unwrap();
            assert_eq!((uploaded.rows(), uploaded.cols(), uploaded.nnz()), (shape.0, shape.1, 0));
            assert_eq!(uploaded.to_sprs::<f32>(), none);
        }
    }

    #[test]
    fn what_no_matrix_holds_is_refused() {
        let device = Device::flex();
        let wide = CsMat::<f32>::zero((1, MAX_ENTRIES + 1));
        let refused = Csr::from_sprs(&wide, &device).unwrap_err();
        assert!(matches!(refused, CsrError::Pattern(PatternError::TooLarge { .. })), "{refused}");
        let integers = CsMat::<i32>::eye(3);
        let refused = Csr::from_sprs(&integers, &device).unwrap_err();
        assert!(matches!(refused, CsrError::Dtype { .. }), "{refused}");
        let pattern = Pattern::new(1, 2, vec![0, 2], vec![1, 0]).unwrap();
        let unsorted = CsrData { pattern, values: TensorData::from([1.0, 2.0]) };
        let refused = CsMat::<f64>::try_from(unsorted).unwrap_err();
        assert!(matches!(refused, CsrError::Unsorted { .. }), "{refused}");
    }
}
