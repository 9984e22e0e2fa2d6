//! Options of graph classification.
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use sparsek_examples::backend::Choice;
use sparsek_gnn::{
    datasets::tu::TuOptions,
    nn::{Activation, Readout},
    train::GraphTrainConfig,
};

/// Pooling of a graph's nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReadoutName {
    /// Sum of all nodes.
    Sum,
    /// Mean of all nodes.
    Mean,
    /// Maximum over all nodes.
    Max,
}

#[derive(Args, Debug)]
pub struct GraphsArgs {
    /// Folder of the TUDataset collection: NAME_A.txt, NAME_graph_indicator.txt, ...
    #[arg(help_heading = "Data", long, value_name = "DIR")]
    pub data: PathBuf,
    /// Use node attributes too.
    #[arg(help_heading = "Data", long)]
    pub attributes: bool,
    /// Use one-hot codes of degrees too.
    #[arg(help_heading = "Data", long)]
    pub degrees: bool,
    /// Folds of the cross-validation.
    #[arg(help_heading = "Data", long, default_value_t = 10)]
    pub folds: usize,
    /// Numbers of elements that MaxK keeps per row.
    #[arg(help_heading = "Model", long, value_delimiter = ',', default_value = "8,16")]
    pub k: Vec<usize>,
    /// Hidden width.
    #[arg(help_heading = "Model", long, default_value_t = 32)]
    pub hidden: usize,
    /// Convolutions.
    #[arg(help_heading = "Model", long, default_value_t = 4)]
    pub layers: usize,
    /// Pooling.
    #[arg(help_heading = "Model", long, value_enum, default_value_t = ReadoutName::Sum)]
    pub readout: ReadoutName,
    /// Dropout of scores.
    #[arg(help_heading = "Model", long, default_value_t = 0.5)]
    pub dropout: f64,
    /// Epochs.
    #[arg(help_heading = "Training", long, default_value_t = 350)]
    pub epochs: usize,
    /// Learning rate.
    #[arg(help_heading = "Training", long, default_value_t = 0.01)]
    pub lr: f64,
    /// Epochs after which the learning rate halves, again and again.
    #[arg(help_heading = "Training", long, value_name = "EPOCHS", default_value_t = 50)]
    pub halve_every: usize,
    /// Graphs per step.
    #[arg(help_heading = "Training", long, default_value_t = 32)]
    pub batch_graphs: usize,
    /// Seed of folds, parameters, dropout and batches.
    #[arg(help_heading = "Training", long, default_value_t = 0)]
    pub seed: u64,
    /// Backend.
    #[arg(help_heading = "Device", long, value_enum, default_value_t = Choice::Auto)]
    pub backend: Choice,
    /// JSON-lines file to append a line per fold to.
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    pub log: Option<PathBuf>,
}

impl GraphsArgs {
    /// Features.
    pub fn options(&self) -> TuOptions {
        TuOptions { attributes: self.attributes, degrees: self.degrees }
    }

    /// ReLU, then MaxK.
    pub fn activations(&self) -> Vec<Activation> {
        [Activation::Relu].into_iter().chain(self.k.iter().map(|&k| Activation::maxk(k))).collect()
    }

    /// Pooling.
    pub fn readout(&self) -> Readout {
        match self.readout {
            ReadoutName::Sum => Readout::Sum,
            ReadoutName::Mean => Readout::Mean,
            ReadoutName::Max => Readout::Max,
        }
    }

    /// Training configuration.
    pub fn training(&self) -> GraphTrainConfig {
        GraphTrainConfig::new()
            .with_epochs(self.epochs)
            .with_lr(self.lr)
            .with_decay_every(self.halve_every)
            .with_batch_graphs(self.batch_graphs)
            .with_seed(self.seed)
    }
}
