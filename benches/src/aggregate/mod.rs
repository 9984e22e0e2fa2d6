//! Products of a graph with dense and with compressed rows, their gradients, and epochs of training.

mod check;
mod device;
mod epoch;
mod graph;
mod products;
pub mod table;

use std::path::{Path, PathBuf};

use anyhow::ensure;
use sparsek::topk::Method as Selection;
use sparsek_gnn::{
    Graph,
    datasets::{NodeDataset, graphsaint, noise::Noise, power_law::PowerLawConfig},
    nn::method_from_str,
};
use sparsek_tests::backend::{Backend, Kind};

pub use device::number;

use crate::{copy, timing::wall_clock};

/// Checks and times products of a graph with rows of features, dense and compressed, their gradients, and whole epochs of training.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where to run.
    #[arg(long)]
    backend: Kind,
    /// A synthetic graph: reddit-size or products-size, perhaps divided: reddit-size/100; may be repeated.
    #[arg(long = "graph")]
    graphs: Vec<PowerLawConfig>,
    /// A graph of one's own: raw int32 PREFIX.indptr and PREFIX.indices; may be repeated.
    #[arg(long = "csr", value_name = "PREFIX")]
    files: Vec<PathBuf>,
    /// A GraphSAINT folder, whose features and classes epochs are trained on; may be repeated.
    #[arg(long = "data", value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Writes the last graph as PREFIX.indptr and PREFIX.indices.
    #[arg(long, value_name = "PREFIX")]
    dump: Option<PathBuf>,
    /// Elements kept of each row.
    #[arg(long, value_delimiter = ',', default_value = "16,32,64")]
    k: Vec<usize>,
    /// Elements of a row; epochs have 256.
    #[arg(long, default_value_t = 256)]
    width: usize,
    /// topk, forward, backward, backward-terms, backward-gathered, backward-atomic, dense, epoch, epoch-atomic or epoch-relu; may be repeated. Default: all but epochs.
    #[arg(long = "method", value_enum, value_delimiter = ',', default_values_t = Method::PRODUCTS)]
    methods: Vec<Method>,
    /// How epochs find the elements that are kept: exact, early:ITERATIONS or precision:EPSILON; may be repeated.
    #[arg(long = "topk", value_name = "METHOD", value_delimiter = ',', default_value = "exact", value_parser = method_from_str)]
    selections: Vec<Selection>,
    /// Seed of what is synthetic, and of the parameters of epochs.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Appends one JSON line for each graph, k and method.
    #[arg(long)]
    json: Option<PathBuf>,
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Method {
    /// Compression of dense rows.
    Topk,
    /// The product with compressed rows.
    Forward,
    /// Its gradient.
    Backward,
    /// Its gradient by terms that are written first.
    BackwardTerms,
    /// Its gradient gathered, or picked from the product with dense rows.
    BackwardGathered,
    /// Its gradient by atomics, not deterministic.
    BackwardAtomic,
    /// The product with dense rows.
    Dense,
    /// An epoch of training with MaxK, through compressed rows.
    Epoch,
    /// The same with gradients added up by atomics, not deterministic.
    EpochAtomic,
    /// The same with ReLU.
    EpochRelu,
}

impl Method {
    const PRODUCTS: [Self; 7] = [
        Self::Topk,
        Self::Forward,
        Self::Backward,
        Self::BackwardTerms,
        Self::BackwardGathered,
        Self::BackwardAtomic,
        Self::Dense,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Topk => "topk",
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::BackwardTerms => "backward-terms",
            Self::BackwardGathered => "backward-gathered",
            Self::BackwardAtomic => "backward-atomic",
            Self::Dense => "dense",
            Self::Epoch => "epoch",
            Self::EpochAtomic => "epoch-atomic",
            Self::EpochRelu => "epoch-relu",
        }
    }
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A graph, and where it comes from.
struct Source {
    name: String,
    /// `synthetic` or `data`.
    dist: &'static str,
    graph: Graph,
    /// What epochs are trained on, where it is not noise.
    data: Option<NodeDataset>,
}

impl Source {
    fn synthetic(config: &PowerLawConfig, seed: u64) -> anyhow::Result<Self> {
        let config = config.clone().with_seed(seed);
        let mut graph = None;
        let ms = wall_clock(|| {
            graph = Some(Graph::try_from(config.pattern()?)?);
            Ok(())
        })?;
        say!("{} (synthetic): made in {:.1} s", config.name, ms / 1e3);
        Ok(Self {
            name: config.name,
            dist: "synthetic",
            graph: graph.expect("made"),
            data: None,
        })
    }

    fn file(prefix: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            name: prefix.display().to_string(),
            dist: "data",
            graph: graph::read(prefix)?.try_into()?,
            data: None,
        })
    }

    fn folder(folder: &Path) -> anyhow::Result<Self> {
        let data = graphsaint::load(folder, &mut |_, _, _| ())?.with_standardised_features();
        Ok(Self {
            name: data.name().to_string(),
            dist: "data",
            graph: data.graph().clone(),
            data: Some(data),
        })
    }

    /// What epochs are trained on.
    fn dataset(&self, seed: u64) -> anyhow::Result<NodeDataset> {
        let noise = Noise {
            seed,
            ..Noise::default()
        };
        Ok(match &self.data {
            Some(data) => data.clone(),
            None => noise.dataset(&self.name, self.graph.clone())?,
        })
    }
}

/// Where and how the cases run.
struct Bench<'a> {
    backend: Backend,
    arguments: &'a Arguments,
    copy_gbps: f64,
}

/// Runs every graph with every k and method.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let backend = arguments.backend.open().map_err(anyhow::Error::msg)?;
    let products = Method::PRODUCTS
        .iter()
        .any(|method| arguments.methods.contains(method));
    ensure!(
        !products || backend.client.is_some(),
        "{}: the kernels run on devices; there is --method epoch,epoch-relu",
        arguments.backend
    );
    let copy_gbps = copy::backend_rate(&backend)?;
    say!(
        "{} ({}): copy {copy_gbps:.0} GB/s",
        arguments.backend,
        backend.label
    );
    let bench = Bench {
        backend,
        arguments,
        copy_gbps,
    };
    for config in &arguments.graphs {
        bench.source(&Source::synthetic(config, arguments.seed)?)?;
    }
    for prefix in &arguments.files {
        bench.source(&Source::file(prefix)?)?;
    }
    for folder in &arguments.folders {
        bench.source(&Source::folder(folder)?)?;
    }
    Ok(())
}

impl Bench<'_> {
    fn source(&self, source: &Source) -> anyhow::Result<()> {
        if let Some(prefix) = &self.arguments.dump {
            graph::write(source.graph.pattern(), prefix)?;
        }
        if let Some(client) = &self.backend.client {
            products::run(self, client, source)?;
        }
        epoch::run(self, source)
    }
}
