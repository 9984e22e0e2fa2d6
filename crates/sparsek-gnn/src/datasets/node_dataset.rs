use std::path::PathBuf;

use super::{error::DatasetError, labels::Labels, random_split::RandomSplit};
use crate::graph::Graph;

/// Unchecked [`NodeDataset`].
#[derive(Clone, Debug)]
pub struct NodeDatasetParts {
    /// Name.
    pub name: String,
    /// Graph.
    pub graph: Graph,
    /// `[nodes, feature_width]`, row-major.
    pub features: Vec<f32>,
    /// Features per node.
    pub feature_width: usize,
    /// Labels.
    pub labels: Labels,
    /// Classes.
    pub classes: usize,
    /// Training nodes.
    pub train: Vec<u32>,
    /// Validation nodes.
    pub val: Vec<u32>,
    /// Test nodes.
    pub test: Vec<u32>,
}

/// Checked [`NodeDatasetParts`].
#[derive(Clone, Debug)]
pub struct NodeDataset {
    parts: NodeDatasetParts,
    notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Features,
    Labels,
    Splits,
}

impl NodeDatasetParts {
    pub(super) fn of(
        name: String,
        graph: Graph,
        (features, feature_width): (Vec<f32>, usize),
        (labels, classes): (Labels, usize),
        [train, val, test]: [Vec<u32>; 3],
    ) -> Self {
        Self { name, graph, features, feature_width, labels, classes, train, val, test }
    }

    pub(crate) fn into_dataset(
        self,
        file: impl FnOnce(Part) -> PathBuf,
    ) -> Result<NodeDataset, DatasetError> {
        match self.check() {
            Ok(()) => Ok(NodeDataset { parts: self, notes: Vec::new() }),
            Err((part, reason)) => Err(DatasetError::Format { file: file(part), reason }),
        }
    }

    pub(crate) fn check(&self) -> Result<(), (Part, String)> {
        let (nodes, width) = (self.graph.nodes(), self.feature_width);
        let found = self.features.len();
        if nodes == 0 || width == 0 {
            return Err((
                Part::Features,
                format!("{nodes} nodes of {width} features; both must be at least 1"),
            ));
        }
        if Some(found) != nodes.checked_mul(width) {
            return Err((
                Part::Features,
                format!("{found} feature values for {nodes} nodes of {width}"),
            ));
        }
        if let Some(at) = self.features.iter().position(|x| !x.is_finite()) {
            return Err((
                Part::Features,
                format!("feature {} of node {} is not finite", at % width, at / width),
            ));
        }
        let labels = self.labels.check(nodes, self.classes);
        labels.map_err(|reason| (Part::Labels, reason))?;
        self.check_splits().map_err(|reason| (Part::Splits, reason))
    }

    fn check_splits(&self) -> Result<(), String> {
        let nodes = self.graph.nodes();
        let splits = [("training", &self.train), ("validation", &self.val), ("test", &self.test)];
        // 1 + split, or 0.
        let mut split_of = vec![0u8; nodes];
        for (own, (split, list)) in (1..).zip(splits) {
            for &node in list {
                let Some(slot) = split_of.get_mut(node as usize) else {
                    return Err(format!("{split} node {node} is not below {nodes}"));
                };
                let earlier = std::mem::replace(slot, own);
                if earlier > 0 {
                    let (other, _) = splits[usize::from(earlier) - 1];
                    return Err(format!(
                        "node {node} is in the {other} split and again in the {split} split"
                    ));
                }
            }
        }
        Ok(())
    }
}

impl NodeDataset {
    /// Refuses inconsistent sizes, non-finite features, bad labels, and bad or repeated split
    /// nodes.
    pub fn new(parts: NodeDatasetParts) -> Result<Self, DatasetError> {
        match parts.check() {
            Ok(()) => Ok(Self { parts, notes: Vec::new() }),
            Err((_, reason)) => Err(DatasetError::Invalid(format!("{}: {reason}", parts.name))),
        }
    }

