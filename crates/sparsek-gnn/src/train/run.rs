//! The training loop and the evaluation.
use std::{slice, time::Instant};

use burn::{module::Module, tensor::Device};

use super::{
    Batching, CheckpointDir, EpochReport, Epochs, NodeModelConfig, Progress, RunState, TrainConfig,
    TrainError,
    devices::{Sum, sum_over_devices},
    engine::Engine,
    epochs::seed_all,
    replicas::Replicas,
};
use crate::datasets::NodeDataset;

/// Trains a model from random parameters: [`Trainer`] without a checkpoint.
///
/// # Errors
/// [`TrainError`].
pub fn train<C: NodeModelConfig>(
    config: &TrainConfig,
    model: &C,
    data: &NodeDataset,
    device: &Device,
    progress: &mut impl Progress,
) -> Result<TrainOutcome<C::Model>, TrainError> {
    Trainer::new(config, model, data)?.run(device, progress)
}

/// As [`train`], on several devices of one host: [`Trainer::run_on`].
///
/// # Errors
/// [`TrainError`].
pub fn train_on<C: NodeModelConfig>(
    config: &TrainConfig,
    model: &C,
    data: &NodeDataset,
    devices: &[Device],
    progress: &mut impl Progress,
) -> Result<TrainOutcome<C::Model>, TrainError> {
    Trainer::new(config, model, data)?.run_on(devices, progress)
}

/// A training run that has been checked and not begun.
///
/// The loss is the mean over the training nodes of the cross-entropy, or where a node may have any number of classes of the binary
/// cross-entropy of each. Each epoch takes one step of Adam, or one for each batch, and evaluates all nodes once, reading a few
/// numbers back from the device. Kingma and Ba, *Adam*, ICLR 2015, with an L2 penalty if asked.
///
/// The device is seeded anew from (seed, epoch) in every epoch, so that a resumed run takes the steps that the
/// uninterrupted run would have taken. On Flex equal configurations give equal runs, as long as no other
/// thread draws random numbers: Flex has one stream per process.
#[derive(Debug)]
pub struct Trainer<'a, C> {
    config: &'a TrainConfig,
    model: &'a C,
    data: &'a NodeDataset,
    checkpoint: Option<CheckpointDir>,
    resumed: Option<RunState>,
}

/// What a training run leaves.
#[derive(Clone, Debug)]
pub struct TrainOutcome<M> {
    /// The model of the epoch with the best validation metric, outside autodiff. When a resumed run found no better
    /// epoch, it is the one that was saved.
    pub model: M,
    /// That epoch, the first of equals; its test metric is the run's result.
    pub best: EpochReport,
    /// The epochs that ran now, in order.
    pub history: Vec<EpochReport>,
    /// Number of epochs that ran in all, those before a resumption included.
    pub epochs: usize,
    /// Median wall-clock milliseconds of the epochs that ran now, 0 if none did.
    pub ms_per_epoch: f64,
    /// Seconds of all epochs, those before a resumption included.
    pub seconds: f64,
}

/// What an evaluation found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evaluation {
    /// Mean loss of the training nodes, without dropout; NaN where it was evaluated in batches.
    pub loss: f64,
    /// The metric on the training nodes.
    pub train: f64,
    /// The metric on the validation nodes.
    pub val: f64,
    /// The metric on the test nodes.
    pub test: f64,
}

impl<'a, C: NodeModelConfig> Trainer<'a, C> {
    /// Checks that the configurations are in range and fit the dataset.
    ///
    /// # Errors
    /// [`TrainError`] when they do not, or when a split is empty.
    pub fn new(
        config: &'a TrainConfig,
        model: &'a C,
        data: &'a NodeDataset,
    ) -> Result<Self, TrainError> {
        config.validate()?;
        model.validate()?;
        check_fit(config, model, data)?;
        Ok(Self {
            config,
            model,
            data,
            checkpoint: None,
            resumed: None,
        })
    }

    /// Saves into a directory that holds no run yet.
    ///
    /// # Errors
    /// [`TrainError::Checkpoint`] when it does. Nothing is written before [`Trainer::run`].
    pub fn with_checkpoint(mut self, checkpoint: CheckpointDir) -> Result<Self, TrainError> {
        if checkpoint.exists() {
            let reason = match checkpoint.state() {
                Ok(_) => "a run is saved here already; resume it or choose another directory",
                Err(_) => {
                    "a run was begun here that cannot be resumed, as no epoch of it was saved; choose another directory or remove this one"
                }
            };
            let reason = reason.to_string();
            return Err(TrainError::Checkpoint {
                file: checkpoint.path().to_path_buf(),
                reason,
            });
        }
        self.checkpoint = Some(checkpoint);
        Ok(self)
    }

