use std::{fmt, io, ops::ControlFlow, slice, sync::Arc, time::Instant};

use burn::{
    grad_clipping::GradientClippingConfig, lr_scheduler::LrSchedulerConfig, module::Module,
    tensor::Device,
};
use serde::{Serialize, de::DeserializeOwned};
use sparsek::{io::memory, steps::StepRow};

use super::{
    capture::{Capture, copied},
    checkpoint::{CheckpointDir, RunId, SavedRun, best_of},
    config::{Batching, TrainConfig},
    data::{check_memory, check_sizes},
    devices::{Sum, sum_over_devices},
    engine::Engine,
    epochs::{Epochs, seed_all},
    error::TrainError,
    fingerprint::Preparation,
    loss::NodeLoss,
    metric::NodeMetric,
    optimizer::{OptimizerConfig, adam_row},
    recipe::{Rates, Recipe},
    replicas::{Replicas, record},
    types::{EpochReport, Evaluation, Progress, TrainOutcome},
};
use crate::{
    datasets::NodeDataset,
    nn::{ModelError, NodeModelConfig},
    random,
};

/// Trains without a checkpoint.
pub fn train<C: NodeModelConfig>(
    config: &TrainConfig,
    model: &C,
    data: &NodeDataset,
    device: &Device,
    progress: &mut impl Progress,
) -> Result<TrainOutcome<C::Model>, TrainError> {
    Trainer::new(config, model, data)?.run(device, progress)
}

/// [`Trainer::run_on`] without a checkpoint.
pub fn train_on<C: NodeModelConfig>(
    config: &TrainConfig,
    model: &C,
    data: &NodeDataset,
    devices: &[Device],
    progress: &mut impl Progress,
) -> Result<TrainOutcome<C::Model>, TrainError> {
    Trainer::new(config, model, data)?.run_on(devices, progress)
}

/// Validated training run.
///
/// Each epoch takes Adam steps (Kingma and Ba, 2015), one per batch, on the mean cross-entropy
/// of training nodes, binary for sets, then evaluates all nodes. Loss, optimizer, schedule,
/// gradient clipping and metric can be replaced:
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::{
///     grad_clipping::GradientClippingConfig,
///     lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig,
///     nn::loss::CrossEntropyLossConfig,
///     optim::AdamWConfig,
///     tensor::Device,
/// };
/// use sparsek_gnn::{
///     datasets::karate,
///     nn::{ConvKind, PlainModelConfig},
///     train::{TrainConfig, Trainer},
/// };
///
/// let data = karate::karate_club();
/// let model = PlainModelConfig::new(ConvKind::Gcn, data.feature_width(), 16, data.classes());
/// let config = TrainConfig::new().with_epochs(30);
/// let smoothed = CrossEntropyLossConfig::new().with_smoothing(Some(0.1));
/// let trainer = Trainer::new(&config, &model, &data)
///     .unwrap()
///     .with_loss(smoothed)
///     .unwrap()
///     .with_optimizer(AdamWConfig::new())
///     .with_schedule(CosineAnnealingLrSchedulerConfig::new(0.01, 30))
///     .unwrap()
///     .with_gradient_clipping(GradientClippingConfig::Norm(1.0));
/// let run = trainer.run(&Device::flex(), &mut |_: &_| Ok(())).unwrap();
/// assert!(run.history[29].loss < run.history[0].loss);
/// # }
/// ```
///
/// Epochs seed the device, so resumed runs equal uninterrupted ones. On Flex runs repeat, unless
/// another thread draws from the process's random stream.
#[derive(Debug)]
pub struct Trainer<'a, C: NodeModelConfig> {
    config: &'a TrainConfig,
    model: &'a C,
    data: &'a NodeDataset,
    recipe: Recipe,
    callbacks: Vec<Callback<'a, C::Model>>,
    preparation: Preparation,
    id: RunId,
    checkpoint: Option<Checkpoint<C>>,
}