    /// What loading dropped, a line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    pub(crate) fn with_notes(self, notes: Vec<String>) -> Self {
        Self { notes, ..self }
    }

    /// Name.
    pub fn name(&self) -> &str {
        &self.parts.name
    }

    /// Graph.
    pub fn graph(&self) -> &Graph {
        &self.parts.graph
    }

    /// Replaces the graph. Panics when sizes differ.
    pub fn with_graph(mut self, graph: Graph) -> Self {
        assert_eq!(
            graph.nodes(),
            self.nodes(),
            "the graph must have the dataset's number of nodes"
        );
        self.parts.graph = graph;
        self
    }

    /// Draws new splits. Errors for bad fractions, or [`RandomSplit::PerClass`] of sets.
    ///
    /// ```
    /// use sparsek_gnn::datasets::{RandomSplit, karate::karate_club};
    ///
    /// let split = RandomSplit::PerClass { train: 2, val: 3 };
    /// let data = karate_club().with_random_split(split, 7).unwrap();
    /// let classes = data.classes();
    /// assert_eq!((data.train().len(), data.val().len()), (2 * classes, 3 * classes));
    /// ```
    pub fn with_random_split(
        mut self,
        split: RandomSplit,
        seed: u64,
    ) -> Result<Self, DatasetError> {
        let sizes = (self.nodes(), self.classes());
        let lists = split.draw(self.labels(), sizes, seed);
        let reason = |reason| DatasetError::Invalid(format!("{}: {reason}", self.name()));
        let [train, val, test] = lists.map_err(reason)?;
        self.parts = NodeDatasetParts { train, val, test, ..self.parts };
        Ok(self)
    }

    /// Node count.
    pub fn nodes(&self) -> usize {
        self.parts.graph.nodes()
    }

    /// `[nodes, feature_width]`, row-major.
    pub fn features(&self) -> &[f32] {
        &self.parts.features
    }

    /// Features per node.
    pub fn feature_width(&self) -> usize {
        self.parts.feature_width
    }

    /// Standardizes features over training nodes, as GraphSAINT. Only shifts constant ones.
    pub fn with_standardized_features(mut self) -> Self {
        let width = self.parts.feature_width;
        let count = self.parts.train.len().max(1) as f64;
        let mut mean = vec![0f64; width];
        let mut square = vec![0f64; width];
        for &node in &self.parts.train {
            let row = &self.parts.features[node as usize * width..][..width];
            for ((mean, square), &x) in mean.iter_mut().zip(&mut square).zip(row) {
                *mean += f64::from(x) / count;
                *square += f64::from(x) * f64::from(x) / count;
            }
        }
        let deviation = mean.iter().zip(&square).map(|(mean, square)| {
            let variance = square - mean * mean;
            if variance > 1e-9 * square { variance.sqrt() } else { 1.0 }
        });
        let deviation: Vec<f64> = deviation.collect();
        for row in self.parts.features.chunks_exact_mut(width) {
            for ((x, mean), deviation) in row.iter_mut().zip(&mean).zip(&deviation) {
                *x = ((f64::from(*x) - mean) / deviation) as f32;
            }
        }
        self
    }

    /// Divides rows by their L1 norm, as PyG's `NormalizeFeatures`.
    pub fn with_normalized_rows(mut self) -> Self {
        for row in self.parts.features.chunks_exact_mut(self.parts.feature_width) {
            let sum: f32 = row.iter().map(|x| x.abs()).sum();
            if sum > 0.0 {
                row.iter_mut().for_each(|x| *x /= sum);
            }
        }
        self
    }

    /// Labels.
    pub fn labels(&self) -> &Labels {
        &self.parts.labels
    }

    /// Classes.
    pub fn classes(&self) -> usize {
        self.parts.classes
    }

    /// Training nodes.
    pub fn train(&self) -> &[u32] {
        &self.parts.train
    }

    /// Validation nodes.
    pub fn val(&self) -> &[u32] {
        &self.parts.val
    }

    /// Test nodes.
    pub fn test(&self) -> &[u32] {
        &self.parts.test
    }
}
