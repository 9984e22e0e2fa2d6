//! The command line.
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use sparsek_examples::backend::Choice;

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

/// Where the data comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A folder of adj_full.npz, feats.npy, class_map.json and role.json.
    Graphsaint,
    /// A seeded stochastic block model.
    Sbm,
    /// Zachary's karate club.
    Karate,
}

/// What is done to the features first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Features {
    /// Nothing.
    Raw,
    /// Mean 0 and variance 1 over the training nodes, as GraphSAINT does.
    Standard,
    /// Each node's divided by the sum of their magnitudes.
    Rows,
}

/// Options of the data.
#[derive(Args, Debug)]
pub struct DataArgs {
    /// Folder of the dataset, for the formats that are files.
    #[arg(long, value_name = "DIR", required_if_eq("format", "graphsaint"))]
    pub data: Option<PathBuf>,
    /// Format of the dataset.
    #[arg(long, value_enum, default_value_t = Format::Graphsaint)]
    pub format: Format,
    /// Nodes of the block model.
    #[arg(long, default_value_t = 4096)]
    pub nodes: usize,
    /// Seed of the block model.
    #[arg(long, default_value_t = 0)]
    pub data_seed: u64,
    /// Give every node an edge to itself.
    #[arg(long)]
    pub self_loops: bool,
    /// What is done to the features first. Default: standard for files, raw for what is built in.
    #[arg(long, value_enum)]
    pub features: Option<Features>,
}

/// Models that can be trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModelName {
    /// GraphSAGE with the mean of neighbours.
    Sage,
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
    #[arg(long, value_enum, default_value_t = ActivationName::Maxk)]
    pub activation: ActivationName,
    /// Elements that MaxK keeps per row.
    #[arg(long, default_value_t = 32)]
    pub k: usize,
    /// How they are found: exact, early:ITERATIONS or precision:EPSILON.
    #[arg(long, default_value = "exact", allow_hyphen_values = true)]
    pub topk: String,
    /// Width of the hidden rows.
    #[arg(long, default_value_t = 256)]
    pub hidden: usize,
    /// Layers.
    #[arg(long, default_value_t = 3)]
    pub layers: usize,
    /// Most epochs to run.
    #[arg(long, default_value_t = 200)]
    pub epochs: usize,
    /// Learning rate of Adam.
    #[arg(long, default_value_t = 0.003, allow_negative_numbers = true)]
    pub lr: f64,
    /// Probability of dropping an element.
    #[arg(long, default_value_t = 0.5, allow_negative_numbers = true)]
    pub dropout: f64,
    /// L2 penalty.
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    pub weight_decay: f64,
    /// Stop after so many epochs without a better validation accuracy.
    #[arg(long, value_name = "EPOCHS")]
    pub patience: Option<usize>,
    /// Seed of the parameters and of dropout.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// What to compute with.
    #[arg(long, value_enum, default_value_t = Choice::Auto)]
    pub backend: Choice,
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
