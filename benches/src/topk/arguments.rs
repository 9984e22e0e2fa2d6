//! Command line of `topk`.

use std::path::PathBuf;

use sparsek_kernels::topk::{ROUTINES, Routine};
use sparsek_tests::{backend::Kind, data::Distribution, element::Dtype};

use super::problem::{Form, Lengths};
use crate::case::RowCase;

/// Checks and times row-wise top-k.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where to run.
    #[arg(long)]
    pub backend: Kind,
    /// Rows x columns x k, for example 2**20x256x32; may be repeated.
    #[arg(long = "case", default_value = "2**16x256x32")]
    pub cases: Vec<RowCase>,
    /// exact, early:N or precision:EPS; may be repeated.
    #[arg(long = "method", default_value = "exact")]
    pub methods: Vec<String>,
    /// Distribution of the input, by the suite's names; may be repeated.
    #[arg(long = "dist", default_value = "normal", value_parser = distribution)]
    pub dists: Vec<Distribution>,
    /// Type of the elements; may be repeated.
    #[arg(long = "dtype", value_enum, default_value = "f32")]
    pub dtypes: Vec<Dtype>,
    /// The output.
    #[arg(long, value_enum, default_value_t = Form::Pairs)]
    pub form: Form,
    /// Makes rows ragged on devices. Records append it to the form: pairs/uniform.
    #[arg(long, value_enum)]
    pub lengths: Option<Lengths>,
    /// Forces a routine on devices. Records append it to the method: exact@sampled.
    #[arg(long, value_parser = routine)]
    pub routine: Option<Routine>,
    /// Also times Burn's topk_with_indices on the same device.
    #[arg(long)]
    pub burn: bool,
    /// Appends one JSON line per case and method.
    #[arg(long)]
    pub json: Option<PathBuf>,
}

pub fn distribution(text: &str) -> Result<Distribution, String> {
    let mut all = Distribution::ALL.into_iter();
    all.find(|dist| dist.name() == text).ok_or_else(|| {
        let names = Distribution::ALL.map(Distribution::name);
        format!("not one of {}", names.join(", "))
    })
}

fn routine(text: &str) -> Result<Routine, String> {
    let renamed = if text == "stream" { "sampled" } else { text };
    let mut all = ROUTINES.iter().copied();
    all.find(|routine| [text, renamed].contains(&routine.name())).ok_or_else(|| {
        let names: Vec<&str> = ROUTINES.iter().map(|routine| routine.name()).collect();
        format!("not one of {}", names.join(", "))
    })
}
