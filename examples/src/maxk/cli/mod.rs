//! The command line.
mod data;
mod graphs;
mod settings;

use std::{error::Error, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use sparsek_examples::backend::Choice;
use sparsek_gnn::nn::{Activation, ConvKind, method_from_str};

pub use data::{DataArgs, looped};
pub use graphs::GraphsArgs;
pub use settings::{Kind, ModelName, SettingArgs, StructureName, name, plain_name};

const EXAMPLES: &str = "\
Examples:
  maxk
  maxk --hidden 512 --k 16 --plot wide.svg
  maxk train --data flickr --preset flickr --checkpoint run
  maxk eval --checkpoint run --data flickr";

const TRAIN_EXAMPLES: &str = "\
Examples:
  maxk train --format karate --hidden 16 --k 4 --epochs 100 --plot karate.svg
  maxk train --data reddit --preset reddit --model gcn --k 16 --checkpoint run --log run.jsonl
  maxk train --data reddit --batches clusters --parts 64 --together 4 --devices 0,1
  maxk train --data cora --features rows --structure plain --model gat";

const EVAL_EXAMPLES: &str = "\
Examples:
  maxk eval --checkpoint run --data flickr --plot look.svg
  maxk eval --checkpoint run --format sbm --data-seed 2 --other-data";

const EXPORT_EXAMPLES: &str = "\
Examples:
  maxk export model.safetensors --checkpoint run";

const COMPARE_EXAMPLES: &str = "\
Examples:
  maxk compare --format sbm --models sage --early 2,4 --seeds 2 --log runs.jsonl
  maxk compare --data flickr --preset flickr --log runs.jsonl --plot runs.svg
  maxk compare --data cora --features rows --structure plain --models gcn,gat --k 8 --early '' \
    --log runs.jsonl";

const GRAPHS_EXAMPLES: &str = "\
Examples:
  maxk graphs --data MUTAG
  maxk graphs --data IMDB-BINARY --degrees --k 16 --log folds.jsonl";

#[cfg(feature = "download")]
const DOWNLOAD_EXAMPLES: &str = "\
Examples:
  maxk download
  maxk download tolokers amazon-computers --to data";

/// Train graph networks with the MaxK nonlinearity.
///
/// Without a command: train SAGE with MaxK and with ReLU on a built-in block model, print a table,
/// and draw accuracy over time.
#[derive(Parser, Debug)]
#[command(
    name = "maxk",
    version,
    args_conflicts_with_subcommands = true,
    after_help = EXAMPLES
)]
pub struct Cli {
    /// Command.
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub demo: DemoArgs,
}

/// Commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Train a model on a dataset.
    #[command(after_help = TRAIN_EXAMPLES)]
    Train(TrainArgs),
    /// Evaluate the best model of a checkpoint.
    #[command(after_help = EVAL_EXAMPLES)]
    Eval(EvalArgs),
    /// Write the best model of a checkpoint with the names and shapes of PyTorch Geometric, whose
    /// GCN and GraphSAGE read runs of `--structure plain`.
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportArgs),
    /// Compare MaxK, exact and stopped early, with ReLU (plain gat: ELU) over several seeds; print
    /// a table and a figure.
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArgs),
    /// Classify graphs with GIN, ReLU and MaxK, by cross-validation; print a table.
    #[command(after_help = GRAPHS_EXAMPLES)]
    Graphs(GraphsArgs),
    /// Download datasets, checked by checksum; without names, list them.
    #[cfg(feature = "download")]
    #[command(after_help = DOWNLOAD_EXAMPLES)]
    Download(DownloadArgs),
}

#[cfg(feature = "download")]
#[derive(Args, Debug)]
pub struct DownloadArgs {
    /// Names of datasets, such as tolokers.
    pub names: Vec<String>,
    /// Folder to download to.
    #[arg(long, value_name = "DIR", default_value = "data")]
    pub to: PathBuf,
}

