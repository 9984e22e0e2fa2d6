//! Training of graph classifiers.

use std::{io, ops::ControlFlow, time::Instant};

use burn::{
    config::Config,
    module::Module,
    nn::loss::CrossEntropyLossConfig,
    optim::GradientsParams,
    tensor::{Device, Int, Tensor, TensorData},
};
use rand::{SeedableRng, rngs::Xoshiro256PlusPlus, seq::SliceRandom};
use serde::{Deserialize, Serialize};

use super::{
    config::{check_positive, check_weight_decay},
    data::{check_sizes, read},
    epochs::seed_all,
    error::TrainError,
    optimizer::adam,
};
use crate::{
    datasets::{Fold, GraphDataset},
    graph::GraphBatch,
    nn::{GraphModel, GraphModelConfig},
};

/// Configures [`train_graphs`]; defaults of Xu et al., 2019.
#[derive(Config, Debug, PartialEq)]
pub struct GraphTrainConfig {
    /// Epochs.
    #[config(default = 350)]
    pub epochs: usize,
    /// Adam's learning rate.
    #[config(default = 0.01)]
    pub lr: f64,
    /// Learning rate factor.
    #[config(default = 0.5)]
    pub decay: f64,
    /// Epochs between factors.
    #[config(default = 50)]
    pub decay_every: usize,
    /// L2 penalty added to gradients.
    #[config(default = 0.0)]
    pub weight_decay: f64,
    /// Graphs per step.
    #[config(default = 32)]
    pub batch_graphs: usize,
    /// Seed.
    #[config(default = 0)]
    pub seed: u64,
}

impl GraphTrainConfig {
    /// Errors for values out of range.
    pub fn validate(&self) -> Result<(), TrainError> {
        if self.epochs == 0 || self.decay_every == 0 || self.batch_graphs == 0 {
            let reason = "epochs, decay_every and batch_graphs must be at least 1";
            return Err(TrainError::Config(reason.to_string()));
        }
        check_positive("learning rate", self.lr)?;
        check_positive("decay", self.decay)?;
        check_weight_decay(self.weight_decay)
    }

    fn rate(&self, epoch: usize) -> f64 {
        self.lr * self.decay.powf(((epoch - 1) / self.decay_every) as f64)
    }
}

/// Epoch of [`train_graphs`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GraphEpoch {
    /// From 1.
    pub epoch: usize,
    /// Mean training loss with dropout, before steps.
    pub loss: f64,
    /// Share of test graphs classified correctly.
    pub test: f64,
    /// Milliseconds with evaluation.
    pub ms: f64,
}

/// Result of [`train_graphs`].
#[derive(Clone, Debug)]
pub struct GraphOutcome<M> {
    /// After the last epoch, outside autodiff.
    pub model: M,
    /// Epochs.
    pub history: Vec<GraphEpoch>,
    /// Whether the callback ended it early.
    pub interrupted: bool,
}

