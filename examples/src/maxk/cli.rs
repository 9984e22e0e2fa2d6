//! The command line.
mod data;
mod settings;

use std::{error::Error, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use sparsek_examples::backend::Choice;
use sparsek_gnn::nn::{Activation, method_from_str};

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
    /// JSON-lines log to append to.
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
    /// Default: exact.
    #[arg(long, allow_hyphen_values = true)]
    pub topk: Option<String>,
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
    /// JSON-lines log to append to; it may hold other runs.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// SVG of the curves to write.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Directory to save the run in.
    #[arg(long, value_name = "DIR")]
    pub checkpoint: Option<PathBuf>,
    /// Epochs between saves. Default: 25. The last epoch is always saved.
    #[arg(long, value_name = "EPOCHS", requires = "checkpoint")]
    pub save_every: Option<usize>,
    /// Go on with the run saved there. Its data is prepared as it was; options that contradict this
    /// are refused.
    #[arg(long, requires = "checkpoint")]
    pub resume: bool,
}

impl TrainArgs {
    /// The nonlinearity.
    ///
    /// # Errors
    /// One line, for a method of selection that does not exist and for options of MaxK beside ReLU.
    pub fn activation(&self) -> Result<Activation, Box<dyn Error>> {
        let k = self.settings.k();
        let option = match (self.settings.k, &self.topk) {
            (Some(_), _) => "--k",
            (_, Some(_)) => "--topk",
            (None, None) => "",
        };
        match self.activation {
            ActivationName::Relu if !option.is_empty() => {
                Err(format!("{option} means nothing with --activation relu").into())
            }
            ActivationName::Relu => Ok(Activation::Relu),
            ActivationName::Maxk => Ok(Activation::MaxK {
                k,
                method: method_from_str(self.topk.as_deref().unwrap_or("exact"))?,
            }),
        }
    }
}

/// Options of evaluation.
#[derive(Args, Debug)]
pub struct EvalArgs {
    /// Directory of the saved run.
    #[arg(long, value_name = "DIR")]
    pub checkpoint: PathBuf,
    /// The data. What is not given is as in the saved run.
    #[command(flatten)]
    pub data: DataArgs,
    /// Measure on another dataset than the run's own. Options of the data then replace the saved
    /// ones.
    #[arg(long)]
    pub other_data: bool,
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
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with options of training, if anything.
    fn check(options: &str) -> Result<(), String> {
        let arguments = format!("maxk train {options}");
        let cli = Cli::try_parse_from(arguments.split_whitespace());
        let cli = cli.map_err(|error| error.to_string())?;
        let Some(Command::Train(args)) = cli.command else {
            return Err("another command".into());
        };
        args.data.check()?;
        args.settings.check()?;
        args.activation().map(|_| ()).map_err(|e| e.to_string())
    }

    #[test]
    fn options_that_mean_nothing_are_refused() {
        for (options, word) in [
            (
                "--format karate --data x",
                "--data means nothing with --format karate",
            ),
            ("--format sbm --data x", "--data"),
            ("--format reddit-size --data x", "--data"),
            ("--format graphsaint", "needs --data DIR"),
            ("", "--format graphsaint needs --data DIR"),
            (
                "--data x --split y",
                "--split means nothing with --format graphsaint",
            ),
            ("--format csr --data x --directed", "--directed"),
            ("--format karate --nodes 9", "--nodes"),
            ("--format karate --data-seed 0", "--data-seed"),
            ("--format ogb --data x --data-seed 0", "--data-seed"),
            (
                "--format karate --fanouts 2",
                "--fanouts means nothing with --batches full",
            ),
            (
                "--format karate --batch-nodes 2 --batches random",
                "--batch-nodes",
            ),
            ("--format karate --parts 32", "--parts"),
            (
                "--format karate --together 4 --batches neighbours",
                "--together",
            ),
            ("--format karate --evaluate-batches", "--evaluate-batches"),
            (
                "--format karate --activation relu --k 32",
                "--k means nothing",
            ),
            (
                "--format karate --activation relu --topk exact",
                "--topk means",
            ),
            ("--format karate --topk early:x", "early"),
        ] {
            let error = check(options).unwrap_err();
            assert!(error.contains(word), "{options}: {error}");
        }
    }

    #[test]
    fn options_that_are_used_are_accepted() {
        for options in [
            "--format karate --features rows --self-loops",
            "--format sbm --nodes 9 --data-seed 1",
            "--format products-size --data-seed 1",
            "--data x",
            "--format ogb --data x --split y --directed",
            "--format csr --data x --data-seed 1",
            "--format karate --batches neighbours --fanouts 2,2 --batch-nodes 9",
            "--format karate --batches clusters --parts 9 --together 3 --evaluate-batches",
            "--format karate --k 4 --topk early:4",
            "--format karate --activation relu",
        ] {
            assert_eq!(check(options), Ok(()), "{options}");
        }
    }

    #[test]
    fn settings_are_the_same_whether_defaults_are_given_or_not() {
        let settings = |options: &str| {
            let arguments = format!("maxk eval --checkpoint x {options}");
            match Cli::parse_from(arguments.split_whitespace()).command {
                Some(Command::Eval(args)) => args.data.settings(),
                _ => String::new(),
            }
        };
        for (short, long) in [
            (
                "--data x",
                "--data y --format graphsaint --features standard",
            ),
            (
                "--format sbm",
                "--format sbm --nodes 4096 --data-seed 0 --features raw",
            ),
            ("--format csr --data x", "--format csr --data-seed 0"),
        ] {
            assert_eq!(settings(short), settings(long));
        }
        assert_ne!(
            settings("--format sbm"),
            settings("--format sbm --nodes 4095")
        );
    }
}