#[derive(Debug)]
enum Checkpoint<C> {
    New(CheckpointDir),
    Resumed(Box<SavedRun<C>>),
}

impl<'a, C: NodeModelConfig> Trainer<'a, C> {
    /// Errors for bad configurations, unfit datasets and empty splits.
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
            recipe: Recipe::default(),
            callbacks: Vec::new(),
            preparation: Preparation::new(),
            id: RunId::random(),
            checkpoint: None,
        })
    }

    /// Records the preparation to compare; call before [`Trainer::resume`].
    pub fn with_preparation(mut self, preparation: Preparation) -> Self {
        self.preparation = preparation;
        self
    }

    /// Replaces the loss; errors when unfit. Batches weigh by training nodes. Call all replacements
    /// before [`Trainer::resume`].
    pub fn with_loss(mut self, loss: impl NodeLoss + 'static) -> Result<Self, TrainError> {
        loss.check(self.data)?;
        self.recipe.loss = Some(Arc::new(loss));
        Ok(self)
    }

    /// Replaces the metric; errors when unfit. Epochs then read all logits.
    pub fn with_metric(mut self, metric: impl NodeMetric + 'static) -> Result<Self, TrainError> {
        metric.check(self.data)?;
        self.recipe.metric = Some(Arc::new(metric));
        Ok(self)
    }

    /// Replaces the optimizer; [`TrainConfig::weight_decay`] is unused.
    pub fn with_optimizer(mut self, optimizer: impl OptimizerConfig) -> Self {
        self.recipe.optimizer = Some(Arc::new(optimizer));
        self
    }

    /// Replaces [`TrainConfig::lr`] by an epoch schedule; errors when impossible.
    pub fn with_schedule(
        mut self,
        schedule: impl Into<LrSchedulerConfig>,
    ) -> Result<Self, TrainError> {
        self.recipe.schedule = Some(schedule.into());
        Rates::new(self.config, &self.recipe, 0)?;
        Ok(self)
    }

    /// Clips each parameter's gradient.
    pub fn with_gradient_clipping(mut self, clipping: GradientClippingConfig) -> Self {
        self.recipe.clipping = Some(clipping);
        self
    }

    /// Captures an epoch's launches as a graph and replays it, for small graphs, whose epochs wait
    /// for the host. [`Trainer::run`] only.
    ///
    /// CUDA, ROCm and WebGPU devices have graphs; others run each epoch, to the same result. Random
    /// numbers differ from uncaptured runs. Running needs full batches, one device, full precision,
    /// Adam, the built-in loss, accuracy or micro-F1, and a model that
    /// [can be captured](NodeModelConfig::can_capture). Errors also if the device cannot record, as
    /// when other threads allocate on it.
    pub fn with_capture(mut self) -> Self {
        self.recipe.captures = true;
        self
    }

    /// Calls `each` after an epoch, with the model outside autodiff. [`ControlFlow::Break`] acts as
    /// [`Progress::stop`]; errors end training.
    pub fn with_callback(
        mut self,
        each: impl FnMut(&EpochReport, &C::Model) -> io::Result<ControlFlow<()>> + 'a,
    ) -> Self {
        self.callbacks.push(Callback(Box::new(each)));
        self
    }

    /// Run id, kept on resumption.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// Epochs before resumption.
    pub fn earlier(&self) -> Vec<EpochReport> {
        self.saved().map(SavedRun::history).unwrap_or_default()
    }

    fn saved(&self) -> Option<&SavedRun<C>> {
        match &self.checkpoint {
            Some(Checkpoint::Resumed(saved)) => Some(saved),
            _ => None,
        }
    }

    /// Saves into a directory; errors when it holds a run.
    pub fn with_checkpoint(mut self, checkpoint: CheckpointDir) -> Result<Self, TrainError> {
        checkpoint.check_new()?;
        self.checkpoint = Some(Checkpoint::New(checkpoint));
        Ok(self)
    }

    /// Continues a saved run and locks its directory. Epochs, patience and save interval may
    /// change; all else must match.
    pub fn resume(mut self, checkpoint: CheckpointDir) -> Result<Self, TrainError> {
        let saved = checkpoint.resume::<C>()?;
        let differs = |what: String| {
            let reason = format!("the saved run has {what}");
            Err(TrainError::Checkpoint { file: checkpoint.path().to_path_buf(), reason })
        };
        let model = saved.model_config();
        if *model != as_saved(self.model) {
            let one_line = serde_json::to_string(model).unwrap_or_default();
            return differs(format!("another model: {one_line}"));
        }
        let (train, own) = (saved.train_config(), as_saved(self.config));
        let steps =
            |of: &TrainConfig| (of.lr, of.weight_decay, of.seed, of.batches.clone(), of.stored());
        let chooses = |of: &TrainConfig| (of.metric_for(self.data), of.evaluate_batches);
        if steps(train) != steps(&own) || chooses(train) != chooses(&own) {
            return differs(format!(
                "lr {}, weight decay {}, seed {}, batches {:?}, precision {:?}, metric {:?}",
                train.lr,
                train.weight_decay,
                train.seed,
                train.batches,
                train.precision.unwrap_or_default(),
                train.metric
            ));
        }
        let parts = saved.recipe().differences(&as_saved(&self.recipe.record()));
        if !parts.is_empty() {
            return differs(format!("another {}", parts.join(", another ")));
        }
        saved.check_dataset(self.data, &self.preparation)?;
        self.id = saved.id().clone();
        self.checkpoint = Some(Checkpoint::Resumed(Box::new(saved)));
        Ok(self)
    }

    /// Uploads dataset and model, with or without autodiff.
    pub fn start(&self, device: &Device) -> Result<Epochs<'a, C>, TrainError> {
        if self.recipe.captures {
            return Err(TrainError::Config("only whole runs are captured".to_string()));
        }
        self.start_on(slice::from_ref(device), sum_over_devices)
    }

    fn start_on(&self, devices: &[Device], sum: Sum) -> Result<Epochs<'a, C>, TrainError> {
        devices.iter().try_for_each(|device| self.config.check_device(device))?;
        let first = devices[0].clone().without_autodiff();
        let engine = Engine::new(self.config, &self.recipe, self.data, &first);
        seed_all(devices, self.config.seed, 0);
        let parts = (self.config, &self.recipe);
        let mut replicas = Replicas::new(parts, self.model, devices, sum)?;
        let mut done = 0;
        if let Some(saved) = self.saved().filter(|saved| saved.epochs() > 0) {
            replicas = replicas.restore(saved)?;
            done = saved.epochs();
        }
        let rates = Rates::new(self.config, &self.recipe, done)?;
        let replicas = Some(replicas);
        Ok(Epochs { config: self.config, engine, replicas, rates, done, capture: None })
    }

    /// None if no epoch is left.
    fn capture(&self, epochs: &Epochs<C>, device: &Device) -> Result<Option<Capture>, TrainError> {
        let (config, recipe) = (self.config, &self.recipe);
        let needs = [
            (config.batches == Batching::Full, "full batches"),
            (epochs.replicas().devices().len() == 1, "one device"),
            (config.stored().is_none(), "full precision"),
            (recipe.optimizer.is_none() && recipe.clipping.is_none(), "Adam without clipping"),
            (recipe.loss.is_none(), "the built-in loss"),
            (!epochs.engine.reads_logits(), "accuracy or micro-F1"),
            (self.model.can_capture(), "a model that allows it"),
        ];
        if let Some((_, need)) = needs.into_iter().find(|(met, _)| !met) {
            return Err(TrainError::Config(format!("capture needs {need}")));
        }
        let left = config.epochs.saturating_sub(epochs.done);
        let bytes = memory::product(&[left, size_of::<StepRow>()]);
        let checked = memory::check(format_args!("numbers of {left} epochs"), bytes);
        checked.map_err(ModelError::from)?;
        let mut rates = Rates::new(config, recipe, epochs.done)?;
        let row = |epoch| adam_row(rates.next(), epoch, random::nth(config.seed, epoch as u64));
        let rows: Vec<_> = (epochs.done + 1..=config.epochs).map(row).collect();
        Ok((!rows.is_empty()).then(|| Capture::new(&rows, device)))
    }

    /// Evaluates with training's loss and metric.
    pub fn evaluate(&self, model: &C::Model, device: &Device) -> Result<Evaluation, TrainError> {
        self.config.check_device(device)?;
        let device = device.clone().without_autodiff();
        Engine::new(self.config, &self.recipe, self.data, &device).measure(&model.valid(), None)
    }

    /// Trains on one device, with or without autodiff. Errors for a non-finite loss, checkpoint or
    /// device failures.
    pub fn run(
        self,
        device: &Device,
        progress: &mut impl Progress,
    ) -> Result<TrainOutcome<C::Model>, TrainError> {
        self.run_on(slice::from_ref(device), progress)
    }

    /// Trains on several devices of one host, each with the model and `together` parts
    /// ([`Batching::Parts`]).
    ///
    /// Steps lack edges between devices. Collectives sum gradients; models must end equal. The
    /// first device evaluates and saves. Errors also as [`TrainConfig::check_devices`].
    pub fn run_on(
        self,
        devices: &[Device],
        progress: &mut impl Progress,
    ) -> Result<TrainOutcome<C::Model>, TrainError> {
        self.config.check_devices(devices)?;
        self.run_with(devices, sum_over_devices, progress)
    }

    pub(super) fn run_with(
        mut self,
        devices: &[Device],
        sum: Sum,
        progress: &mut impl Progress,
    ) -> Result<TrainOutcome<C::Model>, TrainError> {
        let mut epochs = self.start_on(devices, sum)?;
        let inner = devices[0].clone().without_autodiff();
        if self.recipe.captures {
            epochs.capture = self.capture(&epochs, &inner)?;
        }
        let (mut saved, earlier) = match self.checkpoint {
            None => (None, Vec::new()),
            Some(Checkpoint::New(dir)) => {
                let data = (self.data, &self.preparation);
                let train = (self.config, self.recipe.record());
                let saved = dir.begin(&self.id, self.model, train, data)?;
                (Some(saved), Vec::new())
            }
            Some(Checkpoint::Resumed(saved)) => {
                let earlier = saved.history();
                (Some(*saved), earlier)
            }
        };
        let mut best = match (&saved, best_of(&earlier)) {
            (Some(saved), Some(report)) => Some((report, saved.best_model(&inner)?)),
            _ => None,
        };
        let mut history: Vec<EpochReport> = Vec::new();
        let mut interrupted = false;
        for epoch in epochs.done + 1..=self.config.epochs {
            if let (Some(patience), Some((best, _))) = (self.config.patience, &best)
                && (epoch - 1).saturating_sub(best.epoch) >= patience
            {
                break;
            }
            let (report, mut model) = one_epoch(&mut epochs)?;
            history.push(report);
            let better = best.as_ref().is_none_or(|(best, _)| report.val > best.val);
            if epochs.capture.is_some() && (better || !self.callbacks.is_empty()) {
                model = copied(model, &inner)?;
            }
            // Saved epochs are not rerun.
            progress.on_epoch(&report)?;
            let mut stops = progress.stop();
            for Callback(each) in &mut self.callbacks {
                stops |= each(&report, &model)?.is_break();
            }
            interrupted = epoch < self.config.epochs && stops;
            if better {
                best = Some((report, model));
            }
            if epoch.is_multiple_of(self.config.save_every) {
                save(&mut saved, &epochs, &history, &best, progress)?;
            }
            if interrupted {
                break;
            }
        }
        save(&mut saved, &epochs, &history, &best, progress)?;
        let Some((best, model)) = best else {
            return Err(TrainError::Config("no epoch ran".to_string()));
        };
        epochs.replicas().check_equal("after training")?;
        let all = [&earlier[..], &history[..]].concat();
        Ok(TrainOutcome {
            model,
            best,
            ms_per_epoch: median_ms(&all),
            seconds: all.iter().map(|report| report.ms).sum::<f64>() / 1e3,
            earlier,
            history,
            epochs: epochs.done,
            interrupted,
            captured: epochs.capture.as_ref().is_some_and(Capture::is_recorded),
        })
    }
}

