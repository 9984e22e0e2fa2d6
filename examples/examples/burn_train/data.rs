//! What a step takes and returns.

use burn::{
    data::dataloader::batcher::Batcher,
    tensor::{Device, ExecutionError, Int, Tensor, TensorData},
    train::{
        ClassificationOutput, ItemLazy,
        metric::{AccuracyInput, Adaptor, LossInput},
    },
};
use sparsek_gnn::{Graph, datasets::NodeDataset, sampling::NeighborSampler};

/// The first nodes of the graph have labels, the others are their neighbors.
#[derive(Clone, Debug)]
pub struct Batch {
    pub graph: Graph,
    pub x: Tensor<2>,
    pub labels: Tensor<1, Int>,
}

/// Burn's loader draws labeled nodes; a sampler adds the neighbors that two layers read.
pub struct WithNeighbors(pub NodeDataset);

impl Batcher<u32, Batch> for WithNeighbors {
    fn batch(&self, nodes: Vec<u32>, device: &Device) -> Batch {
        let data = &self.0;
        // Shuffled nodes, so every epoch has another seed.
        let seed = nodes.iter().fold(0, |seed: u64, &node| seed.rotate_left(7) ^ u64::from(node));
        let part = NeighborSampler::new(data.graph(), vec![8, 8]).sample(&nodes, seed);
        let rows: Vec<_> = data.features().chunks(data.feature_width()).collect();
        let x: Vec<f32> =
            part.nodes.iter().flat_map(|&node| rows[node as usize].to_vec()).collect();
        let x = TensorData::new(x, [part.nodes.len(), data.feature_width()]);
        let classes = data.labels().classes().expect("one class per node");
        let labels: Vec<i64> = nodes.iter().map(|&node| classes[node as usize].into()).collect();
        let labels = Tensor::from_data(&labels[..], device);
        Batch { graph: part.graph, x: Tensor::from_data(x, device), labels }
    }
}

/// Burn's output of classifiers, and the hidden units that MaxK kept: `[nodes, k]`.
pub struct Output {
    pub classes: ClassificationOutput,
    pub kept: Tensor<2, Int>,
}

/// Metrics run on another thread, without autodiff.
impl ItemLazy for Output {
    fn sync(self) -> Result<Self, ExecutionError> {
        Ok(Self { classes: self.classes.sync()?, kept: self.kept.without_autodiff() })
    }
}

// An adaptor hands a metric its part of the output.
impl Adaptor<AccuracyInput> for Output {
    fn adapt(&self) -> AccuracyInput {
        self.classes.adapt()
    }
}

impl Adaptor<LossInput> for Output {
    fn adapt(&self) -> LossInput {
        self.classes.adapt()
    }
}

impl Adaptor<Tensor<2, Int>> for Output {
    fn adapt(&self) -> Tensor<2, Int> {
        self.kept.clone()
    }
}
