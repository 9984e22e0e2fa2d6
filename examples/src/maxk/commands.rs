//! The three commands. Everything that can be wrong with the input is found before a file is written.
use std::{
    error::Error,
    fs::OpenOptions,
    io,
    path::{Path, PathBuf},
};

use burn::module::Module;
use sparsek_examples::backend::{self, Backend};
use sparsek_gnn::{
    datasets::{
        NodeDataset, graphsaint, karate,
        sbm::{SbmConfig, block_model},
    },
    nn::{Activation, SageModelConfig, method_from_str},
    train::{
        CheckpointDir, EpochReport, NodeModelConfig, RunLog, RunSummary, TrainConfig, TrainOutcome,
        Trainer, evaluate,
    },
};

use crate::{
    cli::{ActivationName, DataArgs, DemoArgs, EvalArgs, Features, Format, ModelName, TrainArgs},
    plot::{self, Curves},
    progress::Display,
};

type Done<T = ()> = Result<T, Box<dyn Error>>;

/// MaxK and ReLU on the built-in block model.
pub fn demo(args: &DemoArgs) -> Done {
    let data = block_model(&SbmConfig::new(args.nodes))?;
    let config = TrainConfig::new()
        .with_epochs(args.epochs)
        .with_lr(0.01)
        .with_seed(args.seed);
    let width = SageModelConfig::new(data.feature_width(), 64, data.classes())
        .with_layers(2)
        .with_dropout(0.3);
    let models = [Activation::maxk(16), Activation::Relu]
        .map(|activation| width.clone().with_activation(activation));
    let trainers: Result<Vec<_>, _> = models
        .iter()
        .map(|model| Trainer::new(&config, model, &data))
        .collect();
    let trainers = trainers?;
    check_output(&args.log)?;
    check_output(&args.plot)?;
    let backend = backend::open(args.backend)?;
    announce(&backend, &data);

    let mut log = RunLog::create(&args.log).map_err(|error| named(&args.log, error))?;
    let mut results = Vec::new();
    for (trainer, model) in trainers.into_iter().zip(&models) {
        let outcome = run(trainer, &backend, &config, model, &data, Some(&mut log))?;
        results.push((model.activation.to_string(), outcome.history, outcome.best));
    }
    let curves: Vec<Curves> = results
        .iter()
        .map(|(label, history, _)| Curves { label, history })
        .collect();
    plot::write(&args.plot, &format!("SAGE on {}", data.name()), &curves)?;
    println!("log {}, curves {}", args.log.display(), args.plot.display());
    let tests: Vec<String> = results
        .iter()
        .map(|(label, _, best)| format!("{label} {:.4}", best.test))
        .collect();
    println!("test accuracy: {}", tests.join(", "));
    Ok(())
}

/// One model on a dataset.
pub fn train(args: &TrainArgs) -> Done {
    let ModelName::Sage = args.model;
    let activation = match args.activation {
        ActivationName::Maxk => Activation::MaxK {
            k: args.k,
            method: method_from_str(&args.topk)?,
        },
        ActivationName::Relu => Activation::Relu,
    };
    let data = load(&args.data)?;
    let config = TrainConfig::new()
        .with_epochs(args.epochs)
        .with_lr(args.lr)
        .with_weight_decay(args.weight_decay)
        .with_patience(args.patience)
        .with_seed(args.seed);
    let model = SageModelConfig::new(data.feature_width(), args.hidden, data.classes())
        .with_layers(args.layers)
        .with_activation(activation)
        .with_dropout(args.dropout);
    let mut trainer = Trainer::new(&config, &model, &data)?;
    if let Some(path) = &args.checkpoint {
        let checkpoint = CheckpointDir::new(path);
        trainer = if args.resume {
            trainer.resume(checkpoint)?
        } else {
            trainer.with_checkpoint(checkpoint)?
        };
        check_folder(path)?;
    }
    for file in args.log.iter().chain(&args.plot) {
        check_output(file)?;
    }
    let backend = backend::open(args.backend)?;
    announce(&backend, &data);

    let open = |file: &PathBuf| {
        let log = if args.resume {
            RunLog::append(file)
        } else {
            RunLog::create(file)
        };
        log.map_err(|error| named(file, error))
    };
    let mut log = args.log.as_ref().map(open).transpose()?;
    let outcome = run(trainer, &backend, &config, &model, &data, log.as_mut())?;
    if let Some(file) = &args.plot {
        let label = activation.to_string();
        let curves = Curves {
            label: &label,
            history: &outcome.history,
        };
        plot::write(file, &format!("SAGE on {}", data.name()), &[curves])?;
    }
    Ok(())
}