#[derive(Args, Debug)]
pub struct DemoArgs {
    /// Backend.
    #[arg(help_heading = "Device", long, value_enum, default_value_t = Choice::Auto)]
    pub backend: Choice,
    /// Nodes of the block model.
    #[arg(help_heading = "Data", long, default_value_t = 4096)]
    pub nodes: usize,
    /// Hidden width.
    #[arg(help_heading = "Model", long, default_value_t = 256)]
    pub hidden: usize,
    /// Elements that MaxK keeps per row.
    #[arg(help_heading = "Model", long, default_value_t = 32)]
    pub k: usize,
    /// Epochs per model.
    #[arg(help_heading = "Training", long, default_value_t = 150)]
    pub epochs: usize,
    /// Seed of parameters and dropout.
    #[arg(help_heading = "Training", long, default_value_t = 0)]
    pub seed: u64,
    /// JSON-lines log to append to.
    #[arg(help_heading = "Output", long, value_name = "FILE", default_value = "maxk.jsonl")]
    pub log: PathBuf,
    /// SVG to write.
    #[arg(help_heading = "Output", long, value_name = "FILE", default_value = "maxk.svg")]
    pub plot: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ActivationName {
    /// Keep the k greatest elements of each row.
    Maxk,
    /// max(x, 0).
    Relu,
    /// x, or exp(x) - 1 below 0.
    Elu,
}

#[derive(Args, Debug)]
pub struct TrainArgs {
    #[command(flatten)]
    pub data: DataArgs,
    /// What stands around the convolutions.
    #[arg(help_heading = "Model", long, value_enum, default_value_t = StructureName::Maxk)]
    pub structure: StructureName,
    /// Convolution.
    #[arg(
        help_heading = "Model",
        long,
        visible_alias = "conv",
        value_enum,
        default_value_t = ModelName::Sage
    )]
    pub model: ModelName,
    /// Nonlinearity. Default: maxk; plain: relu, gat elu.
    #[arg(help_heading = "Model", long, visible_alias = "nonlinearity", value_enum)]
    pub activation: Option<ActivationName>,
    /// Selection of MaxK: exact, early:ITERATIONS or precision:EPSILON. Default: exact.
    #[arg(help_heading = "Model", long, allow_hyphen_values = true)]
    pub topk: Option<String>,
    #[command(flatten)]
    pub settings: SettingArgs,
    /// Seed of parameters, dropout and batches.
    #[arg(help_heading = "Training", long, default_value_t = 0)]
    pub seed: u64,
    /// Replay epochs as one captured graph of the device: faster on small graphs.
    #[arg(help_heading = "Training", long)]
    pub capture: bool,
    /// Backend.
    #[arg(help_heading = "Device", long, value_enum, default_value_t = Choice::Auto)]
    pub backend: Choice,
    /// Device numbers, such as 0,1. Several need --batches random or clusters, and --parts a
    /// multiple of their number. Default: the best.
    #[arg(help_heading = "Device", long, value_delimiter = ',')]
    pub devices: Vec<usize>,
    /// JSON-lines log to append to; may hold other runs.
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// SVG to write.
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Directory to save the run in.
    #[arg(help_heading = "Checkpoint", long, value_name = "DIR")]
    pub checkpoint: Option<PathBuf>,
    /// Epochs between saves; the last is always saved. Default: 25.
    #[arg(help_heading = "Checkpoint", long, value_name = "EPOCHS", requires = "checkpoint")]
    pub save_every: Option<usize>,
    /// Resume the saved run. Data options may not contradict it.
    #[arg(help_heading = "Checkpoint", long, requires = "checkpoint")]
    pub resume: bool,
}

impl TrainArgs {
    /// Structure and convolution.
    ///
    /// # Errors
    /// One line for a model that the structure lacks, or options that it does not use.
    pub fn kind(&self) -> Result<Kind, String> {
        let kind = self.model.kind(self.structure)?;
        self.settings.check_model(kind)?;
        Ok(kind)
    }

