use crate::ranking::roc_auc;

/// Area under the ROC curve; ties count half. NaN without positives or negatives.
///
/// ```
/// assert_eq!(sparsek_gnn::links::auc(&[3.0, 1.0], &[2.0, 1.0]), 0.625);
/// ```
pub fn auc(positives: &[f32], negatives: &[f32]) -> f64 {
    let positives = positives.iter().map(|&score| (score, true));
    roc_auc(positives.chain(negatives.iter().map(|&score| (score, false))).collect())
}

/// OGB's Hits@k: share of positives strictly above the k-th greatest negative, 1 with fewer than k
/// negatives. NaN without positives; panics for k = 0.
///
/// ```
/// use sparsek_gnn::links::hits_at;
///
/// let (positives, negatives) = ([3.0, 2.0, 1.0], [2.0, 1.5, 0.0]);
/// assert_eq!(hits_at(1, &positives, &negatives), 1.0 / 3.0);
/// assert_eq!(hits_at(2, &positives, &negatives), 2.0 / 3.0);
/// assert_eq!(hits_at(4, &positives, &negatives), 1.0);
/// ```
pub fn hits_at(k: usize, positives: &[f32], negatives: &[f32]) -> f64 {
    assert!(k > 0, "hits_at: k must be at least 1");
    let above = match negatives.len() < k {
        true => positives.len(),
        false => {
            let mut negatives = negatives.to_vec();
            let (_, &mut bound, _) = negatives.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a));
            positives.iter().filter(|&&score| score > bound).count()
        }
    };
    above as f64 / positives.len() as f64
}

/// OGB's mean reciprocal rank: mean of 1 / (1 + negatives above + ties / 2). NaN without positives.
///
/// ```
/// use sparsek_gnn::links::mrr;
///
/// assert_eq!(mrr(&[3.0, 2.0, 1.0], &[2.0, 1.5, 0.0]), (1.0 + 1.0 / 1.5 + 1.0 / 3.0) / 3.0);
/// ```
pub fn mrr(positives: &[f32], negatives: &[f32]) -> f64 {
    let mut negatives = negatives.to_vec();
    negatives.sort_unstable_by(f32::total_cmp);
    let reciprocal = |&score: &f32| {
        let below = negatives.partition_point(|&negative| negative < score);
        let not_above = negatives.partition_point(|&negative| negative <= score);
        let rank = negatives.len() as f64 + 1.0 - (below + not_above) as f64 / 2.0;
        1.0 / rank
    };
    positives.iter().map(reciprocal).sum::<f64>() / positives.len() as f64
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn scores(count: usize, seed: usize) -> Vec<f32> {
        (0..count).map(|i| 8.0 - ((i * 37 + seed) * 53 % 17) as f32).collect()
    }

    #[rstest]
    fn ranks_by_counting(#[values(0, 5)] seed: usize, #[values(1, 3, 10, 41)] k: usize) {
        let (positives, negatives) = (scores(30, seed), scores(40, seed + 1));
        let not_below = |score: f32| negatives.iter().filter(|&&other| other >= score).count();
        let ranks = || positives.iter().map(|&score| 1 + not_below(score));
        let hits = ranks().filter(|&rank| rank <= k).count() as f64 / 30.0;
        assert_eq!(hits_at(k, &positives, &negatives), hits);
        let above = |score: f32| negatives.iter().filter(|&&other| other > score).count();
        let middle = |&score: &f32| 1.0 + (above(score) + not_below(score)) as f64 / 2.0;
        let mean = positives.iter().map(|score| 1.0 / middle(score)).sum::<f64>() / 30.0;
        assert!((mrr(&positives, &negatives) - mean).abs() < 1e-12);
    }

    #[test]
    fn equal_scores_count_against_or_half() {
        let (zeros, minus) = ([0.0; 3], [-0.0; 4]);
        assert_eq!(hits_at(4, &zeros, &minus), 0.0);
        assert!((mrr(&zeros, &minus) - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(auc(&zeros, &minus), 0.5);
    }

    #[test]
    fn undefined_metrics_are_nan() {
        assert!(auc(&[], &[1.0]).is_nan() && auc(&[1.0], &[]).is_nan());
        assert!(hits_at(1, &[], &[1.0]).is_nan() && mrr(&[], &[1.0]).is_nan());
        assert_eq!(mrr(&[1.0], &[]), 1.0);
    }
}
