//! What `topk` is asked on the command line.

use std::path::PathBuf;

use anyhow::bail;
use sparsek_kernels::topk::{Method, ROUTINES, Routine};
use sparsek_tests::{backend::Kind, data::Distribution, element::Dtype};

use super::Form;
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
    /// Values and indices in index order, the same by value, the dense masked rows, or the gradient
    /// of the input.
    #[arg(long, value_enum, default_value_t = Form::Pairs)]
    pub form: Form,
    /// Forces a routine of the kernels, where there are kernels; records have it behind the method: exact@stream.
    #[arg(long, value_parser = routine)]
    pub routine: Option<Routine>,
    /// Times Burn's own topk_with_indices as well, on the same device.
    #[arg(long)]
    pub burn: bool,
    /// Appends one JSON line per case and method.
    #[arg(long)]
    pub json: Option<PathBuf>,
}

/// A method as it is written.
pub fn method(text: &str) -> anyhow::Result<Method> {
    Ok(match text.split_once(':') {
        None if text == "exact" => Method::Exact,
        Some(("early", steps)) => Method::EarlyStop(steps.parse()?),
        Some(("precision", eps)) => Method::Precision(eps.parse()?),
        _ => bail!("{text}: a method is exact, early:N or precision:EPS"),
    })
}

/// A distribution by its name.
pub fn distribution(text: &str) -> Result<Distribution, String> {
    let mut all = Distribution::ALL.into_iter();
    all.find(|dist| dist.name() == text).ok_or_else(|| {
        let names = Distribution::ALL.map(Distribution::name);
        format!("not one of {}", names.join(", "))
    })
}

/// A routine by its name.
fn routine(text: &str) -> Result<Routine, String> {
    let mut all = ROUTINES.iter().copied();
    all.find(|routine| routine.name() == text).ok_or_else(|| {
        let names: Vec<&str> = ROUTINES.iter().map(|routine| routine.name()).collect();
        format!("not one of {}", names.join(", "))
    })
}
