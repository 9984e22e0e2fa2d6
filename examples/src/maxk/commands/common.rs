//! Shared code of the commands.
use std::{error::Error, fmt, fs::OpenOptions, path::Path};

use burn::{module::Module, tensor::Device};
use sparsek_examples::{
    backend::{Backend, hint},
    note, program, say,
};
use sparsek_gnn::{
    datasets::NodeDataset,
    nn::{Activation, MaxKModelConfig, NodeModelConfig, PlainModelConfig},
    train::{CheckpointDir, EpochReport, RunLog, RunSummary, TrainConfig, TrainOutcome, Trainer},
};

use crate::{
    cli::{name, plain_name},
    progress::{Display, Plain},
    stop,
};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Everything is done.
    Whole,
    /// A signal ended it.
    Interrupted,
}

pub(super) type Done<T = Ended> = Result<T, Box<dyn Error>>;

/// A model as logs and tables show it.
pub(super) trait Described: NodeModelConfig {
    fn name(&self) -> &'static str;
    fn activation(&self) -> Activation;
    /// Width of hidden layers, number of convolutions, dropout.
    fn sizes(&self) -> (usize, usize, f64);
}

impl Described for MaxKModelConfig {
    fn name(&self) -> &'static str {
        name(self.architecture)
    }

    fn activation(&self) -> Activation {
        self.activation
    }

    fn sizes(&self) -> (usize, usize, f64) {
        (self.d_hidden, self.layers, self.dropout)
    }
}

impl Described for PlainModelConfig {
    fn name(&self) -> &'static str {
        plain_name(self.conv)
    }

    fn activation(&self) -> Activation {
        self.activation
    }

    fn sizes(&self) -> (usize, usize, f64) {
        (self.d_hidden, self.layers, self.dropout)
    }
}

/// Whether a checkpoint's model is plain.
pub(super) fn is_plain(checkpoint: &Path) -> bool {
    CheckpointDir::new(checkpoint).open::<PlainModelConfig>().is_ok()
}

pub(super) fn devices(backends: &[Backend]) -> Vec<Device> {
    backends.iter().map(|b| b.device.clone()).collect()
}

pub(super) fn announce(backends: &[Backend], data: &NodeDataset) {
    for line in data.notes() {
        note!("{line}");
    }
    for backend in backends {
        say!("backend {backend}");
    }
    if let Some(hint) = hint() {
        say!("{hint}");
    }
    say!(
        "{}: {} nodes, {} edges, {} features, {} classes, {} / {} / {} to train, validate, test",
        data.name(),
        data.nodes(),
        data.graph().edges(),
        data.feature_width(),
        data.classes(),
        data.train().len(),
        data.val().len(),
        data.test().len()
    );
}

/// Trains, logs and prints a model; returns no summary when interrupted.
pub(super) fn run<C: Described>(
    trainer: Trainer<'_, C>,
    backends: &[Backend],
    config: &TrainConfig,
    model: &C,
    (data, settings): (&NodeDataset, &str),
    mut log: Option<&mut RunLog>,
    plain: Plain,
) -> Done<(TrainOutcome<C::Model>, Option<RunSummary>)> {
    let activation = model.activation().to_string();
    let (hidden, layers, dropout) = model.sizes();
    if let Some(log) = &mut log {
        log.begin(trainer.id());
        // The log may lack saved epochs.
        for report in trainer.earlier() {
            log.epoch(&activation, &report)?;
        }
    }
    stop::watch();
    let mut display = Display::new(config.epochs, activation.clone(), log.as_deref_mut(), plain);
    let outcome = trainer.run_on(&devices(backends), &mut display)?;
    drop(display);
    if outcome.interrupted {
        note!("interrupted after epoch {} of {}", outcome.epochs, config.epochs);
        return Ok((outcome, None));
    }
    let names: Vec<&str> = backends.iter().map(|b| b.name.as_str()).collect();
    let EpochReport { epoch, val, test, .. } = outcome.best;
    let summary = RunSummary {
        summary: true,
        backend: backends[0].choice.to_string(),
        device: names.join(", "),
        dataset: data.name().to_string(),
        model: model.name().to_string(),
        metric: config.metric_for(data).name().to_string(),
        activation: activation.clone(),
        hidden,
        layers,
        dropout,
        lr: config.lr,
        weight_decay: config.weight_decay,
        seed: config.seed,
        parameters: outcome.model.num_params(),
        most_epochs: config.epochs,
        epochs: outcome.epochs,
        best_epoch: epoch,
        val,
        test,
        ms_per_epoch: outcome.ms_per_epoch,
        seconds: outcome.seconds,
        captured: outcome.captured,
        configuration: configuration(config, model, (data, settings))?,
    };
    if let Some(log) = log {
        log.summary(&summary)?;
    }
    say!(
        "{} {activation}: test {} {test:.4} at best validation {val:.4} (epoch {epoch} of {}), \
         {:.1} ms per epoch, {:.1} s",
        summary.model,
        summary.metric,
        summary.epochs,
        summary.ms_per_epoch,
        summary.seconds
    );
    Ok((outcome, Some(summary)))
}

/// Everything that determines a result but backend and dataset name.
pub(super) fn configuration<C: NodeModelConfig>(
    config: &TrainConfig,
    model: &C,
    (data, settings): (&NodeDataset, &str),
) -> Done<String> {
    let edges = data.graph().edges();
    let [config, model] = [serde_json::to_string(config)?, serde_json::to_string(model)?];
    Ok(format!("{config} {model} {settings} {edges} edges"))
}

/// Checks without writing that a file can be written.
pub(super) fn check_output(file: &Path) -> Done<()> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Err(format!("{}: there is no folder {}", file.display(), folder.display()).into());
    }
    if file.exists() {
        OpenOptions::new().append(true).open(file).map_err(|error| named(file, error))?;
    }
    Ok(())
}

pub(super) fn named(file: &Path, error: impl fmt::Display) -> Box<dyn Error> {
    program::named(file, error).into()
}

/// NaN without values.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
