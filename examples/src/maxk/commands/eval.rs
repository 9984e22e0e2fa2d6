//! Evaluation of a saved model.
use std::slice;

use sparsek_examples::{
    backend,
    program::{check_paths, commit, create},
    say,
};
use sparsek_gnn::{
    nn::{MaxKModelConfig, PlainModelConfig},
    train::{CheckpointDir, evaluate},
};

use super::common::{Described, Done, Ended, announce, is_plain, named};
use crate::{
    cli::{EvalArgs, looped},
    look::Look,
};

/// Evaluates a checkpoint's best model.
pub fn eval(args: &EvalArgs) -> Done {
    match is_plain(&args.checkpoint) {
        true => eval_as::<PlainModelConfig>(args),
        false => eval_as::<MaxKModelConfig>(args),
    }
}

fn eval_as<C: Described>(args: &EvalArgs) -> Done {
    let manifest = args.checkpoint.join("manifest.json");
    check_paths(args.data.inputs().into_iter().chain([manifest]), args.plot.iter())?;
    let saved = CheckpointDir::new(&args.checkpoint).open::<C>()?;
    let (training, best) = (saved.train_config(), saved.best_report()?);
    let options = args.data.adopt(saved.preparation(), args.other_data)?;
    let data = looped(options.load()?, options.self_loops);
    if !args.other_data {
        let checked = saved.check_dataset(&data, &options.preparation(options.self_loops));
        checked.map_err(|error| format!("{error}; --other-data measures it all the same"))?;
    }
    let drawing = args.plot.as_deref().map(create).transpose()?;
    let backend = backend::open(args.backend)?;
    backend::check_training(slice::from_ref(&backend))?;
    announce(slice::from_ref(&backend), &data);
    let config = saved.model_config();
    let model = saved.best_model(&backend.device)?;
    let found = evaluate(training, config, &model, &data, &backend.device)?;
    say!(
        "{} {}, {}: epoch {} train {:.4} val {:.4} test {:.4}",
        config.name(),
        config.activation(),
        training.metric_for(&data).name(),
        best.epoch,
        found.train,
        found.val,
        found.test
    );
    if let (Some(file), Some(mut drawing)) = (&args.plot, drawing) {
        let title = format!("{} {} on {}", config.name(), config.activation(), data.name());
        let look = Look::new(&model, &data, &backend.device)?;
        let drawn = look.write(&mut drawing, &title, &data);
        drawn.map_err(|error| named(file, error))?;
        commit(file, drawing)?;
    }
    Ok(Ended::Whole)
}
