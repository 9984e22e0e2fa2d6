//! The command line.
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use sparsek::io::text::excerpt;
use sparsek_examples::backend::Choice;

/// Selects the k greatest or least elements of a vector in a file.
///
/// The file is a one-dimensional .npy of f32, f64, f16, i32, i64 or u32, in either byte order, of
/// any length. The output is an .npz with `values`, in the same dtype, and `indices`, in i64. Ties
/// go to the lowest index, NaN is greater than all else.
#[derive(Parser, Debug)]
#[command(
    name = "topk",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct Cli {
    /// What else to do.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of the selection.
    #[command(flatten)]
    pub select: SelectArgs,
}

/// What else to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Write a vector of random f32.
    Generate(GenerateArgs),
}

/// Options of the selection.
#[derive(Args, Debug)]
pub struct SelectArgs {
    /// The vector.
    #[arg(long, value_name = "FILE", required = true)]
    pub input: Option<PathBuf>,
    /// Elements to select.
    #[arg(long, required = true, value_parser = count)]
    pub k: Option<usize>,
    /// The file to write.
    #[arg(long, value_name = "FILE", required = true)]
    pub output: Option<PathBuf>,
    /// What to compute with.
    #[arg(long, value_enum, default_value_t = Choice::Auto)]
    pub backend: Choice,
    /// Numbers of the backend's devices to cut the vector over, such as 0,1,2,3. Default: its best.
    #[arg(long, value_delimiter = ',')]
    pub devices: Vec<usize>,
    /// Elements on the devices at a time. Default: 2**24, or 4 k where that is more; on GPUs 2**26
    /// bytes, or 64 k elements where that is more, up to 2**29 bytes.
    #[arg(long, value_parser = positive)]
    pub chunk: Option<usize>,
    /// Select the least elements.
    #[arg(long)]
    pub smallest: bool,
    /// Order the output by value, best first. Default: by index.
    #[arg(long)]
    pub sorted: bool,
}

/// Options of generated vectors.
#[derive(Args, Debug)]
pub struct GenerateArgs {
    /// Elements.
    #[arg(long, value_parser = count)]
    pub length: usize,
    /// How they are drawn.
    #[arg(long, value_enum, default_value_t = Dist::Normal)]
    pub dist: Dist,
    /// Seed of the elements.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// The file to write.
    #[arg(long, value_name = "FILE")]
    pub output: PathBuf,
}

/// How elements are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Dist {
    /// Standard normal.
    Normal,
    /// Uniform in 0..1.
    Uniform,
}

/// A count such as 1000 or 2**20.
fn count(text: &str) -> Result<usize, String> {
    let wrong = |_| {
        let text = excerpt(text);
        format!("{text} is no count: expected a number such as 1000 or 2**20")
    };
    let Some((base, exponent)) = text.split_once("**") else {
        return text.parse().map_err(wrong);
    };
    let base: usize = base.parse().map_err(wrong)?;
    let exponent: u32 = exponent.parse().map_err(wrong)?;
    base.checked_pow(exponent)
        .ok_or_else(|| format!("{} is too great", excerpt(text)))
}

fn positive(text: &str) -> Result<usize, String> {
    match count(text)? {
        0 => Err("must be at least 1".into()),
        count => Ok(count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        assert_eq!(count("12"), Ok(12));
        assert_eq!(count("2**28"), Ok(1 << 28));
        for text in ["", "-1", "2**", "2**-1", "2**64", "1e3"] {
            assert!(count(text).is_err(), "{text}");
        }
        assert!(positive("0").is_err());
    }
}
