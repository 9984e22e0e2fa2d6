use std::sync::Arc;

use burn::tensor::{DType, Device, Int, Tensor, TensorData, activation::log_sigmoid, read_sync};
use sparsek::{
    dense::{class_hits, column_sums, cross_entropy},
    io::memory,
};

use super::{
    config::{Batching, TrainConfig},
    error::TrainError,
    loss::{NodeLoss, Targets},
    metric::Metric,
    recipe::Score,
};
use crate::{
    datasets::{Labels, NodeDataset},
    nn::{ModelError, NodeModelConfig},
};

/// Outside autodiff.
pub(super) struct DeviceData {
    /// In the layers' dtype.
    pub(super) features: Tensor<2>,
    wide: DType,
    goal: Goal,
    own: Option<OwnLoss>,
}

struct OwnLoss {
    loss: Arc<dyn NodeLoss>,
    /// None without training rows.
    rows: Option<(Tensor<1, Int>, Targets)>,
    /// Share of all training nodes.
    share: f64,
}

impl OwnLoss {
    fn mean(&self, logits: Tensor<2>) -> Tensor<1> {
        let Some((rows, targets)) = self.rows.clone() else {
            return sum(logits) * 0.0;
        };
        // Indices follow the logits into autodiff.
        let device = logits.device();
        let rows = rows.to_device(&device);
        let targets = match targets {
            Targets::Classes(labels) => Targets::Classes(labels.to_device(&device)),
            Targets::Sets(sets) => Targets::Sets(sets.to_device(&device)),
        };
        self.loss.forward(logits.select(0, rows), targets) * self.share
    }
}

enum Goal {
    Classes {
        /// `[nodes]`.
        labels: Tensor<1, Int>,
        /// Label where training, else −1.
        targets: Tensor<1, Int>,
        /// 1 / count.
        scale: f32,
    },
    Sets {
        /// `[nodes, classes]`.
        targets: Tensor<2>,
        /// 1 / (count · classes) where training.
        weights: Tensor<2>,
    },
}

impl DeviceData {
    /// Sums `train`, divides by `count`.
    pub(super) fn new(
        data: &NodeDataset,
        nodes: Option<&[u32]>,
        (train, count): (&[u32], usize),
        loss: Option<&Arc<dyn NodeLoss>>,
        (device, stored): (&Device, Option<DType>),
    ) -> Self {
        let (classes, width) = (data.classes(), data.feature_width());
        let device = &device.clone().without_autodiff();
        let (features, labels) = match nodes {
            None => (data.features().to_vec(), data.labels().clone()),
            Some(nodes) => {
                let row = |&node: &u32| &data.features()[node as usize * width..][..width];
                let features = nodes.iter().flat_map(row).copied().collect();
                (features, data.labels().of(nodes, classes))
            }
        };
        let rows = features.len() / width;
        let floats =
            |values, width| Tensor::from_data(TensorData::new(values, [rows, width]), device);
        let goal = match labels {
            Labels::Classes(labels) => {
                let labels: Vec<i32> = labels.iter().map(|&label| label as i32).collect();
                let mut targets = vec![-1; rows];
                for &at in train {
                    targets[at as usize] = labels[at as usize];
                }
                let ints = |values| Tensor::from_data(TensorData::new(values, [rows]), device);
                Goal::Classes {
                    labels: ints(labels),
                    targets: ints(targets),
                    scale: 1.0 / count as f32,
                }
            }
            Labels::Sets(sets) => {
                let mut weights = vec![0f32; rows];
                for &at in train {
                    weights[at as usize] = 1.0 / (count * classes) as f32;
                }
                let targets = sets.iter().map(|&set| f32::from(set)).collect();
                Goal::Sets {
                    targets: upload(targets, [rows, classes], device),
                    weights: upload(weights, [rows, 1], device),
                }
            }
        };
        let rows = |train: &[u32]| {
            let rows: Vec<i32> = train.iter().map(|&row| row as i32).collect();
            let rows = TensorData::new(rows, [train.len()]);
            let rows = Tensor::<1, Int>::from_data(rows, device);
            let targets = match &goal {
                Goal::Classes { labels, .. } => {
                    Targets::Classes(labels.clone().select(0, rows.clone()))
                }
                Goal::Sets { targets, .. } => {
                    Targets::Sets(targets.clone().select(0, rows.clone()).int())
                }
            };
            (rows, targets)
        };
        let own = loss.map(|loss| OwnLoss {
            loss: loss.clone(),
            rows: (!train.is_empty()).then(|| rows(train)),
            share: train.len() as f64 / count as f64,
        });
        let features: Tensor<2> = floats(features, width);
        let wide = features.dtype();
        let features = stored.into_iter().fold(features, |rows, dtype| rows.cast(dtype));
        Self { features, wide, goal, own }
    }

    /// `[1]`.
    pub(super) fn loss(&self, logits: Tensor<2>) -> Tensor<1> {
        let logits = self.widened(logits);
        if let Some(own) = &self.own {
            return own.mean(logits);
        }
        match &self.goal {
            Goal::Classes { targets, scale, .. } => cross_entropy(logits, targets.clone(), *scale),
            Goal::Sets { targets, weights } => {
                let absent = targets.clone().neg() + 1.0;
                let each = logits.clone() * absent - log_sigmoid(logits);
                sum(each * weights.clone())
            }
        }
    }
}