/// The best model of a checkpoint on a dataset.
pub fn eval(args: &EvalArgs) -> Done {
    let checkpoint = CheckpointDir::new(&args.checkpoint);
    let config: SageModelConfig = checkpoint.model_config()?;
    let best = checkpoint.best_report()?;
    let data = load(&args.data)?;
    let backend = backend::open(args.backend)?;
    announce(&backend, &data);
    let (_, model) = checkpoint.best_model::<SageModelConfig>(&backend.device)?;
    let found = evaluate(&config, &model, &data, &backend.device)?;
    println!(
        "{}: epoch {} train {:.4} val {:.4} test {:.4}",
        config.activation, best.epoch, found.train, found.val, found.test
    );
    Ok(())
}

fn load(args: &DataArgs) -> Done<NodeDataset> {
    let mut data = match (args.format, &args.data) {
        (Format::Graphsaint, Some(folder)) => graphsaint::load(folder)?,
        (Format::Graphsaint, None) => return Err("--format graphsaint needs --data DIR".into()),
        (Format::Sbm, _) => block_model(&SbmConfig::new(args.nodes).with_seed(args.data_seed))?,
        (Format::Karate, _) => karate::karate_club(),
    };
    let built_in = args.format != Format::Graphsaint;
    data = match args.features.unwrap_or(if built_in {
        Features::Raw
    } else {
        Features::Standard
    }) {
        Features::Raw => data,
        Features::Standard => data.with_standardised_features(),
        Features::Rows => data.with_normalised_rows(),
    };
    if args.self_loops {
        let graph = data.graph().with_self_loops();
        data = data.with_graph(graph);
    }
    Ok(data)
}

fn announce(backend: &Backend, data: &NodeDataset) {
    println!("backend {backend}");
    println!(
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

fn run(
    trainer: Trainer<'_, SageModelConfig>,
    backend: &Backend,
    config: &TrainConfig,
    model: &SageModelConfig,
    data: &NodeDataset,
    mut log: Option<&mut RunLog>,
) -> Done<TrainOutcome<<SageModelConfig as NodeModelConfig>::Model>> {
    let activation = model.activation.to_string();
    let mut display = Display::new(config.epochs, activation.clone(), log.as_deref_mut());
    let outcome = trainer.run(&backend.device, &mut display)?;
    drop(display);
    let EpochReport {
        epoch, val, test, ..
    } = outcome.best;
    let summary = RunSummary {
        summary: true,
        backend: backend.choice.to_string(),
        device: backend.name.clone(),
        dataset: data.name().to_string(),
        model: "sage".to_string(),
        activation: activation.clone(),
        hidden: model.d_hidden,
        layers: model.layers,
        dropout: model.dropout,
        lr: config.lr,
        weight_decay: config.weight_decay,
        seed: config.seed,
        parameters: outcome.model.num_params(),
        epochs: outcome.epochs,
        best_epoch: epoch,
        val,
        test,
        ms_per_epoch: outcome.ms_per_epoch,
        seconds: outcome.seconds,
    };
    if let Some(log) = log {
        log.summary(&summary)?;
    }
    println!(
        "{activation}: test accuracy {test:.4} at best validation {val:.4} (epoch {epoch} of {}), {:.1} ms per epoch, {:.1} s",
        summary.epochs, summary.ms_per_epoch, summary.seconds
    );
    Ok(outcome)
}

/// Whether a file can be written, found without writing.
fn check_output(file: &Path) -> Done {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Err(format!(
            "{}: there is no folder {}",
            file.display(),
            folder.display()
        )
        .into());
    }
    if file.exists() {
        OpenOptions::new()
            .append(true)
            .open(file)
            .map_err(|error| named(file, error))?;
    }
    Ok(())
}

fn check_folder(path: &Path) -> Done {
    match path.exists() && !path.is_dir() {
        true => Err(format!("{}: not a folder", path.display()).into()),
        false => Ok(()),
    }
}

fn named(file: &Path, error: io::Error) -> Box<dyn Error> {
    format!("{}: {error}", file.display()).into()
}
