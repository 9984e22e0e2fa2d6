use rstest::rstest;
use sparsek_kernels::{
    distance::{self, Metric},
    topk::{Finish, Method, Routine, TopkOptions, VectorOptions},
};

use super::ties::{RowOptions, TieBreak};

fn again<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> (String, T) {
    let text = serde_json::to_string(value).unwrap();
    let read = serde_json::from_str(&text).unwrap();
    (text, read)
}

#[rstest]
#[case::exact(Method::Exact)]
#[case::early_stop(Method::EarlyStop(4))]
#[case::precision(Method::Precision(1e-4))]
#[case::precision_zero(Method::Precision(0.0))]
fn options_are_read_as_they_are_written(#[case] method: Method) {
    let options = TopkOptions::new(3).with_largest(false).with_method(method);
    let (text, read) = again(&options);
    assert_eq!(read, options);
    assert!(text.contains(&format!("\"method\":\"{method}\"")), "{text}");
}

#[test]
fn other_types_are_read_as_they_are_written() {
    let mut vector = VectorOptions::new(9);
    vector.strategy.finish = Finish::SingleLaunch;
    assert_eq!(again(&vector).1, vector);
    let rows = RowOptions::new(TopkOptions::new(3)).with_tie_break(TieBreak::Highest);
    assert_eq!(again(&rows).1, rows);
    for metric in Metric::ALL {
        assert_eq!(again(metric), (format!("\"{metric}\""), *metric));
    }
    assert_eq!(again(&Routine::Sampled).0, "\"sampled\"");
    for routine in distance::ROUTINES {
        assert_eq!(again(&routine), (format!("\"{}\"", routine.name()), routine));
    }
}

#[rstest]
fn unknown_methods_are_errors(
    #[values("early", "early:-1", "precision:-1", "precision:inf", "precision:NaN", "")]
    wrong: &str,
) {
    assert!(serde_json::from_str::<Method>(&format!("{wrong:?}")).is_err());
}

#[test]
fn unknown_metrics_are_errors() {
    assert!(serde_json::from_str::<Metric>("\"minkowski:0\"").is_err());
}
