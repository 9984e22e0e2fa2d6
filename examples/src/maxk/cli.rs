//! The command line.
mod data;
mod settings;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use sparsek_examples::backend::Choice;

pub use data::{DataArgs, looped};
pub use settings::{ModelName, SettingArgs, name};

/// Trains graph networks with the MaxK nonlinearity.
///
/// Without a command: MaxK-SAGE and the same model with ReLU on a built-in stochastic block model.
#[derive(Parser, Debug)]
#[command(name = "maxk", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of the demonstration.
    #[command(flatten)]
    pub demo: DemoArgs,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Train a model on a dataset.
    Train(TrainArgs),
    /// Measure the best model of a checkpoint on a dataset.
    Eval(EvalArgs),
    /// Train models with MaxK, exact and stopped early, and with ReLU, over several seeds; print a table and draw it.
    Compare(CompareArgs),
}

/// Options of the demonstration.
#[derive(Args, Debug)]
pub struct DemoArgs {
    /// What to compute with.
    #[arg(long, value_enum, default_value_t = Choice::Auto)]
    pub backend: Choice,
    /// Nodes of the block model.
    #[arg(long, default_value_t = 4096)]
    pub nodes: usize,
    /// Epochs of each model.
    #[arg(long, default_value_t = 60)]
    pub epochs: usize,
    /// Seed of the parameters and of dropout.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// JSON-lines log to write.
    #[arg(long, value_name = "FILE", default_value = "maxk.jsonl")]
    pub log: PathBuf,
    /// SVG of the curves to write.
    #[arg(long, value_name = "FILE", default_value = "maxk.svg")]
    pub plot: PathBuf,
}

/// Nonlinearities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ActivationName {
    /// The k greatest elements of each row.
    Maxk,
    /// max(x, 0).
    Relu,
}

/// Options of training.
#[derive(Args, Debug)]
pub struct TrainArgs {
    /// The data.
    #[command(flatten)]
    pub data: DataArgs,
    /// Model.
    #[arg(long, value_enum, default_value_t = ModelName::Sage)]
    pub model: ModelName,
    /// Nonlinearity.
    #[arg(long, visible_alias = "nonlinearity", value_enum, default_value_t = ActivationName::Maxk)]
    pub activation: ActivationName,
    /// How the elements that MaxK keeps are found: exact, early:ITERATIONS or precision:EPSILON.
    #[arg(long, default_value = "exact", allow_hyphen_values = true)]
    pub topk: String,
    /// What is trained, and how.
    #[command(flatten)]
    pub settings: SettingArgs,
    /// Seed of the parameters, of dropout and of batches.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// What to compute with.
    #[arg(long, value_enum, default_value_t = Choice::Auto)]
    pub backend: Choice,
    /// Numbers of the backend's devices to train on, such as 0,1: each takes parts of the graph (--batches random or clusters), so
    /// --parts must be a multiple of their number. Default: its best.
    #[arg(long, value_delimiter = ',')]
    pub devices: Vec<usize>,
    /// JSON-lines log to write.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// SVG of the curves to write.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Directory to save the run in.
    #[arg(long, value_name = "DIR")]
    pub checkpoint: Option<PathBuf>,
    /// Go on with the run saved there.
    #[arg(long, requires = "checkpoint")]
    pub resume: bool,
}

/// Options of evaluation.
#[derive(Args, Debug)]
pub struct EvalArgs {
    /// Directory of the saved run.
    #[arg(long, value_name = "DIR")]
    pub checkpoint: PathBuf,
    /// The data.
    #[command(flatten)]
    pub data: DataArgs,
    /// What to compute with.
    #[arg(long, value_enum, default_value_t = Choice::Auto)]
    pub backend: Choice,
}

/// Options of a comparison.
#[derive(Args, Debug)]
pub struct CompareArgs {
    /// The data.
    #[command(flatten)]
    pub data: DataArgs,
    /// Models.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "sage,gcn,gin"
    )]
    pub models: Vec<ModelName>,
    /// Midpoints after which the selection stops early, beside the exact one; none if empty.
    #[arg(long, value_delimiter = ',', default_value = "2,3,4,5,6,7,8")]
    pub early: Vec<String>,
    /// Runs of each, with seeds counted from 0.
    #[arg(long, default_value_t = 5)]
    pub seeds: u64,
    /// What is trained, and how.
    #[command(flatten)]
    pub settings: SettingArgs,
    /// What to compute with.
    #[arg(long, value_enum, default_value_t = Choice::Auto)]
    pub backend: Choice,
    /// JSON-lines log of the runs. Runs that it holds are not repeated, others are added to it.
    #[arg(long, value_name = "FILE")]
    pub log: PathBuf,
    /// JSON-lines log of other runs, on the same data, that give the times: runs that had the device to themselves.
    #[arg(long, value_name = "FILE")]
    pub times: Option<PathBuf>,
    /// SVG to write.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}
