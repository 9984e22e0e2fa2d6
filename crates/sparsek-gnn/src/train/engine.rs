//! Epochs and evaluations on a device, full batch or in batches.
use burn::{
    config::Config,
    optim::{GradientsParams, ModuleOptimizer},
    tensor::{Device, Tensor},
};
use rand::{SeedableRng, rngs::Xoshiro256PlusPlus, seq::SliceRandom};

use super::{
    Evaluation, Metric, NodeModel, TrainConfig, TrainError,
    data::{DeviceData, Splits, read},
};
use crate::{
    Graph,
    datasets::NodeDataset,
    sampling::{Batch, NeighbourSampler, Parting, Partition},
};

/// What an epoch takes its steps on.
#[derive(Config, Debug, PartialEq, Eq)]
pub enum Batching {
    /// The whole graph, one step an epoch.
    Full,
    /// Some training nodes and what they depend on, in an order that is drawn anew for each epoch.
    Neighbours {
        /// Neighbours sampled of each node, for each hop.
        fanouts: Vec<usize>,
        /// Training nodes of a step.
        nodes: usize,
    },
    /// Some parts of the graph and the edges between them, those that go together drawn anew for each epoch.
    Parts {
        /// Parts that the graph is cut into.
        parts: usize,
        /// Parts of a step.
        together: usize,
        /// Whether parts are clusters; else they are drawn at random.
        clustered: bool,
    },
}

impl Batching {
    pub(super) fn check(&self) -> Result<(), TrainError> {
        let bad = match self {
            Self::Full => false,
            Self::Neighbours { fanouts, nodes } => fanouts.is_empty() || *nodes == 0,
            Self::Parts {
                parts, together, ..
            } => *together == 0 || together > parts,
        };
        match bad {
            true => Err(TrainError::Config(format!(
                "{self:?} makes no batches: at least a hop, a node, a part is needed"
            ))),
            false => Ok(()),
        }
    }
}

/// A dataset on a device.
pub(super) struct Engine<'a> {
    host: &'a NodeDataset,
    config: &'a TrainConfig,
    metric: Metric,
    device: Device,
    /// All nodes, unless neither training nor evaluation needs them at once.
    whole: Option<DeviceData>,
    splits: Option<Splits>,
    partition: Option<Partition>,
}

impl<'a> Engine<'a> {
    pub(super) fn new(config: &'a TrainConfig, host: &'a NodeDataset, device: &Device) -> Self {
        let metric = config.metric_for(host);
        let evaluates_whole = !config.evaluate_batches || config.batches == Batching::Full;
        let partition = match config.batches {
            Batching::Parts {
                parts, clustered, ..
            } => {
                let parting = if clustered {
                    Parting::Clusters
                } else {
                    Parting::Random
                };
                Some(Partition::new(host.graph(), parts, parting, config.seed))
            }
            _ => None,
        };
        Self {
            host,
            config,
            metric,
            device: device.clone(),
            whole: evaluates_whole.then(|| DeviceData::new(host, None, host.train(), device)),
            splits: evaluates_whole.then(|| Splits::new(host, metric, device)),
            partition,
        }
    }

    /// The steps of an epoch; also the mean loss of the training nodes before them, [1], outside autodiff and not read.
    pub(super) fn epoch<M: NodeModel>(
        &self,
        model: M,
        optimizer: &mut ModuleOptimizer,
        seed: u64,
    ) -> (M, Tensor<1>) {
        if let (Batching::Full, Some(whole)) = (&self.config.batches, &self.whole) {
            return self.step(model, optimizer, self.host.graph(), whole);
        }
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut sum = Tensor::<1>::zeros([1], &self.device);
        let mut model = Some(model);
        let mut batch = |batch: Batch, train: &[u32]| {
            let data = DeviceData::new(self.host, Some(&batch.nodes), train, &self.device);
            let taken = model.take().expect("put back by the batch before");
            let (stepped, loss) = self.step(taken, optimizer, &batch.graph, &data);
            sum = sum.clone() + loss * (train.len() as f64 / self.host.train().len() as f64);
            model = Some(stepped);
        };
        match &self.config.batches {
            Batching::Neighbours { fanouts, nodes } => {
                let mut sampler = NeighbourSampler::new(self.host.graph(), fanouts.clone());
                let mut order = self.host.train().to_vec();
                order.shuffle(&mut rng);
                for (at, seeds) in order.chunks(*nodes).enumerate() {
                    let places: Vec<u32> = (0..seeds.len() as u32).collect();
                    batch(sampler.sample(seeds, seed.wrapping_add(at as u64)), &places);
                }
            }
            Batching::Full | Batching::Parts { .. } => {
                let mut trains = vec![false; self.host.nodes()];
                self.host
                    .train()
                    .iter()
                    .for_each(|&node| trains[node as usize] = true);
                for parts in self.part_batches(Some(&mut rng)) {
                    let train: Vec<u32> = (0u32..)
                        .zip(&parts.nodes)
                        .filter(|&(_, &node)| trains[node as usize])
                        .map(|(at, _)| at)
                        .collect();
                    if !train.is_empty() {
                        batch(parts, &train);
                    }
                }
            }
        }
        let model = model.expect("put back by the last batch");
        (model, sum)
    }

