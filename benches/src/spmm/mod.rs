//! Products of a graph with dense and compressed rows, their gradients, and training epochs.

mod check;
mod epoch;
pub(crate) mod graph;
mod operands;
mod products;
mod tensors;
mod types;

use anyhow::ensure;

use self::types::{Bench, Method};
pub use self::{
    epoch::Training,
    operands::number,
    tensors::{Operation, ready},
    types::Arguments,
};
pub(crate) use self::{graph::longest, types::Source};
use crate::copy;

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
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
    for config in &arguments.graphs {
        source(&bench, &Source::synthetic(config, arguments.seed)?)?;
    }
    for prefix in &arguments.files {
        source(&bench, &Source::file(prefix)?)?;
    }
    for folder in &arguments.folders {
        source(&bench, &Source::folder(folder)?)?;
    }
    Ok(())
}

/// Runs the products, then the epochs of one graph.
fn source(bench: &Bench, source: &Source) -> anyhow::Result<()> {
    if let Some(prefix) = &bench.arguments.dump {
        graph::write(source.graph.pattern(), prefix)?;
    }
    if let Some(client) = &bench.backend.client {
        products::run(bench, client, source)?;
    }
    epoch::run(bench, source)
}
