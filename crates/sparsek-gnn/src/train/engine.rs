use std::sync::Arc;

use burn::tensor::{Device, Tensor, read_sync};
use rand::{SeedableRng, rngs::Xoshiro256PlusPlus, seq::SliceRandom};

use super::{
    config::{Batching, TrainConfig},
    data::{DeviceData, Splits, read_async},
    error::TrainError,
    loss::NodeLoss,
    precision::copy_in,
    recipe::{Recipe, Score},
    replicas::{Replicas, Share},
    types::Evaluation,
};
use crate::{
    datasets::NodeDataset,
    graph::Graph,
    nn::NodeModel,
    sampling::{
        Batch, NeighborLoader, Partition, PartitionMethod,
        ahead::{Ahead, Plan, default_workers},
    },
};

pub(super) struct Engine<'a> {
    host: &'a NodeDataset,
    config: &'a TrainConfig,
    loss: Option<Arc<dyn NodeLoss>>,
    score: Score,
    device: Device,
    /// None when everything is batched.
    whole: Option<DeviceData>,
    splits: Option<Splits>,
    parts: Option<Arc<Parts>>,
}

struct Parts {
    graph: Graph,
    partition: Partition,
    trains: Vec<bool>,
}

impl<'a> Engine<'a> {
    pub(super) fn new(
        config: &'a TrainConfig,
        recipe: &Recipe,
        host: &'a NodeDataset,
        device: &Device,
    ) -> Self {
        let score = Score::new(config, recipe, host);
        let place = (device, config.stored());
        let train = (host.train(), host.train().len());
        let evaluates_whole = !config.evaluate_batches || config.batches == Batching::Full;
        let parts = match config.batches {
            Batching::Parts { parts, clustered, .. } => {
                let method =
                    if clustered { PartitionMethod::Clusters } else { PartitionMethod::Random };
                let mut trains = vec![false; host.nodes()];
                host.train().iter().for_each(|&node| trains[node as usize] = true);
                let graph = host.graph().clone();
                let partition = Partition::new(&graph, parts, method, config.seed);
                Some(Arc::new(Parts { graph, partition, trains }))
            }
            _ => None,
        };
        Self {
            host,
            config,
            loss: recipe.loss.clone(),
            device: device.clone(),
            whole: evaluates_whole
                .then(|| DeviceData::new(host, None, train, recipe.loss.as_ref(), place)),
            splits: evaluates_whole.then(|| Splits::new(host, score.clone(), device)),
            score,
            parts,
        }
    }

    /// Also returns the unread mean loss.
    pub(super) fn epoch<M: NodeModel>(
        &self,
        replicas: Replicas<M>,
        seed: u64,
        lr: f64,
    ) -> Result<(Replicas<M>, Tensor<1>), TrainError> {
        if let (Batching::Full, Some(whole)) = (&self.config.batches, &self.whole) {
            let share = Share { graph: self.host.graph(), data: whole };
            return replicas.step(lr, &[share]);
        }
        let mut running = (replicas, Tensor::<1>::zeros([1], &self.device));
        match &self.config.batches {
            Batching::Neighbors { fanouts, nodes } => {
                let loader = NeighborLoader::new(self.host.graph(), fanouts.clone())
                    .with_nodes(self.host.train().to_vec())
                    .with_batch_size(*nodes)
                    .with_shuffle(true);
                for batch in loader.epoch(seed) {
                    let places = (0..batch.seeds as u32).collect();
                    running = self.step(running, lr, &[(batch, places)])?;
                }
            }
            Batching::Full | Batching::Parts { .. } => {
                let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
                for batches in self.induced(running.0.devices().len(), Some(&mut rng)) {
                    running = self.step(running, lr, &batches)?;
                }
            }
        }
        Ok(running)
    }

    /// Returns the unread numbers of [`scores`](Self::scores).
    pub(super) fn measured_step<M: NodeModel>(
        &self,
        replicas: Replicas<M>,
        lr: f64,
    ) -> Result<(Replicas<M>, Tensor<1>), TrainError> {
        let (Some(whole), Some(splits)) = (&self.whole, &self.splits) else {
            unreachable!("captured epochs are of full batches");
        };
        let graph = self.host.graph();
        let (replicas, loss) = replicas.step(lr, &[Share { graph, data: whole }])?;
        let model = replicas.model().valid();
        let logits = whole.widened(model.forward(graph, whole.features.clone()));
        let numbers = splits.numbers(whole, logits, loss);
        Ok((replicas, numbers))
    }

    pub(super) fn scores(&self, numbers: &[f32]) -> Evaluation {
        let splits = self.splits.as_ref().expect("captured epochs are of full batches");
        let (loss, [train, val, test]) = splits.scores(numbers);
        Evaluation { loss, train, val, test }
    }

    pub(super) fn reads_logits(&self) -> bool {
        self.splits.as_ref().is_none_or(Splits::reads_logits)
    }