    /// Goes on from the last saved epoch of a run. Epochs and patience may differ from those it was begun with.
    ///
    /// # Errors
    /// [`TrainError::Checkpoint`] when the run cannot be read, or was begun with another model, learning rate, penalty,
    /// seed, batching or metric. Nothing is written before [`Trainer::run`].
    pub fn resume(mut self, checkpoint: CheckpointDir) -> Result<Self, TrainError> {
        let state = checkpoint.state()?;
        let (model, train): (C, TrainConfig) =
            (checkpoint.model_config()?, checkpoint.train_config()?);
        let differs = |what: String| {
            let reason = format!("the saved run has {what}");
            Err(TrainError::Checkpoint {
                file: checkpoint.path().to_path_buf(),
                reason,
            })
        };
        if model != *self.model {
            let one_line = serde_json::to_string(&model).unwrap_or_default();
            return differs(format!("another model: {one_line}"));
        }
        let steps = |of: &TrainConfig| (of.lr, of.weight_decay, of.seed, of.batches.clone());
        let chooses = |of: &TrainConfig| (of.metric_for(self.data), of.evaluate_batches);
        if steps(&train) != steps(self.config) || chooses(&train) != chooses(self.config) {
            return differs(format!(
                "lr {}, weight decay {}, seed {}, batches {:?}, metric {:?}",
                train.lr, train.weight_decay, train.seed, train.batches, train.metric
            ));
        }
        self.checkpoint = Some(checkpoint);
        self.resumed = Some(state);
        Ok(self)
    }

    /// Puts the dataset and the model, that of the run if one is resumed, on the device, with or without autodiff.
    ///
    /// # Errors
    /// [`TrainError`] when the model cannot be built, or a checkpoint cannot be read.
    pub fn start(&self, device: &Device) -> Result<Epochs<'a, C>, TrainError> {
        self.start_on(slice::from_ref(device), sum_over_devices)
    }

    fn start_on(&self, devices: &[Device], sum: Sum) -> Result<Epochs<'a, C>, TrainError> {
        let engine = Engine::new(
            self.config,
            self.data,
            &devices[0].clone().without_autodiff(),
        );
        seed_all(devices, self.config.seed, 0);
        let mut replicas = Replicas::new(self.config, self.model, devices, sum)?;
        let mut done = 0;
        if let (Some(state), Some(checkpoint)) = (&self.resumed, &self.checkpoint) {
            replicas = replicas.restore(checkpoint)?;
            done = state.last.epoch;
        }
        Ok(Epochs {
            config: self.config,
            engine,
            replicas: Some(replicas),
            done,
        })
    }

    /// Trains on the device, with or without autodiff.
    ///
    /// # Errors
    /// [`TrainError`] when the loss is no longer a number, a checkpoint cannot be written or read, or the device fails.
    pub fn run(
        self,
        device: &Device,
        progress: &mut impl Progress,
    ) -> Result<TrainOutcome<C::Model>, TrainError> {
        self.run_on(slice::from_ref(device), progress)
    }

    /// Trains on several devices of one host, each with the model, its optimizer's state, and as many parts of the graph
    /// ([`Batching::Parts`]) at a time as `together` says. A step is that of one device on the training nodes of all its parts; edges
    /// between parts on different devices are left out of it. Gradients are summed by Burn's collectives, so the models stay equal,
    /// which is checked at the end. Evaluation and checkpoints are those of the first device.
    ///
    /// # Errors
    /// As [`Trainer::run`]; [`TrainError::Devices`] as [`TrainConfig::check_devices`], before anything is written.
    pub fn run_on(
        self,
        devices: &[Device],
        progress: &mut impl Progress,
    ) -> Result<TrainOutcome<C::Model>, TrainError> {
        self.config.check_devices(devices)?;
        self.run_with(devices, sum_over_devices, progress)
    }

    pub(super) fn run_with(
        self,
        devices: &[Device],
        sum: Sum,
        progress: &mut impl Progress,
    ) -> Result<TrainOutcome<C::Model>, TrainError> {
        let mut epochs = self.start_on(devices, sum)?;
        let (mut best, mut best_model, mut seconds) = match (&self.resumed, &self.checkpoint) {
            (Some(state), Some(checkpoint)) => {
                let inner = devices[0].clone().without_autodiff();
                let (_, best_model) = checkpoint.best_model::<C>(&inner)?;
                (
                    Some(checkpoint.best_report()?),
                    Some(best_model),
                    state.seconds,
                )
            }
            _ => (None, None, 0.0),
        };
        let first = epochs.done + 1;
        if let (Some(checkpoint), None) = (&self.checkpoint, &self.resumed) {
            checkpoint.create(self.model, self.config)?;
        }

        let mut history = Vec::new();
        let mut last_saved = first - 1;
        for epoch in first..=self.config.epochs {
            if let (Some(patience), Some(best)) = (self.config.patience, &best)
                && (epoch - 1).saturating_sub(best.epoch) >= patience
            {
                break;
            }
            let start = Instant::now();
            let loss = epochs.advance()?;
            let valid = epochs.model().valid();
            let found = epochs.engine.measure(&valid, Some(loss))?;
            if !found.loss.is_finite() {
                return Err(TrainError::Diverged {
                    epoch,
                    loss: found.loss,
                });
            }
            let elapsed = start.elapsed().as_secs_f64();
            seconds += elapsed;
            let Evaluation {
                loss,
                train,
                val,
                test,
            } = found;
            let report = EpochReport {
                epoch,
                loss,
                train,
                val,
                test,
                ms: elapsed * 1e3,
            };

            if best.is_none_or(|best: EpochReport| val > best.val) {
                if let Some(checkpoint) = &self.checkpoint {
                    checkpoint.save_best(valid.clone(), &report)?;
                }
                (best, best_model) = (Some(report), Some(valid));
            }
            history.push(report);
            if let Some(checkpoint) = &self.checkpoint
                && (epoch.is_multiple_of(self.config.save_every) || epoch == self.config.epochs)
            {
                epochs.replicas().save(checkpoint, report, seconds)?;
                last_saved = epoch;
            }
            progress.on_epoch(&report)?;
        }
        let (Some(best), Some(best_model)) = (best, best_model) else {
            return Err(TrainError::Config("no epoch was run".to_string()));
        };
        if let (Some(checkpoint), Some(&last)) = (&self.checkpoint, history.last())
            && last_saved != last.epoch
        {
            epochs.replicas().save(checkpoint, last, seconds)?;
        }
        epochs.replicas().check_equal("after training")?;
        Ok(TrainOutcome {
            model: best_model,
            best,
            ms_per_epoch: median_ms(&history),
            history,
            epochs: epochs.done,
            seconds,
        })
    }
}

