//! Evaluation of a saved model.
use std::slice;

use sparsek_examples::backend;
use sparsek_gnn::{
    nn::MaxKModelConfig,
    train::{CheckpointDir, evaluate},
};

use super::{Done, announce};
use crate::cli::{EvalArgs, looped, name};

/// The best model of a checkpoint on a dataset.
pub fn eval(args: &EvalArgs) -> Done {
    let checkpoint = CheckpointDir::new(&args.checkpoint);
    let training = checkpoint.train_config()?;
    let best = checkpoint.best_report()?;
    let data = looped(args.data.load()?, args.data.self_loops);
    let backend = backend::open(args.backend)?;
    announce(slice::from_ref(&backend), &data);
    let (config, model) = checkpoint.best_model::<MaxKModelConfig>(&backend.device)?;
    let found = evaluate(&training, &config, &model, &data, &backend.device)?;
    println!(
        "{} {}, {}: epoch {} train {:.4} val {:.4} test {:.4}",
        name(config.architecture),
        config.activation,
        training.metric_for(&data).name(),
        best.epoch,
        found.train,
        found.val,
        found.test
    );
    Ok(())
}
