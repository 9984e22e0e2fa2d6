//! The demonstration.
use burn::tensor::{Device, Tensor};
use sparsek::sparse::sparse_topk;
use sparsek_examples::{
    backend, note,
    program::{check_paths, commit, create},
    say,
};
use sparsek_gnn::{
    datasets::sbm::{SbmConfig, block_model},
    nn::{Activation, Architecture, MaxKModel, MaxKModelConfig},
    train::{RunLog, TrainConfig, TrainOutcome, Trainer},
};

use super::common::{Done, Ended, announce, check_output, named, run};
use crate::{
    cli::DemoArgs,
    plot::{self, Across, Curves},
    progress::Plain,
};

/// Compares MaxK and ReLU on the block model.
///
/// Learning rate and dropout are the defaults of `train` for both.
pub fn demo(args: &DemoArgs) -> Done {
    check_paths([&args.log; 0], [&args.log, &args.plot])?;
    // Most neighbors are of other blocks, so that no model is right about all nodes.
    let data =
        block_model(&SbmConfig { homophily: 0.3, ..SbmConfig::new(args.nodes).with_degree(64.0) })?;
    let config = TrainConfig::new().with_epochs(args.epochs).with_seed(args.seed);
    let (features, classes) = (data.feature_width(), data.classes());
    let model =
        MaxKModelConfig::new(Architecture::Sage, features, args.hidden, classes).with_layers(2);
    let models = [Activation::maxk(args.k), Activation::Relu]
        .map(|activation| model.clone().with_activation(activation));
    let trainers: Result<Vec<_>, _> =
        models.iter().map(|model| Trainer::new(&config, model, &data)).collect();
    let trainers = trainers?;
    check_output(&args.log)?;
    let mut drawing = create(&args.plot)?;
    let backend = [backend::open(args.backend)?];
    backend::check_training(&backend)?;
    announce(&backend, &data);

    let mut log = RunLog::open(&args.log)?;
    let mut results = Vec::new();
    for (trainer, model) in trainers.into_iter().zip(&models) {
        let (outcome, _) =
            run(trainer, &backend, &config, model, (&data, ""), Some(&mut log), Plain::Nothing)?;
        if outcome.interrupted {
            note!("nothing was saved; {} has the epochs", args.log.display());
            return Ok(Ended::Interrupted);
        }
        results.push((model, outcome));
    }
    let labels = models.each_ref().map(|model| model.activation.to_string());
    let runs = labels.iter().zip(&results);
    let curves = runs.map(|(label, (_, outcome))| Curves { label, history: &outcome.history });
    let curves: Vec<Curves> = curves.collect();
    let title = format!("SAGE on {}", data.name());
    let drawn = plot::write(&mut drawing, &title, &curves, Across::Seconds);
    drawn.map_err(|error| named(&args.plot, error))?;
    commit(&args.plot, drawing)?;
    table(&results, data.nodes(), &backend[0].device);
    say!("\ncurves {}, log {}", args.plot.display(), args.log.display());
    Ok(Ended::Whole)
}

/// Prints a row for each run, MaxK first, and the quotient of the epoch times.
fn table(runs: &[(&MaxKModelConfig, TrainOutcome<MaxKModel>)], nodes: usize, device: &Device) {
    say!("\n| activation | test accuracy | ms per epoch | kept | activations, MB |");
    say!("| --- | --- | --- | --- | --- |");
    for (model, outcome) in runs {
        let (kept, bytes) = kept(model, device);
        say!(
            "| {} | {:.4} | {:.1} | {:.1} % | {:.2} |",
            model.activation,
            outcome.best.test,
            outcome.ms_per_epoch,
            100.0 * kept as f64 / model.d_hidden as f64,
            (bytes * nodes * model.layers) as f64 / 1e6
        );
    }
    say!("\nActivations are the outputs of the nonlinearity, kept for the gradient.");
    if let [(_, maxk), (_, relu)] = runs {
        say!(
            "An epoch with MaxK takes {:.2} times the time of one with ReLU.",
            maxk.ms_per_epoch / relu.ms_per_epoch
        );
    }
}

/// Elements that a row keeps of the nonlinearity, and their bytes on this device.
fn kept(model: &MaxKModelConfig, device: &Device) -> (usize, usize) {
    let row = Tensor::<2>::zeros([1, model.d_hidden], device);
    match model.activation {
        Activation::Relu | Activation::Elu => (model.d_hidden, model.d_hidden * row.dtype().size()),
        Activation::MaxK { k, method } => {
            let row = sparse_topk(row, k, method);
            let element = row.dtype().size() + row.columns().dtype().size();
            (row.k(), row.k() * element)
        }
    }
}