struct Callback<'a, M>(EachEpoch<'a, M>);

type EachEpoch<'a, M> = Box<dyn FnMut(&EpochReport, &M) -> io::Result<ControlFlow<()>> + 'a>;

impl<M> fmt::Debug for Callback<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callback")
    }
}

/// The model is outside autodiff.
fn one_epoch<C: NodeModelConfig>(
    epochs: &mut Epochs<C>,
) -> Result<(EpochReport, C::Model), TrainError> {
    let start = Instant::now();
    let Evaluation { loss, train, val, test } = epochs.measured()?;
    let epoch = epochs.done;
    if !loss.is_finite() {
        return Err(TrainError::Diverged { epoch, loss });
    }
    let report =
        EpochReport { epoch, loss, train, val, test, ms: start.elapsed().as_secs_f64() * 1e3 };
    Ok((report, epochs.model().valid()))
}

fn save<C: NodeModelConfig>(
    saved: &mut Option<SavedRun<C>>,
    epochs: &Epochs<C>,
    history: &[EpochReport],
    best: &Option<(EpochReport, C::Model)>,
    progress: &mut impl Progress,
) -> Result<(), TrainError> {
    let Some(saved) = saved else {
        return Ok(());
    };
    let first = history.partition_point(|report| report.epoch <= saved.epochs());
    let (new, Some((_, best))) = (&history[first..], best) else {
        return Ok(());
    };
    if new.is_empty() {
        return Ok(());
    }
    progress.before_save()?;
    saved.save(new, epochs.replicas().records()?, || record(best.clone()))
}

