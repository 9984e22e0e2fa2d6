use burn::tensor::{Device, Tensor, TensorData};
use rand::{SeedableRng, rngs::Xoshiro256PlusPlus, seq::SliceRandom};

use super::error::DatasetError;
use crate::graph::{Graph, GraphBatch, GraphError};

/// Unchecked [`GraphDataset`].
#[derive(Clone, Debug)]
pub struct GraphDatasetParts {
    /// Name.
    pub name: String,
    /// Graphs.
    pub graphs: Vec<Graph>,
    /// `[nodes of all graphs, feature_width]`, row-major, by graph.
    pub features: Vec<f32>,
    /// Features per node.
    pub feature_width: usize,
    /// Class per graph.
    pub labels: Vec<u32>,
    /// Classes.
    pub classes: usize,
}

/// Checked [`GraphDatasetParts`].
///
/// ```
/// use sparsek_gnn::{
///     Graph,
///     datasets::{GraphDataset, GraphDatasetParts},
/// };
///
/// let ring = |nodes: u32| {
///     Graph::from_edges(nodes as usize, (0..nodes).map(move |i| (i, (i + 1) % nodes)))
/// };
/// let graphs: Vec<Graph> = (3..9).map(|nodes| ring(nodes).unwrap()).collect();
/// let nodes: usize = graphs.iter().map(Graph::nodes).sum();
/// let data = GraphDataset::new(GraphDatasetParts {
///     name: "rings".to_string(),
///     graphs,
///     features: vec![1.0; nodes],
///     feature_width: 1,
///     labels: vec![1, 0, 1, 0, 1, 0],
///     classes: 2,
/// })
/// .unwrap();
/// let folds = data.folds(3, 0).unwrap();
/// assert!(folds.iter().all(|fold| (fold.train.len(), fold.test.len()) == (4, 2)));
/// ```
#[derive(Clone, Debug)]
pub struct GraphDataset {
    parts: GraphDatasetParts,
    offsets: Vec<usize>,
}

/// Graphs of one cross-validation fold, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fold {
    /// Training graphs.
    pub train: Vec<u32>,
    /// Test graphs.
    pub test: Vec<u32>,
}

impl GraphDatasetParts {
    fn check(&self, nodes: usize) -> Result<(), String> {
        let (graphs, width) = (self.graphs.len(), self.feature_width);
        if graphs == 0 || width == 0 {
            return Err(format!("{graphs} graphs of {width} features; both must be at least 1"));
        }
        let found = self.features.len();
        if Some(found) != nodes.checked_mul(width) {
            return Err(format!("{found} feature values for {nodes} nodes of {width}"));
        }
        if let Some(at) = self.features.iter().position(|x| !x.is_finite()) {
            return Err(format!("feature {} of node {} is not finite", at % width, at / width));
        }
        let (found, classes) = (self.labels.len(), self.classes);
        if found != graphs {
            return Err(format!("{found} labels for {graphs} graphs"));
        }
        match self.labels.iter().position(|&class| class as usize >= classes) {
            Some(graph) => {
                Err(format!("graph {graph} has class {} of {classes}", self.labels[graph]))
            }
            None => Ok(()),
        }
    }
}

impl GraphDataset {
    /// Refuses inconsistent sizes, non-finite features and bad labels.
    pub fn new(parts: GraphDatasetParts) -> Result<Self, DatasetError> {
        let mut offsets = vec![0];
        for graph in &parts.graphs {
            offsets.push(offsets[offsets.len() - 1] + graph.nodes());
        }
        let nodes = offsets[offsets.len() - 1];
        match parts.check(nodes) {
            Ok(()) => Ok(Self { parts, offsets }),
            Err(reason) => Err(DatasetError::Invalid(format!("{}: {reason}", parts.name))),
        }
    }

    /// Name.
    pub fn name(&self) -> &str {
        &self.parts.name
    }

    /// Graphs.
    pub fn graphs(&self) -> &[Graph] {
        &self.parts.graphs
    }

    /// Nodes of all graphs.
    pub fn nodes(&self) -> usize {
        self.offsets[self.parts.graphs.len()]
    }

    /// `[nodes, feature_width]` of a graph, row-major; panics out of range.
    pub fn features(&self, graph: usize) -> &[f32] {
        let width = self.parts.feature_width;
        &self.parts.features[self.offsets[graph] * width..self.offsets[graph + 1] * width]
    }

    /// Features per node.
    pub fn feature_width(&self) -> usize {
        self.parts.feature_width
    }

    /// Class per graph.
    pub fn labels(&self) -> &[u32] {
        &self.parts.labels
    }

    /// Classes.
    pub fn classes(&self) -> usize {
        self.parts.classes
    }

    /// Joins graphs and their features, [nodes, feature_width]. Errors as [`GraphBatch::new`];
    /// panics out of range.
    pub fn batch(
        &self,
        graphs: &[u32],
        device: &Device,
    ) -> Result<(GraphBatch, Tensor<2>), GraphError> {
        let chosen: Vec<&Graph> =
            graphs.iter().map(|&graph| &self.parts.graphs[graph as usize]).collect();
        let batch = GraphBatch::new(&chosen)?;
        let features = graphs.iter().flat_map(|&graph| self.features(graph as usize));
        let shape = [batch.graph().nodes(), self.parts.feature_width];
        let features = TensorData::new(features.copied().collect::<Vec<f32>>(), shape);
        Ok((batch, Tensor::from_data(features, device)))
    }

