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
