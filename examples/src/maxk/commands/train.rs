//! Training of one model.
use std::path::PathBuf;

use sparsek_examples::backend;
use sparsek_gnn::{
    nn::{Activation, method_from_str},
    train::{CheckpointDir, RunLog, Trainer},
};

use super::{Done, announce, check_folder, check_output, devices, named, run};
use crate::{
    cli::{ActivationName, TrainArgs, looped, name},
    plot::{self, Curves},
};

/// One model on a dataset.
pub fn train(args: &TrainArgs) -> Done {
    let architecture = args.model.architecture();
    let activation = match args.activation {
        ActivationName::Maxk => Activation::MaxK {
            k: args.settings.k,
            method: method_from_str(&args.topk)?,
        },
        ActivationName::Relu => Activation::Relu,
    };
    let data = args.data.load()?;
    let loops = args.settings.settings(architecture, &data).self_loops;
    let data = looped(data, loops || args.data.self_loops);
    let config = args.settings.training(architecture, args.seed, &data);
    let model = args.settings.model(architecture, activation, &data);
    let mut trainer = Trainer::new(&config, &model, &data)?;
    let mut done = 0;
    if let Some(path) = &args.checkpoint {
        let checkpoint = CheckpointDir::new(path);
        trainer = if args.resume {
            done = checkpoint.state()?.last.epoch;
            trainer.resume(checkpoint)?
        } else {
            trainer.with_checkpoint(checkpoint)?
        };
        check_folder(path)?;
    }
    for file in args.log.iter().chain(&args.plot) {
        check_output(file)?;
    }
    let backends = backend::open_each(args.backend, &args.devices)?;
    config.check_devices(&devices(&backends))?;
    announce(&backends, &data);

    let open = |file: &PathBuf| {
        let log = if args.resume {
            RunLog::resume(file, done)
        } else {
            RunLog::create(file)
        };
        log.map_err(|error| named(file, error))
    };
    let mut log = args.log.as_ref().map(open).transpose()?;
    let data_is = (&data, &args.data.settings()[..]);
    let (outcome, _) = run(trainer, &backends, &config, &model, data_is, log.as_mut())?;
    if let Some(file) = &args.plot {
        let label = activation.to_string();
        let curves = Curves {
            label: &label,
            history: &outcome.history,
        };
        let title = format!("{} on {}", name(architecture).to_uppercase(), data.name());
        plot::write(file, &title, &[curves])?;
    }
    Ok(())
}
