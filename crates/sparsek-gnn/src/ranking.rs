/// Mann-Whitney, averaging tied ranks. NaN without both kinds.
pub(crate) fn roc_auc(mut scored: Vec<(f32, bool)>) -> f64 {
    scored.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (mut ranks, mut positive, mut before) = (0.0, 0.0, 0.0);
    for equal in scored.chunk_by(|a, b| a.0 == b.0) {
        let (count, positives) = (equal.len() as f64, equal.iter().filter(|e| e.1).count() as f64);
        ranks += positives * (before + (count + 1.0) / 2.0);
        positive += positives;
        before += count;
    }
    (ranks - positive * (positive + 1.0) / 2.0) / (positive * (before - positive))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_count_pairs() {
        let scored: Vec<(f32, bool)> =
            (0..60).map(|i| ((i * 37 % 11) as f32 - 5.0, i * 53 % 7 < 3)).collect();
        let (mut sum, mut pairs) = (0.0, 0.0);
        for &(a, _) in scored.iter().filter(|s| s.1) {
            for &(b, _) in scored.iter().filter(|s| !s.1) {
                pairs += 1.0;
                sum += if a > b {
                    1.0
                } else if a == b {
                    0.5
                } else {
                    0.0
                };
            }
        }
        assert!((roc_auc(scored) - sum / pairs).abs() < 1e-12);
        assert!(roc_auc(vec![(1.0, true)]).is_nan());
        assert_eq!(roc_auc(vec![(0.0, false), (-0.0, true)]), 0.5);
    }
}
