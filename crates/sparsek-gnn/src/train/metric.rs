use std::fmt::Debug;

use burn::config::Config;

use super::error::TrainError;
use crate::{
    datasets::{Labels, NodeDataset},
    ranking::roc_auc,
};

/// Split metric; larger is better.
#[derive(Config, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Share of correct nodes; not for sets.
    Accuracy,
    /// 2 TP / (2 TP + FP + FN) over nodes and classes. Scores above 0 predict; for sets.
    MicroF1,
    /// Area under the ROC curve, ties counting half, averaged over classes with both kinds. Two
    /// exclusive classes use the score difference.
    RocAuc,
}

impl Metric {
    /// Accuracy, or micro-F1 for sets.
    pub fn default_for(data: &NodeDataset) -> Self {
        match data.labels() {
            Labels::Classes(_) => Self::Accuracy,
            Labels::Sets(_) => Self::MicroF1,
        }
    }

    /// Name in prose.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::MicroF1 => "micro-F1",
            Self::RocAuc => "ROC-AUC",
        }
    }
}

/// Metric of logits, for [`Trainer::with_metric`](super::Trainer::with_metric); larger is better.
///
/// ```
/// use sparsek_gnn::{datasets::NodeDataset, train::NodeMetric};
///
/// /// Share of nodes whose class is among the two that score greatest.
/// #[derive(Debug)]
/// struct TopTwo;
///
/// impl NodeMetric for TopTwo {
///     fn name(&self) -> String {
///         "top-2 accuracy".to_string()
///     }
///
///     fn score(&self, logits: &[f32], data: &NodeDataset, nodes: &[u32]) -> f64 {
///         let labels = data.labels().classes().expect("one class per node");
///         let right = nodes.iter().filter(|&&node| {
///             let row = &logits[node as usize * data.classes()..][..data.classes()];
///             let own = row[labels[node as usize] as usize];
///             row.iter().filter(|&&score| score > own).count() < 2
///         });
///         right.count() as f64 / nodes.len() as f64
///     }
/// }
/// ```
pub trait NodeMetric: Debug + Send + Sync {
    /// Name with settings; resumption compares it.
    fn name(&self) -> String;

    /// Refuses unsuitable datasets. Default: none.
    fn check(&self, data: &NodeDataset) -> Result<(), TrainError> {
        let _ = data;
        Ok(())
    }

    /// Scores `nodes`; `logits`: `[dataset nodes, classes]`, row-major. NaN when undefined.
    fn score(&self, logits: &[f32], data: &NodeDataset, nodes: &[u32]) -> f64;
}

impl NodeMetric for Metric {
    fn name(&self) -> String {
        Metric::name(*self).to_string()
    }

    fn check(&self, data: &NodeDataset) -> Result<(), TrainError> {
        let fits = match (*self, data.labels()) {
            (Self::Accuracy, labels) => labels.classes().is_some(),
            (Self::MicroF1, labels) => labels.classes().is_none(),
            (Self::RocAuc, Labels::Classes(_)) => data.classes() == 2,
            (Self::RocAuc, Labels::Sets(_)) => true,
        };
        let (name, dataset) = (Metric::name(*self), data.name());
        if !fits {
            return Err(TrainError::Config(format!("{name} does not fit the labels of {dataset}")));
        }
        let splits =
            [("training", data.train()), ("validation", data.val()), ("test", data.test())];
        for (split, nodes) in splits {
            let logits = || vec![0.0; data.nodes() * data.classes()];
            if *self == Self::RocAuc && self.score(&logits(), data, nodes).is_nan() {
                return Err(TrainError::Config(format!(
                    "{name} needs nodes inside and outside a class in the {split} split \
                     of {dataset}"
                )));
            }
        }
        Ok(())
    }

    fn score(&self, logits: &[f32], data: &NodeDataset, nodes: &[u32]) -> f64 {
        let classes = data.classes();
        let row = |node: u32| &logits[node as usize * classes..][..classes];
        match (*self, data.labels()) {
            (Self::Accuracy, Labels::Classes(labels)) => {
                let right = |&&node: &&u32| greatest(row(node)) == labels[node as usize] as usize;
                nodes.iter().filter(right).count() as f64 / nodes.len() as f64
            }
            (Self::RocAuc, Labels::Classes(labels)) => {
                let scored = nodes.iter().map(|&node| {
                    let row = row(node);
                    (row[1] - row[0], labels[node as usize] == 1)
                });
                roc_auc(scored.collect())
            }
            (Self::RocAuc, Labels::Sets(sets)) => {
                let (mut sum, mut count) = (0.0, 0.0);
                for class in 0..classes {
                    let scored = nodes
                        .iter()
                        .map(|&node| (row(node)[class], sets[node as usize * classes + class]));
                    let area = roc_auc(scored.collect());
                    if !area.is_nan() {
                        (sum, count) = (sum + area, count + 1.0);
                    }
                }
                sum / count
            }
            (_, Labels::Sets(sets)) => {
                let (mut right, mut all) = (0u64, 0u64);
                for &node in nodes {
                    let sets = &sets[node as usize * classes..][..classes];
                    for (&score, &label) in row(node).iter().zip(sets) {
                        let found = score > 0.0;
                        right += u64::from(found && label);
                        all += u64::from(found) + u64::from(label);
                    }
                }
                2.0 * right as f64 / all.max(1) as f64
            }
            (Self::MicroF1, Labels::Classes(_)) => f64::NAN,
        }
    }
}

/// The first on ties.
fn greatest(row: &[f32]) -> usize {
    let mut best = 0;
    for (at, &score) in row.iter().enumerate() {
        if score > row[best] {
            best = at;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{datasets::NodeDatasetParts, graph::Graph};

    fn dataset(labels: Labels, classes: usize, nodes: usize) -> NodeDataset {
        let all: Vec<u32> = (0..nodes as u32).collect();
        NodeDataset::new(NodeDatasetParts {
            name: "test".to_string(),
            graph: Graph::from_edges(nodes, []).unwrap(),
            features: vec![0.0; nodes],
            feature_width: 1,
            labels,
            classes,
            train: all,
            val: Vec::new(),
            test: Vec::new(),
        })
        .unwrap()
    }

    #[test]
    fn scores_by_hand() {
        let data = dataset(Labels::Classes(vec![0, 1, 1]), 2, 3);
        let logits = [0.0, 1.0, 2.0, 3.0, 5.0, 5.0];
        assert_eq!(Metric::Accuracy.score(&logits, &data, &[0, 1, 2]), 1.0 / 3.0);
        assert_eq!(Metric::RocAuc.score(&logits, &data, &[0, 1, 2]), 0.25);
        assert!(Metric::MicroF1.check(&data).is_err());

        let data = dataset(Labels::Sets(vec![true, false, true, true, false, false]), 2, 3);
        let logits = [1.0, 1.0, -1.0, 2.0, 0.0, -3.0];
        assert_eq!(Metric::MicroF1.score(&logits, &data, &[0, 1, 2]), 2.0 / 3.0);
        assert_eq!(Metric::RocAuc.score(&logits, &data, &[0, 1, 2]), (0.5 + 1.0) / 2.0);
        assert!(Metric::Accuracy.check(&data).is_err());
        assert!(Metric::RocAuc.check(&data).is_err(), "no validation nodes");
    }
}