impl DeviceData {
    pub(super) fn widened(&self, logits: Tensor<2>) -> Tensor<2> {
        match logits.dtype() == self.wide {
            true => logits,
            false => logits.cast(self.wide),
        }
    }
}

pub(super) fn check_sizes(
    wanted: [usize; 2],
    dataset: &str,
    found: [usize; 2],
) -> Result<(), TrainError> {
    if wanted == found {
        return Ok(());
    }
    let [model, found] = [wanted, found]
        .map(|[features, classes]| format!("{features} features and {classes} classes"));
    Err(TrainError::Mismatch { model, dataset: dataset.to_string(), found })
}

pub(super) fn check_memory(
    config: &TrainConfig,
    model: &impl NodeModelConfig,
    data: &NodeDataset,
) -> Result<(), TrainError> {
    // Batches need less.
    let batched = config.batches != Batching::Full;
    let nodes = match batched && config.evaluate_batches {
        true => 0,
        false => data.nodes(),
    };
    let (width, classes) = (data.feature_width(), data.classes());
    // Targets, scores, their logarithms, gradient.
    let scores = memory::product(&[nodes, classes, 4 * size_of::<f32>()]);
    let features = memory::product(&[nodes, width, size_of::<f32>()]);
    let trained = model.training_bytes(if batched { 0 } else { nodes });
    let bytes = scores.saturating_add(features).saturating_add(trained);
    let asked = format_args!(
        "training on {} ({} nodes, {width} features, {classes} classes)",
        data.name(),
        data.nodes()
    );
    memory::check(asked, bytes).map_err(|error| ModelError::from(error).into())
}

pub(super) struct Splits {
    score: Score,
    /// `[nodes, 3]`: 1 at the split.
    masks: Tensor<2>,
    sizes: [usize; 3],
}

impl Splits {
    pub(super) fn new(data: &NodeDataset, score: Score, device: &Device) -> Self {
        let lists = [data.train(), data.val(), data.test()];
        let mut masks = vec![0f32; data.nodes() * 3];
        for (column, list) in lists.into_iter().enumerate() {
            for &node in list {
                masks[node as usize * 3 + column] = 1.0;
            }
        }
        let device = &device.clone().without_autodiff();
        Self {
            score,
            masks: upload(masks, [data.nodes(), 3], device),
            sizes: lists.map(<[u32]>::len),
        }
    }

    /// Counts are exact below 2^24.
    pub(super) async fn measure(
        &self,
        host: &NodeDataset,
        data: &DeviceData,
        logits: Tensor<2>,
        loss: Option<Tensor<1>>,
    ) -> Result<(f64, [f64; 3]), TrainError> {
        let loss = loss.unwrap_or_else(|| data.loss(logits.clone()));
        if self.reads_logits() {
            let logits = read_async(logits.reshape([-1])).await?;
            let scores = self.score.splits(&logits, host);
            return Ok((f64::from(read_async(loss).await?[0]), scores));
        }
        let numbers = read_async(self.numbers(data, logits, loss)).await?;
        Ok(self.scores(&numbers))
    }

    /// Whether the host computes the metric.
    pub(super) fn reads_logits(&self) -> bool {
        matches!(self.score, Score::Own(_) | Score::BuiltIn(Metric::RocAuc))
    }

    /// Loss and counts.
    pub(super) fn numbers(
        &self,
        data: &DeviceData,
        logits: Tensor<2>,
        loss: Tensor<1>,
    ) -> Tensor<1> {
        let count = |rows: Tensor<2>| column_sums(self.masks.clone() * rows);
        let counts = match &data.goal {
            Goal::Classes { labels, .. } => {
                vec![count(class_hits(logits, labels.clone()).unsqueeze_dim(1))]
            }
            Goal::Sets { targets, .. } => {
                let found = logits.greater_elem(0.0).float();
                let right = (found.clone() * targets.clone()).sum_dim(1);
                vec![count(right), count((found + targets.clone()).sum_dim(1))]
            }
        };
        Tensor::cat([vec![loss], counts].concat(), 0)
    }

    pub(super) fn scores(&self, numbers: &[f32]) -> (f64, [f64; 3]) {
        let numbers: Vec<f64> = numbers.iter().copied().map(f64::from).collect();
        let score = |split: usize| match numbers.get(4 + split) {
            Some(all) => 2.0 * numbers[1 + split] / all.max(1.0),
            None => numbers[1 + split] / self.sizes[split] as f64,
        };
        (numbers[0], [0, 1, 2].map(score))
    }
}

/// Contiguous: elementwise operations would keep upload padding.
fn upload(values: Vec<f32>, shape: [usize; 2], device: &Device) -> Tensor<2> {
    let values = TensorData::new(values, [shape[0] * shape[1]]);
    Tensor::<1>::from_data(values, device).reshape(shape)
}

/// `[1]`, in fixed order.
fn sum(x: Tensor<2>) -> Tensor<1> {
    column_sums(column_sums(x).unsqueeze_dim(1))
}

pub(super) fn read(tensor: Tensor<1>) -> Result<Vec<f32>, TrainError> {
    read_sync(read_async(tensor))
}

pub(super) async fn read_async(tensor: Tensor<1>) -> Result<Vec<f32>, TrainError> {
    let data = tensor.into_data_async().await;
    let data = data.map_err(|error| TrainError::Device(error.to_string()))?;
    let numbers = data.try_into_vec_as::<f32>();
    numbers.map_err(|error| TrainError::Device(error.to_string()))
}
