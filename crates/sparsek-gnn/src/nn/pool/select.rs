//! The host selects, as it builds the induced graph: one read.

use std::cmp::Ordering;

use burn::tensor::{DType, Tensor};
use sparsek::sparse::{Adjacency, Pattern, spmm, spmm_weighted};

use super::types::Pooled;
use crate::graph::GraphBatch;

pub(super) fn check_ratio(ratio: f64) {
    assert!(ratio > 0.0 && ratio <= 1.0, "ratio {ratio} is not in (0, 1]");
}

pub(super) fn keep_best(
    batch: &GraphBatch,
    x: Tensor<2>,
    scores: Tensor<2>,
    ratio: f64,
    multiplier: f64,
) -> Pooled {
    let read: Vec<f64> = scores.clone().into_data().iter::<f64>().collect();
    let nodes = best(batch, &read, |count| share(ratio, count, x.dtype()));
    let kept = nodes.len();
    let each = (0..=kept as u32).collect();
    let pattern = Pattern::new(kept, read.len(), each, nodes.clone()).expect("nodes of the batch");
    let rows = Adjacency::new(&pattern, &x.device().without_autodiff());
    let scores = spmm(&rows, scores).reshape([kept]);
    let x = spmm_weighted(&rows, scores.clone(), x);
    let x = if multiplier == 1.0 { x } else { x * multiplier };
    Pooled { x, batch: batch.induced(&nodes), nodes, scores }
}

/// ⌈ratio count⌉, in x's precision as PyG.
fn share(ratio: f64, count: usize, dtype: DType) -> usize {
    let share = match dtype {
        DType::F64 => (ratio * count as f64).ceil() as usize,
        _ => (ratio as f32 * count as f32).ceil() as usize,
    };
    share.min(count)
}

/// Best first; ties to the lower node, NaN greatest.
fn best(batch: &GraphBatch, scores: &[f64], share: impl Fn(usize) -> usize) -> Vec<u32> {
    let descending = |a: f64, b: f64| -> Ordering {
        b.partial_cmp(&a).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
    };
    let mut kept = Vec::new();
    for graph in 0..batch.graphs() {
        let range = batch.nodes(graph);
        let count = share(range.len());
        let mut nodes: Vec<u32> = (range.start as u32..range.end as u32).collect();
        nodes.sort_by(|&a, &b| descending(scores[a as usize], scores[b as usize]));
        kept.extend_from_slice(&nodes[..count]);
    }
    kept
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::graph::Graph;

    #[rstest]
    #[case::half(0.5, 5, DType::F32, 3)]
    #[case::one(0.01, 1, DType::F32, 1)]
    #[case::none(0.5, 0, DType::F32, 0)]
    #[case::all(1.0, 7, DType::F64, 7)]
    #[case::rounded_in_f32(0.55, 100, DType::F32, 55)]
    #[case::rounded_in_f64(0.55, 100, DType::F64, 56)]
    #[case::beyond_f32(1.0, (1 << 24) + 3, DType::F32, (1 << 24) + 3)]
    fn shares_round_up(
        #[case] ratio: f64,
        #[case] count: usize,
        #[case] dtype: DType,
        #[case] expected: usize,
    ) {
        assert_eq!(share(ratio, count, dtype), expected);
    }

    #[test]
    fn each_graph_keeps_its_best_and_ties_go_to_the_lower_node() {
        let [four, none, three] = [4, 0, 3].map(|nodes| Graph::from_edges(nodes, []).unwrap());
        let batch = GraphBatch::new(&[&four, &none, &three]).unwrap();
        let nan = f64::NAN;
        let scores = [0.5, 0.9, 0.5, 0.9, -0.0, 0.0, nan];
        assert_eq!(best(&batch, &scores, |count| count), [1, 3, 0, 2, 6, 4, 5]);
        assert_eq!(best(&batch, &scores, |count| count.div_ceil(2)), [1, 3, 6, 4]);
    }
}
