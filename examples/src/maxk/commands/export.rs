//! Weights of a saved model for PyTorch Geometric.
use sparsek::io::text::clean;
use sparsek_examples::{backend, say};
use sparsek_gnn::{
    nn::{MaxKModelConfig, PlainModelConfig},
    state_dict::save_state_dict,
    train::CheckpointDir,
};

use super::common::{Described, Done, Ended, is_plain};
use crate::cli::ExportArgs;

/// Writes a checkpoint's best model.
pub fn export(args: &ExportArgs) -> Done {
    match is_plain(&args.checkpoint) {
        true => export_as::<PlainModelConfig>(args),
        false => export_as::<MaxKModelConfig>(args),
    }
}

fn export_as<C: Described>(args: &ExportArgs) -> Done {
    let saved = CheckpointDir::new(&args.checkpoint).open::<C>()?;
    let best = saved.best_report()?;
    let backend = backend::open(args.backend)?;
    let model = saved.best_model(&backend.device)?;
    save_state_dict(&model, &args.file)?;
    let file = clean(&args.file.display().to_string());
    say!("{file}: {}, epoch {}", saved.model_config().name(), best.epoch);
    Ok(Ended::Whole)
}