/// Trains with Adam on a fold's training graphs, shuffled into batches; tests after each epoch.
///
/// `each` gets epochs; [`ControlFlow::Break`] ends training. Errors for bad configurations, unfit
/// datasets, empty splits, a non-finite loss and device failures.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use std::ops::ControlFlow;
///
/// use burn::tensor::Device;
/// use sparsek_gnn::{
///     Graph,
///     datasets::{GraphDataset, GraphDatasetParts},
///     nn::{Activation, GinGraphModelConfig},
///     train::{CrossValidation, GraphTrainConfig, train_graphs},
/// };
///
/// // Paths and rings of three nodes.
/// let path = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap().symmetrized();
/// let ring = Graph::from_edges(3, [(0, 1), (1, 2), (2, 0)]).unwrap().symmetrized();
/// let data = GraphDataset::new(GraphDatasetParts {
///     name: "paths and rings".to_string(),
///     graphs: (0..20).map(|graph| [&path, &ring][graph % 2].clone()).collect(),
///     features: vec![1.0; 60],
///     feature_width: 1,
///     labels: (0..20).map(|graph| graph % 2).collect(),
///     classes: 2,
/// })
/// .unwrap();
/// let model = GinGraphModelConfig::new(1, 8, 2).with_activation(Activation::maxk(4));
/// let config = GraphTrainConfig::new().with_epochs(100);
/// let folds = data.folds(2, 0).unwrap();
/// let runs = folds.iter().map(|fold| {
///     let each = &mut |_: &_| Ok(ControlFlow::Continue(()));
///     train_graphs(&config, &model, &data, fold, &Device::flex(), each).unwrap().history
/// });
/// let result = CrossValidation::new(&runs.collect::<Vec<_>>()).unwrap();
/// assert_eq!(result.mean, 1.0);
/// # }
/// ```
pub fn train_graphs<C: GraphModelConfig>(
    config: &GraphTrainConfig,
    model: &C,
    data: &GraphDataset,
    fold: &Fold,
    device: &Device,
    each: &mut dyn FnMut(&GraphEpoch) -> io::Result<ControlFlow<()>>,
) -> Result<GraphOutcome<C::Model>, TrainError> {
    config.validate()?;
    model.validate()?;
    check_fit(model, data, fold)?;
    let inner = device.clone().without_autodiff();
    let training = inner.clone().autodiff();
    seed_all(std::slice::from_ref(&inner), config.seed, 0);
    let mut model = model.init(&training)?;
    let mut optimizer = adam(config.weight_decay, &inner, None);
    let tests = fold.test.chunks(config.batch_graphs);
    let tests =
        tests.map(|graphs| Step::new(data, graphs, &inner)).collect::<Result<Vec<_>, _>>()?;
    let (mut history, mut order) = (Vec::new(), fold.train.clone());
    let mut interrupted = false;
    for epoch in 1..=config.epochs {
        let start = Instant::now();
        let seed = seed_all(std::slice::from_ref(&inner), config.seed, epoch);
        order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
        let mut sum = Tensor::<1>::zeros([1], &inner);
        for graphs in order.chunks(config.batch_graphs) {
            let step = Step::new(data, graphs, &training)?;
            // Batch norms average nodes.
            if step.batch.graph().nodes() == 0 {
                continue;
            }
            let loss = step.loss(&model);
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            model = optimizer.step(config.rate(epoch), model, gradients);
            sum = sum + loss.without_autodiff() * (graphs.len() as f64 / order.len() as f64);
        }
        let tested = model.valid();
        let hits = tests.iter().map(|step| step.hits(&tested));
        let hits = hits.reduce(|sum, hits| sum + hits).expect("checked");
        let (loss, hits) = (read(sum)?[0].into(), f64::from(read(hits)?[0]));
        if !f64::is_finite(loss) {
            return Err(TrainError::Diverged { epoch, loss });
        }
        let test = hits / fold.test.len() as f64;
        let report = GraphEpoch { epoch, loss, test, ms: start.elapsed().as_secs_f64() * 1e3 };
        history.push(report);
        if each(&report)?.is_break() && epoch < config.epochs {
            interrupted = true;
            break;
        }
    }
    Ok(GraphOutcome { model: model.valid(), history, interrupted })
}

fn check_fit(
    model: &impl GraphModelConfig,
    data: &GraphDataset,
    fold: &Fold,
) -> Result<(), TrainError> {
    let wanted = [model.input_width(), model.classes()];
    check_sizes(wanted, data.name(), [data.feature_width(), data.classes()])?;
    let graphs = data.graphs().len();
    for (split, list) in [("training", &fold.train), ("test", &fold.test)] {
        if list.is_empty() {
            return Err(TrainError::EmptySplit { split, dataset: data.name().to_string() });
        }
        if let Some(graph) = list.iter().find(|&&graph| graph as usize >= graphs) {
            let reason = format!("{split} graph {graph} is not below {graphs}");
            return Err(TrainError::Config(reason));
        }
    }
    Ok(())
}

struct Step {
    batch: GraphBatch,
    features: Tensor<2>,
    labels: Tensor<1, Int>,
}

impl Step {
    fn new(data: &GraphDataset, graphs: &[u32], device: &Device) -> Result<Self, TrainError> {
        let made = data.batch(graphs, device);
        let (batch, features) = made.map_err(|error| TrainError::Config(error.to_string()))?;
        let labels: Vec<i32> =
            graphs.iter().map(|&graph| data.labels()[graph as usize] as i32).collect();
        let labels = TensorData::new(labels, [graphs.len()]);
        Ok(Self { batch, features, labels: Tensor::from_data(labels, device) })
    }

