//! The only validation of selections.

use burn::tensor::{AsIndex, DType, IntDType, Tensor, kind::Ordered};
use sparsek_kernels::{
    KernelError,
    topk::{MAX_COLS, Method, TopkOptions, VectorOptions},
};

use super::{error::TopkError, small_int::is_small};
use crate::ops::{TopkSpec, VectorSpec};

/// Whether rows may exceed [`MAX_COLS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LongRows {
    Refused,
    /// One row alone, by the exact method.
    One,
}

/// Returns the dimension from the front, and the selection with indices of the device's default
/// integer dtype.
pub(crate) fn check<const D: usize, K: Ordered>(
    x: &Tensor<D, K>,
    options: &TopkOptions,
    dim: impl AsIndex,
    long: LongRows,
) -> Result<(usize, TopkSpec), TopkError> {
    let index = x.device().settings().int_dtype;
    let dim = check_indexed(x, options, dim, long, index)?;
    Ok((dim, TopkSpec { options: *options, index }))
}

/// As [`check`], for indices of the dtype `index`.
pub(crate) fn check_indexed<const D: usize, K: Ordered>(
    x: &Tensor<D, K>,
    options: &TopkOptions,
    dim: impl AsIndex,
    long: LongRows,
    index: IntDType,
) -> Result<usize, TopkError> {
    let dim = dimension::<D>(dim)?;
    let shape = x.dims();
    let cols = shape[dim];
    let rows = (0..D).filter(|&other| other != dim).map(|other| shape[other]).product();
    let alone = long == LongRows::One && rows == 1 && options.method == Method::Exact;
    let longest = if alone { usize::MAX } else { MAX_COLS };
    let longest = longest.min(most_indices(index)?);
    options.validate(rows, cols, longest).map_err(|error| refusal(error, dim, &shape))?;
    check_dtype(x)?;
    Ok(dim)
}

/// As [`check`], of one vector.
pub(super) fn check_vector<K: Ordered>(
    x: &Tensor<1, K>,
    options: &VectorOptions,
) -> Result<VectorSpec, TopkError> {
    let index = x.device().settings().int_dtype;
    let shape = x.dims();
    options.validate(shape[0], most_indices(index)?).map_err(|error| refusal(error, 0, &shape))?;
    check_dtype(x)?;
    Ok(VectorSpec { options: *options, index })
}

/// The dimension from the front.
pub(crate) fn dimension<const D: usize>(dim: impl AsIndex) -> Result<usize, TopkError> {
    let (dim, rank) = (dim.as_index(), D as isize);
    if !(-rank..rank).contains(&dim) {
        return Err(TopkError::Dimension { dim, rank: D });
    }
    Ok(dim.rem_euclid(rank) as usize)
}

pub(super) fn is_supported(dtype: DType) -> bool {
    matches!(
        dtype,
        DType::F32 | DType::F16 | DType::BF16 | DType::F64 | DType::I32 | DType::U32 | DType::I64
    )
}

fn check_dtype<const D: usize, K: Ordered>(x: &Tensor<D, K>) -> Result<(), TopkError> {
    let (dtype, device) = (x.dtype(), x.device());
    if !is_supported(dtype) && !is_small(dtype) {
        return Err(TopkError::Dtype { dtype });
    }
    if !device.supports_dtype(dtype) {
        return Err(TopkError::DtypeOnDevice { dtype, device: format!("{device:?}") });
    }
    Ok(())
}

/// Elements that an index dtype can number.
fn most_indices(dtype: IntDType) -> Result<usize, TopkError> {
    match dtype {
        IntDType::I64 => Ok(usize::MAX),
        IntDType::I32 => Ok(i32::MAX as usize + 1),
        IntDType::U32 => Ok(u32::MAX as usize),
        IntDType::U16 => Ok(1 << 16),
        IntDType::U8 => Ok(1 << 8),
        dtype => Err(TopkError::IndexDtype { dtype }),
    }
}