    /// Shuffles graphs into `count` folds of almost equal size, stratified by class. Errors unless
    /// 2 ≤ `count` ≤ graphs.
    pub fn folds(&self, count: usize, seed: u64) -> Result<Vec<Fold>, DatasetError> {
        let graphs = self.parts.graphs.len();
        if !(2..=graphs).contains(&count) {
            let name = &self.parts.name;
            let reason = format!(
                "{name}: {count} folds of {graphs} graphs; at least 2, no more than graphs"
            );
            return Err(DatasetError::Invalid(reason));
        }
        let mut order: Vec<u32> = (0..graphs as u32).collect();
        order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
        // Stable: shuffled within classes, then dealt in turn.
        order.sort_by_key(|&graph| self.parts.labels[graph as usize]);
        let mut fold_of = vec![0; graphs];
        for (place, &graph) in order.iter().enumerate() {
            fold_of[graph as usize] = place % count;
        }
        let fold = |own: usize| {
            let (test, train) =
                (0..graphs as u32).partition(|&graph| fold_of[graph as usize] == own);
            Fold { train, test }
        };
        Ok((0..count).map(fold).collect())
    }
}

#[cfg(test)]
mod tests {
    use rstest::{fixture, rstest};

    use super::*;

    #[fixture]
    fn parts() -> GraphDatasetParts {
        let graph = |nodes| Graph::from_edges(nodes, []).unwrap();
        GraphDatasetParts {
            name: "test".to_string(),
            graphs: vec![graph(2), graph(0), graph(1)],
            features: vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            feature_width: 2,
            labels: vec![0, 1, 1],
            classes: 2,
        }
    }

    #[rstest]
    fn rows_belong_to_their_graph(parts: GraphDatasetParts) {
        let data = GraphDataset::new(parts).unwrap();
        assert_eq!((data.nodes(), data.graphs().len()), (3, 3));
        assert_eq!(data.features(0), [1.0, 2.0, 3.0, 4.0]);
        assert!(data.features(1).is_empty());
        assert_eq!(data.features(2), [5.0, 6.0]);
    }

    #[cfg(feature = "flex")]
    #[rstest]
    fn batches_keep_the_order_asked_for(parts: GraphDatasetParts) {
        let data = GraphDataset::new(parts).unwrap();
        let (batch, x) = data.batch(&[2, 0], &Device::flex()).unwrap();
        assert_eq!((batch.offsets(), batch.graphs()), (&[0, 1, 3][..], 2));
        let x = x.try_into_vec_as::<f32>().unwrap();
        assert_eq!(x, [5.0, 6.0, 1.0, 2.0, 3.0, 4.0]);
        assert!(data.batch(&[], &Device::flex()).is_err());
    }

    type Parts = GraphDatasetParts;
    type Change = fn(&mut Parts);

    #[rstest]
    #[case(|parts: &mut Parts| parts.graphs.clear(), "0 graphs of 2 features")]
    #[case(|parts: &mut Parts| parts.feature_width = 0, "3 graphs of 0 features")]
    #[case(|parts: &mut Parts| parts.features.truncate(5), "5 feature values for 3 nodes of 2")]
    #[case(|parts: &mut Parts| parts.features[3] = f32::NAN, "feature 1 of node 1 is not finite")]
    #[case(|parts: &mut Parts| parts.labels.truncate(2), "2 labels for 3 graphs")]
    #[case(|parts: &mut Parts| parts.labels[1] = 2, "graph 1 has class 2 of 2")]
    fn inconsistent_parts_are_refused(
        mut parts: GraphDatasetParts,
        #[case] change: Change,
        #[case] words: &str,
    ) {
        change(&mut parts);
        let error = GraphDataset::new(parts).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }

    #[rstest]
    #[case(10)]
    #[case(3)]
    #[case(47)]
    fn folds_share_out_every_class(#[case] count: usize) {
        let graphs = 47;
        let labels: Vec<u32> = (0..graphs as u32).map(|graph| u32::from(graph % 3 == 0)).collect();
        let data = GraphDataset::new(GraphDatasetParts {
            name: "test".to_string(),
            graphs: vec![Graph::from_edges(1, []).unwrap(); graphs],
            features: vec![0.0; graphs],
            feature_width: 1,
            labels: labels.clone(),
            classes: 2,
        })
        .unwrap();
        let folds = data.folds(count, 4).unwrap();
        assert_eq!(folds, data.folds(count, 4).unwrap());
        assert_ne!(folds, data.folds(count, 5).unwrap());
        let mut tested: Vec<u32> = folds.iter().flat_map(|fold| fold.test.clone()).collect();
        tested.sort_unstable();
        assert_eq!(tested, (0..graphs as u32).collect::<Vec<_>>());
        for class in 0..2 {
            let of = |fold: &Fold| {
                fold.test.iter().filter(|&&graph| labels[graph as usize] == class).count()
            };
            let counts: Vec<usize> = folds.iter().map(of).collect();
            let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(most - least <= 1, "{counts:?}");
        }
        for fold in &folds {
            assert_eq!(fold.train.len() + fold.test.len(), graphs);
            assert!(fold.train.iter().all(|graph| !fold.test.contains(graph)));
        }
        for count in [0, 1, 48] {
            assert!(data.folds(count, 0).is_err());
        }
    }
}
