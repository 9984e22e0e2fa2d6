//! The demonstration.
use sparsek_examples::{
    backend, note,
    program::{check_paths, commit, create},
    say,
};
use sparsek_gnn::{
    datasets::sbm::{SbmConfig, block_model},
    nn::{Activation, Architecture, MaxKModelConfig},
    train::{RunLog, TrainConfig, Trainer},
};

use super::common::{Done, Ended, announce, check_output, named, run};
use crate::{
    cli::DemoArgs,
    plot::{self, Curves},
};

/// Compares MaxK and ReLU on the block model.
pub fn demo(args: &DemoArgs) -> Done {
    check_paths([&args.log; 0], [&args.log, &args.plot])?;
    let data = block_model(&SbmConfig::new(args.nodes))?;
    let config = TrainConfig::new()
        .with_epochs(args.epochs)
        .with_lr(0.01)
        .with_seed(args.seed);
    let width = MaxKModelConfig::new(Architecture::Sage, data.feature_width(), 64, data.classes())
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
    let mut drawing = create(&args.plot)?;
    let backend = [backend::open(args.backend)?];
    backend::check_training(&backend)?;
    announce(&backend, &data);

    let mut log = RunLog::open(&args.log)?;
    let mut results = Vec::new();
    for (trainer, model) in trainers.into_iter().zip(&models) {
        let (outcome, _) = run(
            trainer,
            &backend,
            &config,
            model,
            (&data, ""),
            Some(&mut log),
        )?;
        if outcome.interrupted {
            note!("nothing was saved; {} has the epochs", args.log.display());
            return Ok(Ended::Interrupted);
        }
        results.push((model.activation.to_string(), outcome.history, outcome.best));
    }
    let curves: Vec<Curves> = results
        .iter()
        .map(|(label, history, _)| Curves { label, history })
        .collect();
    let title = format!("SAGE on {}", data.name());
    plot::write(&mut drawing, &title, &curves).map_err(|error| named(&args.plot, error))?;
    commit(&args.plot, drawing)?;
    say!("log {}, curves {}", args.log.display(), args.plot.display());
    let tests: Vec<String> = results
        .iter()
        .map(|(label, _, best)| format!("{label} {:.4}", best.test))
        .collect();
    say!("test accuracy: {}", tests.join(", "));
    Ok(Ended::Whole)
}