    fn loss(&self, model: &impl GraphModel) -> Tensor<1> {
        let logits = model.forward(&self.batch, self.features.clone());
        CrossEntropyLossConfig::new().init(&logits.device()).forward(logits, self.labels.clone())
    }

    /// `[1]`.
    fn hits(&self, model: &impl GraphModel) -> Tensor<1> {
        let logits = model.forward(&self.batch, self.features.clone());
        let found = logits.argmax(1).reshape([-1]);
        found.equal(self.labels.clone()).float().sum()
    }
}

/// Test accuracy over folds, at the first epoch of greatest mean (Xu et al.).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrossValidation {
    /// From 1.
    pub epoch: usize,
    /// Mean over folds.
    pub mean: f64,
    /// Sample standard deviation over folds.
    pub deviation: f64,
}

impl CrossValidation {
    /// Takes a history per fold; None without an epoch in all of them.
    pub fn new(folds: &[Vec<GraphEpoch>]) -> Option<Self> {
        let (epochs, count) = (folds.iter().map(Vec::len).min()?, folds.len() as f64);
        let mean = |at: usize| folds.iter().map(|fold| fold[at].test).sum::<f64>() / count;
        // Reversed: the last of equals wins.
        let best = (0..epochs).rev().map(|at| (at, mean(at)));
        let (at, mean) = best.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let square: f64 = folds.iter().map(|fold| (fold[at].test - mean).powi(2)).sum();
        let deviation = (square / (count - 1.0).max(1.0)).sqrt();
        Some(Self { epoch: folds[0][at].epoch, mean, deviation })
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use rstest::{fixture, rstest};

    use super::*;
    use crate::{
        datasets::GraphDatasetParts,
        fixtures::{Alone, alone, device},
        graph::Graph,
        nn::{Activation, GinGraphModelConfig},
    };

    const RINGS: u32 = 24;

    /// Rings, of the first class with a chord.
    #[fixture]
    fn data() -> GraphDataset {
        let graph = |at: u32| {
            let nodes = 4 + at % 6;
            let chord = at.is_multiple_of(2).then_some((0, 2));
            let edges = (0..nodes).map(move |node| (node, (node + 1) % nodes)).chain(chord);
            let both = edges.flat_map(|(from, to)| [(from, to), (to, from)]);
            Graph::from_edges(nodes as usize, both).unwrap()
        };
        let graphs: Vec<Graph> = (0..RINGS).map(graph).collect();
        let nodes = graphs.iter().map(Graph::nodes).sum();
        let labels = (0..RINGS).map(|at| at % 2).collect();
        GraphDataset::new(GraphDatasetParts {
            name: "rings".to_string(),
            graphs,
            features: vec![1.0; nodes],
            feature_width: 1,
            labels,
            classes: 2,
        })
        .unwrap()
    }

    fn config() -> GraphTrainConfig {
        GraphTrainConfig::new().with_epochs(30).with_batch_graphs(5)
    }

    fn model() -> GinGraphModelConfig {
        GinGraphModelConfig::new(1, 8, 2).with_layers(2)
    }

    fn run(
        config: &GraphTrainConfig,
        model: &GinGraphModelConfig,
        data: &GraphDataset,
        device: &Device,
    ) -> Result<Vec<GraphEpoch>, TrainError> {
        let fold = data.folds(3, 0).unwrap().remove(0);
        let each = &mut |_: &GraphEpoch| Ok(ControlFlow::Continue(()));
        let outcome = train_graphs(config, model, data, &fold, device, each)?;
        assert!(!outcome.interrupted);
        Ok(outcome.history)
    }

    #[rstest]
    fn a_chord_is_learned_and_runs_repeat(
        _alone: Alone,
        data: GraphDataset,
        device: Device,
        #[values(Activation::Relu, Activation::maxk(3))] activation: Activation,
    ) {
        let model = model().with_activation(activation);
        let history = run(&config(), &model, &data, &device).unwrap();
        assert_eq!(history.len(), 30);
        assert!(history[29].loss < history[0].loss / 2.0, "{history:?}");
        assert_eq!(history[29].test, 1.0, "{history:?}");
        let again = run(&config(), &model, &data, &device.autodiff()).unwrap();
        let figures = |history: &[GraphEpoch]| {
            history.iter().map(|epoch| (epoch.epoch, epoch.loss, epoch.test)).collect::<Vec<_>>()
        };
        assert_eq!(figures(&again), figures(&history));
    }

    #[rstest]
    fn a_break_ends_training(_alone: Alone, data: GraphDataset, device: Device) {
        let fold = data.folds(3, 0).unwrap().remove(0);
        let each = &mut |report: &GraphEpoch| {
            Ok(match report.epoch {
                2 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            })
        };
        let outcome = train_graphs(&config(), &model(), &data, &fold, &device, each).unwrap();
        assert!(outcome.interrupted);
        assert_eq!(outcome.history.len(), 2);
    }

    #[rstest]
    #[case::epochs(config().with_epochs(0), model(), "at least 1")]
    #[case::batch(config().with_batch_graphs(0), model(), "at least 1")]
    #[case::lr(config().with_lr(f64::NAN), model(), "learning rate NaN")]
    #[case::decay(config().with_decay(0.0), model(), "decay 0 is not a positive number")]
    #[case::penalty(config().with_weight_decay(-1.0), model(), "weight decay -1")]
    #[case::width(config(), GinGraphModelConfig::new(2, 8, 2), "takes 2 features and 2 classes")]
    #[case::classes(config(), GinGraphModelConfig::new(1, 8, 3), "but rings has 1 features")]
    #[case::model(config(), model().with_layers(0), "layers must be at least 1")]
    fn unfit_runs_are_refused(
        data: GraphDataset,
        device: Device,
        #[case] config: GraphTrainConfig,
        #[case] model: GinGraphModelConfig,
        #[case] words: &str,
    ) {
        let error = run(&config, &model, &data, &device).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }

    #[rstest]
    #[case(vec![], vec![0], "the training split of rings is empty")]
    #[case(vec![0], vec![], "the test split of rings is empty")]
    #[case(vec![0], vec![RINGS], "test graph 24 is not below 24")]
    fn unfit_folds_are_refused(
        data: GraphDataset,
        device: Device,
        #[case] train: Vec<u32>,
        #[case] test: Vec<u32>,
        #[case] words: &str,
    ) {
        let each = &mut |_: &GraphEpoch| Ok(ControlFlow::Continue(()));
        let fold = Fold { train, test };
        let found = train_graphs(&config(), &model(), &data, &fold, &device, each);
        let error = found.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }

    #[rstest]
    fn a_loss_that_is_no_number_ends_training(_alone: Alone, data: GraphDataset, device: Device) {
        let error = run(&config().with_lr(1e38), &model(), &data, &device).unwrap_err();
        assert!(matches!(error, TrainError::Diverged { .. }), "{error}");
    }

    #[rstest]
    #[case(1, 0.01)]
    #[case(50, 0.01)]
    #[case(51, 0.005)]
    #[case(350, 0.01 / 64.0)]
    fn rates_halve(#[case] epoch: usize, #[case] rate: f64) {
        assert!((GraphTrainConfig::new().rate(epoch) - rate).abs() < 1e-12);
    }

    #[test]
    fn the_first_epoch_with_the_greatest_mean_counts() {
        let history = |tests: &[f64]| {
            let epoch = |(at, &test)| GraphEpoch { epoch: at + 1, loss: 0.0, test, ms: 0.0 };
            tests.iter().enumerate().map(epoch).collect::<Vec<_>>()
        };
        let folds = [history(&[0.5, 0.75, 1.0]), history(&[0.5, 0.75, 0.5])];
        let found = CrossValidation::new(&folds).unwrap();
        assert_eq!(found, CrossValidation { epoch: 2, mean: 0.75, deviation: 0.0 });
        let found = CrossValidation::new(&[history(&[0.5, 1.0]), history(&[0.5])]).unwrap();
        assert_eq!((found.epoch, found.mean), (1, 0.5));
        assert_eq!(CrossValidation::new(&[]), None);
        assert_eq!(CrossValidation::new(&[history(&[])]), None);
    }
}