    fn step<M: NodeModel>(
        &self,
        (replicas, sum): (Replicas<M>, Tensor<1>),
        lr: f64,
        batches: &[(Batch, Vec<u32>)],
    ) -> Result<(Replicas<M>, Tensor<1>), TrainError> {
        let count: usize = batches.iter().map(|(_, train)| train.len()).sum();
        if count == 0 {
            return Ok((replicas, sum));
        }
        let pairs = batches.iter().zip(replicas.devices());
        let data: Vec<DeviceData> = pairs
            .map(|((batch, train), device)| {
                let (nodes, loss) = (Some(&batch.nodes[..]), self.loss.as_ref());
                let place = (device, self.config.stored());
                DeviceData::new(self.host, nodes, (train, count), loss, place)
            })
            .collect();
        let pairs = batches.iter().zip(&data);
        let shares: Vec<Share> =
            pairs.map(|((batch, _), data)| Share { graph: &batch.graph, data }).collect();
        let (replicas, loss) = replicas.step(lr, &shares)?;
        let part = count as f64 / self.host.train().len() as f64;
        Ok((replicas, sum + loss * part))
    }

    fn induced(&self, devices: usize, rng: Option<&mut Xoshiro256PlusPlus>) -> Ahead<PartsPlan> {
        let parts = self.parts.clone().expect("batches of parts");
        let mut order: Vec<usize> = (0..parts.partition.parts()).collect();
        let trains = rng.is_some();
        if let Some(rng) = rng {
            order.shuffle(rng);
        }
        let together = match self.config.batches {
            Batching::Parts { together, .. } => together,
            _ => 1,
        };
        let share = |step: &[usize]| {
            let shares = step.chunks(step.len() / devices);
            shares.map(<[usize]>::to_vec).collect()
        };
        let steps: Vec<Vec<Vec<usize>>> = order.chunks(together * devices).map(share).collect();
        let count = steps.len();
        Ahead::new(PartsPlan { parts, trains, steps }, count, default_workers(), 1)
    }

    /// Full-graph evaluation computes a missing `loss`.
    pub(super) fn measure<M: NodeModel>(
        &self,
        model: &M,
        loss: Option<Tensor<1>>,
    ) -> Result<Evaluation, TrainError> {
        read_sync(self.measure_async(model, loss))
    }

    pub(super) async fn measure_async<M: NodeModel>(
        &self,
        model: &M,
        loss: Option<Tensor<1>>,
    ) -> Result<Evaluation, TrainError> {
        let copy = self.config.stored().map(|dtype| copy_in(model, dtype));
        let model = copy.as_ref().unwrap_or(model);
        let (loss, [train, val, test]) = match (&self.whole, &self.splits) {
            (Some(whole), Some(splits)) => {
                let logits = model.forward(self.host.graph(), whole.features.clone());
                let logits = whole.widened(logits);
                splits.measure(self.host, whole, logits, loss).await?
            }
            _ => {
                let logits = self.logits_by_batches(model).await?;
                let scores = self.score.splits(&logits, self.host);
                let loss = match loss {
                    Some(loss) => read_async(loss).await?[0].into(),
                    None => f64::NAN,
                };
                (loss, scores)
            }
        };
        Ok(Evaluation { loss, train, val, test })
    }

    async fn logits_by_batches<M: NodeModel>(&self, model: &M) -> Result<Vec<f32>, TrainError> {
        let classes = self.host.classes();
        let mut all = vec![0f32; self.host.nodes() * classes];
        let mut batch = async |batch: Batch| {
            let nodes = Some(&batch.nodes[..]);
            let place = (&self.device, self.config.stored());
            let data = DeviceData::new(self.host, nodes, (&[], 1), None, place);
            let logits = model.forward(&batch.graph, data.features.clone());
            let logits = read_async(data.widened(logits).reshape([-1])).await?;
            let seeds = batch.nodes[..batch.seeds].iter();
            for (&node, row) in seeds.zip(logits.chunks_exact(classes)) {
                all[node as usize * classes..][..classes].copy_from_slice(row);
            }
            Ok::<_, TrainError>(())
        };
        match &self.config.batches {
            Batching::Neighbors { fanouts, nodes } => {
                let splits = [self.host.train(), self.host.val(), self.host.test()].concat();
                let loader = NeighborLoader::new(self.host.graph(), fanouts.clone())
                    .with_nodes(splits)
                    .with_batch_size(*nodes);
                for sampled in loader.epoch(0) {
                    batch(sampled).await?;
                }
            }
            Batching::Full | Batching::Parts { .. } => {
                for (parts, _) in self.induced(1, None).flatten() {
                    batch(parts).await?;
                }
            }
        }
        Ok(all)
    }
}

/// Steps of parts per device.
struct PartsPlan {
    parts: Arc<Parts>,
    trains: bool,
    steps: Vec<Vec<Vec<usize>>>,
}

impl Plan for PartsPlan {
    type Item = Vec<(Batch, Vec<u32>)>;
    type Scratch = ();

    fn scratch(&self) {}

    fn item(&self, at: usize, (): &mut ()) -> Self::Item {
        let Parts { graph, partition, trains } = &*self.parts;
        let batch = |parts: &Vec<usize>| {
            let batch = partition.batch(graph, parts);
            let trained = |&(_, &node): &(u32, &u32)| self.trains && trains[node as usize];
            let places = (0u32..).zip(&batch.nodes).filter(trained).map(|(at, _)| at).collect();
            (batch, places)
        };
        self.steps[at].iter().map(batch).collect()
    }
}
