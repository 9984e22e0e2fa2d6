//! Training of one model.
use sparsek::io::text::clean;
use sparsek_examples::{
    backend, note,
    program::{check_paths, commit, create},
};
use sparsek_gnn::{
    datasets::NodeDataset,
    train::{CheckpointDir, RunLog, Trainer},
};

use super::common::{Described, Done, Ended, announce, check_output, devices, named, run};
use crate::{
    cli::{Kind, TrainArgs, looped},
    plot::{self, Across, Curves},
    progress::Plain,
    stop,
};

/// Trains one model.
pub fn train(args: &TrainArgs) -> Done {
    let kind = args.kind()?;
    let activation = args.activation(kind)?;
    let settings = &args.settings;
    match kind {
        Kind::Maxk(architecture) => {
            train_as(args, kind, |data| settings.model(architecture, activation, data))
        }
        Kind::Plain(conv) => {
            train_as(args, kind, |data| settings.plain_model(conv, activation, data))
        }
    }
}

fn train_as<C: Described>(
    args: &TrainArgs,
    kind: Kind,
    configure: impl FnOnce(&NodeDataset) -> C,
) -> Done {
    args.settings.check()?;
    let manifest = args.checkpoint.iter().map(|dir| dir.join("manifest.json"));
    check_paths(args.data.inputs().into_iter().chain(manifest), args.log.iter().chain(&args.plot))?;
    let checkpoint = args.checkpoint.as_ref().map(CheckpointDir::new);
    let options = match &checkpoint {
        Some(checkpoint) if args.resume => {
            let saved = checkpoint.open::<C>()?;
            args.data.adopt(saved.preparation(), false)?
        }
        _ => args.data.clone(),
    };
    let data = options.load()?;
    let loops = args.settings.settings(kind, &data).self_loops || options.self_loops;
    let data = looped(data, loops);
    let config = args.settings.training(kind, args.seed, &data);
    let config = match args.save_every {
        Some(epochs) => config.with_save_every(epochs),
        None => config,
    };
    let model = configure(&data);
    let trainer = Trainer::new(&config, &model, &data)?;
    let trainer = trainer.with_preparation(options.preparation(loops));
    let trainer = if args.capture { trainer.with_capture() } else { trainer };
    let trainer = match checkpoint {
        Some(checkpoint) if args.resume => trainer.resume(checkpoint)?,
        Some(checkpoint) => trainer.with_checkpoint(checkpoint)?,
        None => trainer,
    };
    if let Some(file) = &args.log {
        check_output(file)?;
    }
    let drawing = args.plot.as_deref().map(create).transpose()?;
    let backends = backend::open_each(args.backend, &args.devices)?;
    backend::check_training(&backends)?;
    config.check_devices(&devices(&backends))?;
    announce(&backends, &data);

    let mut log = args.log.as_ref().map(RunLog::open).transpose()?;
    let data_is = (&data, &options.settings()[..]);
    let (outcome, _) =
        run(trainer, &backends, &config, &model, data_is, log.as_mut(), Plain::Lines)?;
    if outcome.interrupted {
        match &args.checkpoint {
            Some(path) => note!(
                "the run is saved in {}; to go on: {}",
                clean(&path.display().to_string()),
                stop::command(Some("--resume"))
            ),
            None => note!("nothing was saved; --checkpoint DIR saves a run, and --resume goes on"),
        }
        return Ok(Ended::Interrupted);
    }
    if args.capture {
        note!(
            "{}",
            match outcome.captured {
                true => "epochs were replayed as a graph of the device",
                false => "no graph: the device has none, or under four epochs ran",
            }
        );
    }
    let history = [&outcome.earlier[..], &outcome.history[..]].concat();
    if let (Some(file), Some(mut drawing)) = (&args.plot, drawing) {
        let label = model.activation().to_string();
        let curves = Curves { label: &label, history: &history };
        let title = format!("{} on {}", model.name().to_uppercase(), data.name());
        let drawn = plot::write(&mut drawing, &title, &[curves], Across::Epochs);
        drawn.map_err(|error| named(file, error))?;
        commit(file, drawing)?;
    }
    Ok(Ended::Whole)
}