/// The metric of a model on a dataset, without dropout, as [`Trainer`] with this configuration measures it.
///
/// # Errors
/// [`TrainError`] when the model does not fit the dataset, a split is empty, or the device fails.
pub fn evaluate<C: NodeModelConfig>(
    config: &TrainConfig,
    model_config: &C,
    model: &C::Model,
    data: &NodeDataset,
    device: &Device,
) -> Result<Evaluation, TrainError> {
    check_fit(config, model_config, data)?;
    let device = device.clone().without_autodiff();
    Engine::new(config, data, &device).measure(&model.valid(), None)
}

fn check_fit(
    config: &TrainConfig,
    model: &impl NodeModelConfig,
    data: &NodeDataset,
) -> Result<(), TrainError> {
    let sizes = |features, classes| format!("{features} features and {classes} classes");
    let (wanted, found) = (
        (model.input_width(), model.classes()),
        (data.feature_width(), data.classes()),
    );
    if wanted != found {
        let dataset = data.name().to_string();
        return Err(TrainError::Mismatch {
            model: sizes(wanted.0, wanted.1),
            dataset,
            found: sizes(found.0, found.1),
        });
    }
    for (split, list) in [
        ("training", data.train()),
        ("validation", data.val()),
        ("test", data.test()),
    ] {
        if list.is_empty() {
            return Err(TrainError::EmptySplit {
                split,
                dataset: data.name().to_string(),
            });
        }
    }
    if let Batching::Parts { parts, .. } = config.batches
        && parts > data.nodes()
    {
        let reason = format!("{parts} parts of {} nodes", data.nodes());
        return Err(TrainError::Config(reason));
    }
    config.metric_for(data).check(data)
}

fn median_ms(history: &[EpochReport]) -> f64 {
    let mut ms: Vec<f64> = history.iter().map(|report| report.ms).collect();
    ms.sort_unstable_by(f64::total_cmp);
    ms.get(ms.len() / 2).copied().unwrap_or(0.0)
}
