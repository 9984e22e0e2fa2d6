//! The demonstration.
use sparsek_examples::backend;
use sparsek_gnn::{
    datasets::sbm::{SbmConfig, block_model},
    nn::{Activation, Architecture, MaxKModelConfig},
    train::{RunLog, TrainConfig, Trainer},
};

use super::{Done, announce, check_output, named, run};
use crate::{
    cli::DemoArgs,
    plot::{self, Curves},
};

/// MaxK and ReLU on the built-in block model.
pub fn demo(args: &DemoArgs) -> Done {
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
    check_output(&args.plot)?;
    let backend = [backend::open(args.backend)?];
    announce(&backend, &data);

    let mut log = RunLog::create(&args.log).map_err(|error| named(&args.log, error))?;
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