    /// The nonlinearity.
    ///
    /// # Errors
    /// One line for an unknown method, or MaxK options with another.
    pub fn activation(&self, kind: Kind) -> Result<Activation, Box<dyn Error>> {
        let k = self.settings.k();
        let option = match (self.settings.k, &self.topk) {
            (Some(_), _) => "--k",
            (_, Some(_)) => "--topk",
            (None, None) => "",
        };
        let name = self.activation.unwrap_or(match kind {
            Kind::Maxk(_) => ActivationName::Maxk,
            Kind::Plain(ConvKind::Gat) => ActivationName::Elu,
            Kind::Plain(_) => ActivationName::Relu,
        });
        let activation = match name {
            ActivationName::Relu => Activation::Relu,
            ActivationName::Elu => Activation::Elu,
            ActivationName::Maxk => {
                let method = method_from_str(self.topk.as_deref().unwrap_or("exact"))?;
                return Ok(Activation::MaxK { k, method });
            }
        };
        match option.is_empty() {
            true => Ok(activation),
            false => Err(format!("{option} means nothing with --activation {activation}").into()),
        }
    }
}

#[derive(Args, Debug)]
pub struct EvalArgs {
    /// Directory of the saved run.
    #[arg(help_heading = "Checkpoint", long, value_name = "DIR")]
    pub checkpoint: PathBuf,
    /// Data options; the saved run's by default.
    #[command(flatten)]
    pub data: DataArgs,
    /// Evaluate on other data; data options then override the saved ones.
    #[arg(help_heading = "Data", long)]
    pub other_data: bool,
    /// Backend.
    #[arg(help_heading = "Device", long, value_enum, default_value_t = Choice::Auto)]
    pub backend: Choice,
    /// SVG to write: embedding in two dimensions, confusion matrix, accuracy by degree.
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct ExportArgs {
    /// File to write; ends in .safetensors.
    pub file: PathBuf,
    /// Directory of the saved run.
    #[arg(help_heading = "Checkpoint", long, value_name = "DIR")]
    pub checkpoint: PathBuf,
    /// Backend.
    #[arg(help_heading = "Device", long, value_enum, default_value_t = Choice::Auto)]
    pub backend: Choice,
}

#[derive(Args, Debug)]
pub struct CompareArgs {
    #[command(flatten)]
    pub data: DataArgs,
    /// What stands around the convolutions.
    #[arg(help_heading = "Model", long, value_enum, default_value_t = StructureName::Maxk)]
    pub structure: StructureName,
    /// Models to compare.
    #[arg(
        help_heading = "Model",
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "sage,gcn,gin"
    )]
    pub models: Vec<ModelName>,
    /// Early-stop iterations to compare; may be empty.
    #[arg(help_heading = "Model", long, value_delimiter = ',', default_value = "2,3,4,5,6,7,8")]
    pub early: Vec<String>,
    /// Runs per model, seeded from 0.
    #[arg(
        help_heading = "Training",
        long,
        default_value_t = 5,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub seeds: u64,
    #[command(flatten)]
    pub settings: SettingArgs,
    /// Backend.
    #[arg(help_heading = "Device", long, value_enum, default_value_t = Choice::Auto)]
    pub backend: Choice,
    /// JSON-lines log. Runs that it holds are not repeated.
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    pub log: PathBuf,
    /// Log with the times to report, of runs that had the device to themselves.
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    pub times: Option<PathBuf>,
    /// SVG to write.
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn check(options: &str) -> Result<(), String> {
        let arguments = format!("maxk train {options}");
        let cli = Cli::try_parse_from(arguments.split_whitespace());
        let cli = cli.map_err(|error| error.to_string())?;
        let Some(Command::Train(args)) = cli.command else {
            return Err("another command".into());
        };
        args.data.check()?;
        args.settings.check()?;
        args.activation(args.kind()?).map(|_| ()).map_err(|e| e.to_string())
    }

    #[rstest]
    #[case("--format karate --data x", "--data means nothing with --format karate")]
    #[case("--format sbm --data x", "--data")]
    #[case("--format reddit-size --data x", "--data")]
    #[case("--format graphsaint", "needs --data DIR")]
    #[case("", "--format graphsaint needs --data DIR")]
    #[case("--data x --split y", "--split means nothing with --format graphsaint")]
    #[case("--format csr --data x --directed", "--directed")]
    #[case("--format edge-list --data x --split 0", "--split")]
    #[case("--format npz --data x --split y", "--split y is not a number")]
    #[case("--format npz --data x --split 0 --data-seed 1", "--data-seed means nothing")]
    #[case("--format karate --nodes 9", "--nodes")]
    #[case("--format karate --data-seed 0", "--data-seed")]
    #[case("--format ogb --data x --data-seed 0", "--data-seed")]
    #[case("--format karate --fanouts 2", "--fanouts means nothing with --batches full")]
    #[case("--format karate --batch-nodes 2 --batches random", "--batch-nodes")]
    #[case("--format karate --parts 32", "--parts")]
    #[case("--format karate --together 4 --batches neighbors", "--together")]
    #[case("--format karate --evaluate-batches", "--evaluate-batches")]
    #[case("--format karate --activation relu --k 32", "--k means nothing")]
    #[case("--format karate --activation relu --topk exact", "--topk means")]
    #[case("--format karate --topk early:x", "early")]
    #[case("--format karate --structure plain --k 4", "--k means nothing with --activation relu")]
    #[case("--format karate --model gat", "--model gat means nothing")]
    #[case("--format karate --structure plain --preset flickr", "--preset means nothing")]
    #[case("--format karate --structure plain --heads 2", "--heads means nothing")]
    #[case("--format karate --activation elu --k 2", "--k means nothing with --activation elu")]
    fn options_that_mean_nothing_are_refused(#[case] options: &str, #[case] word: &str) {
        let error = check(options).unwrap_err();
        assert!(error.contains(word), "{error}");
    }

    #[rstest]
    #[case("--format karate --features rows --self-loops")]
    #[case("--format sbm --nodes 9 --data-seed 1")]
    #[case("--format products-size --data-seed 1")]
    #[case("--data x")]
    #[case("--format ogb --data x --split y --directed")]
    #[case("--format csr --data x --data-seed 1")]
    #[case("--format edge-list --data x --data-seed 1 --directed")]
    #[case("--format npz --data x --data-seed 1 --directed")]
    #[case("--format npz --data x --split 1")]
    #[case("--format karate --batches neighbors --fanouts 2,2 --batch-nodes 9")]
    #[case("--format karate --batches neighbours")]
    #[case("--format karate --batches clusters --parts 9 --together 3 --evaluate-batches")]
    #[case("--format karate --k 4 --topk early:4")]
    #[case("--format karate --activation relu")]
    #[case("--format karate --structure plain --conv gat --heads 2")]
    #[case("--format karate --structure plain --model gcn --activation maxk --k 4")]
    fn options_that_are_used_are_accepted(#[case] options: &str) {
        assert_eq!(check(options), Ok(()));
    }

    fn settings(options: &str) -> String {
        let arguments = format!("maxk eval --checkpoint x {options}");
        match Cli::parse_from(arguments.split_whitespace()).command {
            Some(Command::Eval(args)) => args.data.settings(),
            _ => String::new(),
        }
    }

    #[rstest]
    #[case("--data x", "--data y --format graphsaint --features standard")]
    #[case("--format sbm", "--format sbm --nodes 4096 --data-seed 0 --features raw")]
    #[case("--format csr --data x", "--format csr --data-seed 0")]
    #[case("--format edge-list --data x", "--format edge-list --data-seed 0")]
    fn settings_are_the_same_whether_defaults_are_given_or_not(
        #[case] short: &str,
        #[case] long: &str,
    ) {
        assert_eq!(settings(short), settings(long));
    }

    #[test]
    fn other_options_are_other_settings() {
        assert_ne!(settings("--format sbm"), settings("--format sbm --nodes 4095"));
    }
}
