//! Cross-validation of a graph classifier.
use std::{fs::OpenOptions, io::Write, ops::ControlFlow, path::Path, slice};

use serde::Serialize;
use sparsek_examples::{
    backend::{self, Backend},
    note,
    program::check_paths,
    say,
};
use sparsek_gnn::{
    datasets::{Fold, GraphDataset, tu},
    nn::{Activation, GinGraphModelConfig, GraphModelConfig},
    train::{CrossValidation, GraphEpoch, GraphTrainConfig, train_graphs},
};

use super::common::{Done, Ended, check_output, named};
use crate::{cli::GraphsArgs, progress::file_bars, stop};

/// Line of the log: a fold at the epoch that [`CrossValidation`] chose.
#[derive(Serialize)]
struct FoldSummary<'a> {
    summary: bool,
    backend: String,
    device: &'a str,
    dataset: &'a str,
    model: &'static str,
    metric: &'static str,
    activation: String,
    seed: u64,
    fold: usize,
    folds: usize,
    epochs: usize,
    best_epoch: usize,
    test: f64,
    ms_per_epoch: f64,
    configuration: &'a str,
}

/// Trains and tests on each fold, with ReLU and with MaxK.
pub fn graphs(args: &GraphsArgs) -> Done {
    let config = args.training();
    check_paths(tu::files(&args.data), &args.log)?;
    let data = tu::load(&args.data, &args.options(), &mut file_bars())?;
    let folds = data.folds(args.folds, args.seed)?;
    config.validate()?;
    let models: Vec<_> =
        args.activations().into_iter().map(|activation| model(args, activation, &data)).collect();
    models.iter().try_for_each(GraphModelConfig::validate)?;
    if let Some(file) = &args.log {
        check_output(file)?;
    }
    let backend = backend::open(args.backend)?;
    backend::check_training(slice::from_ref(&backend))?;
    say!("backend {backend}");
    say!(
        "{}: {} graphs, {} nodes, {} features, {} classes, {} folds",
        data.name(),
        data.graphs().len(),
        data.nodes(),
        data.feature_width(),
        data.classes(),
        folds.len()
    );
    stop::watch();
    let (mut rows, mut ended) = (Vec::new(), Ended::Whole);
    for model in &models {
        let Some(histories) = train_folds(&config, model, &data, &folds, &backend)? else {
            note!("interrupted in the folds of {}", model.activation);
            ended = Ended::Interrupted;
            break;
        };
        let found = CrossValidation::new(&histories).ok_or("no epoch ran")?;
        if let Some(file) = &args.log {
            append(file, args, model, (&data, &backend), (&found, &histories))?;
        }
        let ms = median_ms(&histories.concat());
        rows.push((model.activation, found, ms));
    }
    say!("\n| {} | test accuracy | epoch | ms per epoch |", data.name());
    say!("| --- | --- | --- | --- |");
    for (activation, found, ms) in rows {
        let CrossValidation { epoch, mean, deviation } = found;
        say!("| {activation} | {mean:.4} ± {deviation:.4} | {epoch} | {ms:.1} |");
    }
    Ok(ended)
}

fn model(args: &GraphsArgs, activation: Activation, data: &GraphDataset) -> GinGraphModelConfig {
    GinGraphModelConfig::new(data.feature_width(), args.hidden, data.classes())
        .with_layers(args.layers)
        .with_activation(activation)
        .with_readout(args.readout())
        .with_dropout(args.dropout)
}

/// Epochs of each fold; none if interrupted.
fn train_folds(
    config: &GraphTrainConfig,
    model: &GinGraphModelConfig,
    data: &GraphDataset,
    folds: &[Fold],
    backend: &Backend,
) -> Done<Option<Vec<Vec<GraphEpoch>>>> {
    let mut histories = Vec::new();
    for (number, fold) in (1..).zip(folds) {
        let each = &mut |_: &GraphEpoch| {
            Ok(match stop::asked() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })
        };
        let outcome = train_graphs(config, model, data, fold, &backend.device, each)?;
        if outcome.interrupted {
            return Ok(None);
        }
        let last = &outcome.history[outcome.history.len() - 1];
        note!(
            "{} fold {number}/{}: loss {:.4}, test {:.4} after epoch {}, {:.1} ms per epoch",
            model.activation,
            folds.len(),
            last.loss,
            last.test,
            last.epoch,
            median_ms(&outcome.history)
        );
        histories.push(outcome.history);
    }
    Ok(Some(histories))
}

/// Appends a line per fold.
fn append(
    file: &Path,
    args: &GraphsArgs,
    model: &GinGraphModelConfig,
    (data, backend): (&GraphDataset, &Backend),
    (found, histories): (&CrossValidation, &[Vec<GraphEpoch>]),
) -> Done<()> {
    let configuration = configuration(args, &args.training(), model)?;
    let mut lines = Vec::new();
    for (fold, history) in histories.iter().enumerate() {
        let summary = FoldSummary {
            summary: true,
            backend: backend.choice.to_string(),
            device: &backend.name,
            dataset: data.name(),
            model: "gin",
            metric: "accuracy",
            activation: model.activation.to_string(),
            seed: args.seed,
            fold,
            folds: histories.len(),
            epochs: args.epochs,
            best_epoch: found.epoch,
            test: history[found.epoch - 1].test,
            ms_per_epoch: median_ms(history),
            configuration: &configuration,
        };
        serde_json::to_writer(&mut lines, &summary)?;
        lines.push(b'\n');
    }
    let opened = OpenOptions::new().create(true).append(true).open(file);
    let written = opened.and_then(|mut file| file.write_all(&lines));
    written.map_err(|error| named(file, error))
}

fn configuration(
    args: &GraphsArgs,
    config: &GraphTrainConfig,
    model: &GinGraphModelConfig,
) -> Done<String> {
    let [config, model] = [serde_json::to_string(config)?, serde_json::to_string(model)?];
    Ok(format!("{config} {model} {:?}", args.options()))
}

fn median_ms(history: &[GraphEpoch]) -> f64 {
    super::common::median(history.iter().map(|epoch| epoch.ms).collect())
}