    /// In order, or in one that is drawn.
    fn part_batches(&self, rng: Option<&mut Xoshiro256PlusPlus>) -> impl Iterator<Item = Batch> {
        let parts = self.partition.as_ref().map_or(0, Partition::parts);
        let mut order: Vec<usize> = (0..parts).collect();
        if let Some(rng) = rng {
            order.shuffle(rng);
        }
        let together = match self.config.batches {
            Batching::Parts { together, .. } => together,
            _ => 1,
        };
        let groups: Vec<Vec<usize>> = order.chunks(together).map(<[usize]>::to_vec).collect();
        let cut = self.partition.iter();
        cut.flat_map(move |partition| {
            let groups = groups.clone();
            let graph = self.host.graph();
            groups
                .into_iter()
                .map(move |group| partition.batch(graph, &group))
        })
    }

    fn step<M: NodeModel>(
        &self,
        model: M,
        optimizer: &mut ModuleOptimizer,
        graph: &Graph,
        data: &DeviceData,
    ) -> (M, Tensor<1>) {
        let loss = data.loss(model.forward(graph, data.features.clone()));
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        let model = optimizer.step(self.config.lr, model, gradients);
        (model, loss.without_autodiff())
    }

    /// The metric of each split, without dropout; the loss is that of this pass where none is given, and the whole graph is there.
    pub(super) fn measure<M: NodeModel>(
        &self,
        model: &M,
        loss: Option<Tensor<1>>,
    ) -> Result<Evaluation, TrainError> {
        let (loss, [train, val, test]) = match (&self.whole, &self.splits) {
            (Some(whole), Some(splits)) => {
                let logits = model.forward(self.host.graph(), whole.features.clone());
                splits.measure(self.host, whole, logits, loss)?
            }
            _ => {
                let logits = self.logits_by_batches(model)?;
                let score = |nodes| self.metric.score(&logits, self.host, nodes);
                let scores = [self.host.train(), self.host.val(), self.host.test()].map(score);
                let loss = loss.map(read).transpose()?;
                (loss.map_or(f64::NAN, |loss| loss[0].into()), scores)
            }
        };
        Ok(Evaluation {
            loss,
            train,
            val,
            test,
        })
    }

    /// Scores of all nodes of the splits, from batches like those of training.
    fn logits_by_batches<M: NodeModel>(&self, model: &M) -> Result<Vec<f32>, TrainError> {
        let classes = self.host.classes();
        let mut all = vec![0f32; self.host.nodes() * classes];
        let mut batch = |batch: Batch, wanted: usize| {
            let data = DeviceData::new(self.host, Some(&batch.nodes), &[], &self.device);
            let logits = read(model.forward(&batch.graph, data.features).reshape([-1]))?;
            for (&node, row) in batch.nodes[..wanted]
                .iter()
                .zip(logits.chunks_exact(classes))
            {
                all[node as usize * classes..][..classes].copy_from_slice(row);
            }
            Ok::<_, TrainError>(())
        };
        match &self.config.batches {
            Batching::Neighbours { fanouts, nodes } => {
                let mut sampler = NeighbourSampler::new(self.host.graph(), fanouts.clone());
                let splits = [self.host.train(), self.host.val(), self.host.test()].concat();
                for (at, seeds) in splits.chunks(*nodes).enumerate() {
                    batch(sampler.sample(seeds, at as u64), seeds.len())?;
                }
            }
            Batching::Full | Batching::Parts { .. } => {
                for parts in self.part_batches(None) {
                    let wanted = parts.nodes.len();
                    batch(parts, wanted)?;
                }
            }
        }
        Ok(all)
    }
}
