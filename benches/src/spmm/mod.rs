//! Products of a graph with dense and compressed rows, their gradients, and training epochs.

mod check;
mod epoch;
pub(crate) mod graph;
mod operands;
mod products;
mod tensors;
mod types;

use anyhow::ensure;

use self::types::Bench;
pub use self::types::{Method, Model};
pub use self::{
    epoch::Training,
    operands::number,
    tensors::{Operation, ready},
    types::Arguments,
};
pub(crate) use self::{graph::longest, types::Source};
use crate::{copy, record::EpochRecord};

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    records(arguments).map(drop)
}

/// Runs everything and returns the records of epochs.
pub fn records(arguments: &Arguments) -> anyhow::Result<Vec<EpochRecord>> {
    let backend = arguments.backend.open().map_err(anyhow::Error::msg)?;
    let mut methods = Method::PRODUCTS.iter();
    ensure!(
        backend.client.is_some() || !methods.any(|method| arguments.methods.contains(method)),
        "{}: the kernels run on devices; use --method epoch,epoch-relu",
        arguments.backend
    );
    let copy_gbps = copy::backend_rate(&backend)?;
    say!("{} ({}): copy {copy_gbps:.0} GB/s", arguments.backend, backend.label);
    let bench = Bench { backend, arguments, copy_gbps };
    let mut epochs = Vec::new();
    for config in &arguments.graphs {
        epochs.extend(source(&bench, &Source::synthetic(config, arguments.seed)?)?);
    }
    for prefix in &arguments.files {
        epochs.extend(source(&bench, &Source::file(prefix)?)?);
    }
    for folder in &arguments.folders {
        epochs.extend(source(&bench, &Source::folder(folder)?)?);
    }
    Ok(epochs)
}

/// Runs the products, then the epochs of one graph.
fn source(bench: &Bench, source: &Source) -> anyhow::Result<Vec<EpochRecord>> {
    if let Some(prefix) = &bench.arguments.dump {
        graph::write(source.graph.pattern(), prefix)?;
    }
    if let Some(client) = &bench.backend.client {
        products::run(bench, client, source)?;
    }
    epoch::run(bench, source)
}
