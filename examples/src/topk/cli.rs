//! The command line.
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use sparsek::io::text::excerpt;
use sparsek_examples::backend::Choice;

const EXAMPLES: &str = "\
Examples:
  topk generate --length 2**24 --output scores.npy
  topk --input scores.npy --k 100 --sorted --output top.npz
  topk --input scores.npy --k 2**20 --backend cuda --devices 0,1 --output top.npz";

const GENERATE_EXAMPLES: &str = "\
Examples:
  topk generate --length 2**24 --output scores.npy
  topk generate --length 1000 --dist uniform --seed 7 --output small.npy";

/// Select the k greatest or least elements of a vector.
///
/// The input is a one-dimensional .npy of f32, f64, f16, i32, i64 or u32, in either byte order, of
/// any length. The output is an .npz with `values` in the same dtype and `indices` in i64. Ties go
/// to the lowest index; NaN is greatest.
#[derive(Parser, Debug)]
#[command(
    name = "topk",
    version,
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct Cli {
    /// Command.
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub select: SelectArgs,
}

/// Commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Write a vector of random f32.
    #[command(after_help = GENERATE_EXAMPLES)]
    Generate(GenerateArgs),
}

#[derive(Args, Debug)]
pub struct SelectArgs {
    /// Vector to read.
    #[arg(help_heading = "Selection", long, value_name = "FILE", required = true)]
    pub input: Option<PathBuf>,
    /// Elements to select.
    #[arg(help_heading = "Selection", long, required = true, value_parser = count)]
    pub k: Option<usize>,
    /// File to write.
    #[arg(help_heading = "Output", long, value_name = "FILE", required = true)]
    pub output: Option<PathBuf>,
    /// Backend.
    #[arg(help_heading = "Device", long, value_enum, default_value_t = Choice::Auto)]
    pub backend: Choice,
    /// Device numbers to share the vector, such as 0,1,2,3. Default: the best.
    #[arg(help_heading = "Device", long, value_delimiter = ',')]
    pub devices: Vec<usize>,
    /// Elements per chunk. Default: 2**24, or 4 k if greater; on GPUs 2**26 bytes, or 64 k elements
    /// if greater, up to 2**29 bytes.
    #[arg(help_heading = "Device", long, value_parser = positive)]
    pub chunk: Option<usize>,
    /// Select the least.
    #[arg(help_heading = "Selection", long)]
    pub smallest: bool,
    /// Sort by value, best first. Default: by index.
    #[arg(help_heading = "Selection", long)]
    pub sorted: bool,
}

#[derive(Args, Debug)]
pub struct GenerateArgs {
    /// Elements.
    #[arg(help_heading = "Vector", long, value_parser = count)]
    pub length: usize,
    /// Distribution.
    #[arg(help_heading = "Vector", long, value_enum, default_value_t = Dist::Normal)]
    pub dist: Dist,
    /// Seed.
    #[arg(help_heading = "Vector", long, default_value_t = 0)]
    pub seed: u64,
    /// File to write.
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Dist {
    /// Standard normal.
    Normal,
    /// Uniform in 0..1.
    Uniform,
}

/// Parses a count such as 1000 or 2**20.
fn count(text: &str) -> Result<usize, String> {
    let wrong = |_| {
        let text = excerpt(text);
        format!("{text} is not a count such as 1000 or 2**20")
    };
    let Some((base, exponent)) = text.split_once("**") else {
        return text.parse().map_err(wrong);
    };
    let base: usize = base.parse().map_err(wrong)?;
    let exponent: u32 = exponent.parse().map_err(wrong)?;
    base.checked_pow(exponent).ok_or_else(|| format!("{} is too large", excerpt(text)))
}

fn positive(text: &str) -> Result<usize, String> {
    match count(text)? {
        0 => Err("must be at least 1".into()),
        count => Ok(count),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("12", 12)]
    #[case::power("2**28", 1 << 28)]
    fn counts_are_numbers_or_powers(#[case] text: &str, #[case] expected: usize) {
        assert_eq!(count(text), Ok(expected));
    }

    #[rstest]
    fn other_text_is_no_count(#[values("", "-1", "2**", "2**-1", "2**64", "1e3")] text: &str) {
        assert!(count(text).is_err());
    }

    #[test]
    fn zero_is_not_positive() {
        assert!(positive("0").is_err());
    }
}