/// JSON may round numbers.
fn as_saved<T: Serialize + DeserializeOwned + Clone>(config: &T) -> T {
    let text = serde_json::to_string(config).ok();
    let back = text.and_then(|text| serde_json::from_str(&text).ok());
    back.unwrap_or_else(|| config.clone())
}

/// Evaluates as [`Trainer::evaluate`].
pub fn evaluate<C: NodeModelConfig>(
    config: &TrainConfig,
    model_config: &C,
    model: &C::Model,
    data: &NodeDataset,
    device: &Device,
) -> Result<Evaluation, TrainError> {
    Trainer::new(config, model_config, data)?.evaluate(model, device)
}

fn check_fit(
    config: &TrainConfig,
    model: &impl NodeModelConfig,
    data: &NodeDataset,
) -> Result<(), TrainError> {
    let wanted = [model.input_width(), model.classes()];
    check_sizes(wanted, data.name(), [data.feature_width(), data.classes()])?;
    for (split, list) in
        [("training", data.train()), ("validation", data.val()), ("test", data.test())]
    {
        if list.is_empty() {
            return Err(TrainError::EmptySplit { split, dataset: data.name().to_string() });
        }
    }
    if let Batching::Parts { parts, .. } = config.batches
        && parts > data.nodes()
    {
        let reason = format!("{parts} parts of {} nodes", data.nodes());
        return Err(TrainError::Config(reason));
    }
    check_memory(config, model, data)?;
    config.metric_for(data).check(data)
}

fn median_ms(history: &[EpochReport]) -> f64 {
    let mut ms: Vec<f64> = history.iter().map(|report| report.ms).collect();
    ms.sort_unstable_by(f64::total_cmp);
    ms.get(ms.len() / 2).copied().unwrap_or(0.0)
}