/// Adds the dimension and the shape to a refusal.
fn refusal(error: KernelError, dim: usize, shape: &[usize]) -> TopkError {
    match error {
        KernelError::KTooLarge { k, cols } => {
            TopkError::KTooLarge { k, cols, dim, shape: shape.to_vec() }
        }
        KernelError::RowTooLong { cols, limit } => TopkError::RowTooLong { cols, limit, dim },
        KernelError::TooManyRows { rows, limit } => TopkError::TooManyRows { rows, limit },
        KernelError::Precision { eps } => TopkError::Precision { eps },
        other => TopkError::Kernel(other),
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::tensor::{Device, Int, TensorCreationOptions};
    use rstest::{fixture, rstest};

    use super::{
        super::{
            masks::{topk_mask, try_topk_mask},
            ragged::{
                RowBounds, argtopk_ragged, topk_mask_ragged, topk_ragged, try_argtopk_ragged,
                try_topk_mask_ragged, try_topk_ragged,
            },
            rows::{argtopk, topk, try_argtopk, try_topk},
        },
        *,
    };

    #[fixture]
    fn x() -> Tensor<2> {
        Tensor::from_data([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], &Device::flex())
    }

    /// A row of `cols` equal elements.
    fn row(cols: usize) -> Tensor<2> {
        Tensor::<2>::zeros([1, 1], &Device::flex()).expand([1, cols])
    }

    fn lengths(lengths: &[i64]) -> Tensor<1, Int> {
        Tensor::from_data(lengths, &Device::flex())
    }

    fn message(call: impl FnOnce()) -> String {
        let call = std::panic::AssertUnwindSafe(call);
        let panic = std::panic::catch_unwind(call).expect_err("a panic");
        panic.downcast_ref::<String>().expect("a formatted message").clone()
    }

    #[rstest]
    #[case::k(4, -1, Method::Exact, "k = 4 is greater than the 3 elements along dimension 1 of \
        shape [2, 3]")]
    #[case::k_of_columns(
        3,
        0,
        Method::Exact,
        "k = 3 is greater than the 2 elements along \
        dimension 0 of shape [2, 3]"
    )]
    #[case::dimension(
        1,
        2,
        Method::Exact,
        "dimension 2 is out of range for a tensor of rank 2 \
        (expected -2 to 1)"
    )]
    #[case::negative_dimension(1, -3, Method::Exact, "dimension -3 is out of range for a tensor \
        of rank 2 (expected -2 to 1)")]
    #[case::eps(1, 1, Method::Precision(-1.0), "precision eps = -1 is not a finite number at or \
        above 0")]
    #[case::nan(
        1,
        1,
        Method::Precision(f32::NAN),
        "precision eps = NaN is not a finite number at \
        or above 0"
    )]
    fn each_form_refuses_with_one_error(
        x: Tensor<2>,
        #[case] k: usize,
        #[case] dim: isize,
        #[case] method: Method,
        #[case] text: &str,
    ) {
        let options = TopkOptions::new(k).with_method(method);
        let rows = match dim {
            0 => lengths(&[1; 3]),
            _ => lengths(&[1; 2]),
        };
        let errors = [
            try_topk(x.clone(), &options, dim).map(drop),
            try_argtopk(x.clone(), &options, dim).map(drop),
            try_topk_mask(x.clone(), &options, dim).map(drop),
            try_topk_ragged(x.clone(), rows.clone(), &options, dim).map(drop),
            try_argtopk_ragged(x.clone(), rows.clone(), &options, dim).map(drop),
            try_topk_mask_ragged(x.clone(), rows.clone(), &options, dim).map(drop),
        ];
        for error in errors {
            assert_eq!(error.unwrap_err().to_string(), text);
        }
        type Call = fn(Tensor<2>, Tensor<1, Int>, &TopkOptions, isize);
        let panics: [(&str, Call); 6] = [
            ("topk", |x, _, options, dim| drop(topk(x, options, dim))),
            ("argtopk", |x, _, options, dim| drop(argtopk(x, options, dim))),
            ("topk_mask", |x, _, options, dim| drop(topk_mask(x, options, dim))),
            ("topk_ragged", |x, each, options, dim| drop(topk_ragged(x, each, options, dim))),
            ("argtopk_ragged", |x, each, options, dim| {
                drop(argtopk_ragged(x, each, options, dim));
            }),
            ("topk_mask_ragged", |x, each, options, dim| {
                drop(topk_mask_ragged(x, each, options, dim));
            }),
        ];
        for (name, call) in panics {
            let found = message(|| call(x.clone(), rows.clone(), &options, dim));
            assert_eq!(found, format!("{name}: {text}"));
        }
    }

    #[rstest]
    fn rows_beyond_the_limit_are_refused() {
        let cols = MAX_COLS + 1;
        let too_long = TopkError::RowTooLong { cols, limit: MAX_COLS, dim: 1 };
        let (exact, early) = (TopkOptions::new(1), Method::EarlyStop(1));
        let two = row(cols).expand([2, cols]);
        assert_eq!(try_topk(two, &exact, 1).unwrap_err(), too_long);
        let early = exact.with_method(early);
        assert_eq!(try_argtopk(row(cols), &early, 1).unwrap_err(), too_long);
        assert_eq!(try_topk_mask(row(cols), &early, 1).unwrap_err(), too_long);
        let ragged = || (row(cols), lengths(&[1]));
        let (x, each) = ragged();
        assert_eq!(try_topk_ragged(x, each, &exact, 1).unwrap_err(), too_long);
        let (x, each) = ragged();
        assert_eq!(try_argtopk_ragged(x, each, &exact, 1).unwrap_err(), too_long);
        let (x, each) = ragged();
        assert_eq!(try_topk_mask_ragged(x, each, &exact, 1).unwrap_err(), too_long);
    }

    #[rstest]
    fn lengths_that_do_not_fit_are_refused(x: Tensor<2>) {
        let one = TopkOptions::new(1);
        let found = try_topk_ragged(x.clone(), lengths(&[1, 1, 1]), &one, 1).unwrap_err();
        let (expected, shape) = (vec![2], vec![2, 3]);
        let refusal = |name| TopkError::Bounds {
            name,
            found: vec![3],
            expected: expected.clone(),
            dim: 1,
            shape: shape.clone(),
        };
        assert_eq!(found, refusal("lengths"));
        let bounds = RowBounds::new(lengths(&[0, 0, 0]), lengths(&[1, 1, 1]));
        let found = try_topk_ragged(x.clone(), bounds, &one, 1).unwrap_err();
        assert_eq!(found, refusal("starts"));
        let bounds = RowBounds::new(lengths(&[0, 0]), lengths(&[1, 1, 1]));
        let found = try_topk_ragged(x.clone(), bounds, &one, 1).unwrap_err();
        assert_eq!(found, refusal("ends"));
        let narrow = lengths(&[1, 1]).cast(IntDType::U8);
        let found = try_topk_ragged(x, narrow, &one, 1).unwrap_err();
        assert_eq!(found, TopkError::BoundsDtype { name: "lengths", dtype: DType::U8 });
    }

    #[rstest]
    fn dtypes_that_do_not_fit_are_refused() {
        let device = Device::flex();
        let words = TensorCreationOptions::new(device).with_dtype(DType::U64);
        let x = Tensor::<1, Int>::ones([4], words);
        let found = try_topk(x, &TopkOptions::new(1), 0).unwrap_err();
        assert_eq!(found, TopkError::Dtype { dtype: DType::U64 });
        assert_eq!(most_indices(IntDType::U8), Ok(256));
        let dtype = IntDType::I8;
        assert_eq!(most_indices(dtype), Err(TopkError::IndexDtype { dtype }));
    }
}
