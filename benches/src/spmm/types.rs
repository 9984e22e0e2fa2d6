//! Command line, methods and graphs of `spmm`.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use sparsek::topk::Method as Selection;
use sparsek_gnn::{
    Graph,
    datasets::{NodeDataset, graphsaint, noise::Noise, power_law::PowerLawConfig},
    nn::{Architecture, method_from_str},
};
use sparsek_tests::backend::{Backend, Kind};

use super::graph;
use crate::timing::wall_clock;

/// Checks and times products of a graph with dense and compressed rows, their gradients, and
/// training epochs.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where to run.
    #[arg(long)]
    pub backend: Kind,
    /// A synthetic graph: flickr-size, yelp-size, reddit-size, products-size, or a fraction,
    /// reddit-size/100; may be repeated.
    #[arg(long = "graph")]
    pub graphs: Vec<PowerLawConfig>,
    /// A graph as raw int32 files PREFIX.indptr and PREFIX.indices; may be repeated.
    #[arg(long = "csr", value_name = "PREFIX")]
    pub files: Vec<PathBuf>,
    /// A GraphSAINT folder, with features and classes for epochs; may be repeated.
    #[arg(long = "data", value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// Writes the last graph as PREFIX.indptr and PREFIX.indices.
    #[arg(long, value_name = "PREFIX")]
    pub dump: Option<PathBuf>,
    /// Elements kept of each row.
    #[arg(long, value_delimiter = ',', default_value = "16,32,64")]
    pub k: Vec<usize>,
    /// Elements of a row; epochs always use 256.
    #[arg(long, default_value_t = 256)]
    pub width: usize,
    /// What to time; may be repeated. Default: all products, no epochs.
    #[arg(long = "method", value_enum, value_delimiter = ',', default_values_t = Method::PRODUCTS)]
    pub methods: Vec<Method>,
    /// Top-k method of epochs: exact, early:ITERATIONS or precision:EPSILON; may be repeated.
    #[arg(
        long = "topk",
        value_name = "METHOD",
        value_delimiter = ',',
        default_value = "exact",
        value_parser = method_from_str
    )]
    pub selections: Vec<Selection>,
    /// Convolution of epochs.
    #[arg(long, value_enum, default_value_t = Model::Sage)]
    pub model: Model,
    /// Epochs in mixed precision, bf16 and f32. Records append it to the case.
    #[arg(long)]
    pub mixed: bool,
    /// Seed of synthetic data and of model parameters.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Appends one JSON line for each graph, k and method.
    #[arg(long)]
    pub json: Option<PathBuf>,
}

impl Arguments {
    /// Epochs with the exact selection of k elements, on a synthetic graph; without records.
    pub fn epochs(backend: Kind, graph: PowerLawConfig, model: Model, k: usize) -> Self {
        Self {
            backend,
            graphs: vec![graph],
            files: Vec::new(),
            folders: Vec::new(),
            dump: None,
            k: vec![k],
            width: 256,
            methods: vec![Method::Epoch],
            selections: vec![Selection::Exact],
            model,
            mixed: false,
            seed: 0,
            json: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Model {
    /// GraphSAGE with the mean of neighbors.
    Sage,
    /// GCN.
    Gcn,
    /// GIN without a network.
    Gin,
}

impl Model {
    pub const ALL: [Self; 3] = [Self::Sage, Self::Gcn, Self::Gin];

    pub fn name(self) -> &'static str {
        match self {
            Self::Sage => "sage",
            Self::Gcn => "gcn",
            Self::Gin => "gin",
        }
    }

    pub(crate) fn architecture(self) -> Architecture {
        match self {
            Self::Sage => Architecture::Sage,
            Self::Gcn => Architecture::Gcn,
            Self::Gin => Architecture::Gin,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Method {
    /// Compression of dense rows.
    Topk,
    /// Product with compressed rows.
    Forward,
    /// Its gradient, in the form that the library chooses.
    Backward,
    /// The two-pass gradient: write contributions, then gather.
    #[value(alias = "backward-terms")]
    BackwardTwoPass,
    /// The gathered gradient.
    BackwardGathered,
    /// Product with dense rows.
    Dense,
    /// A training epoch of MaxK.
    Epoch,
    /// A training epoch of ReLU.
    EpochRelu,
}

impl Method {
    pub const PRODUCTS: [Self; 6] = [
        Self::Topk,
        Self::Forward,
        Self::Backward,
        Self::BackwardTwoPass,
        Self::BackwardGathered,
        Self::Dense,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Topk => "topk",
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::BackwardTwoPass => "backward-two-pass",
            Self::BackwardGathered => "backward-gathered",
            Self::Dense => "dense",
            Self::Epoch => "epoch",
            Self::EpochRelu => "epoch-relu",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

pub struct Source {
    pub name: String,
    pub dist: &'static str,
    pub graph: Graph,
    /// Features and classes of a data set; without them epochs train on noise.
    data: Option<NodeDataset>,
    noise: Noise,
}

impl Source {
    pub fn synthetic(config: &PowerLawConfig, seed: u64) -> anyhow::Result<Self> {
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
            noise: config.noise,
        })
    }

    pub fn file(prefix: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            name: prefix.display().to_string(),
            dist: "data",
            graph: graph::read(prefix)?.try_into()?,
            data: None,
            noise: Noise::default(),
        })
    }

    pub fn folder(folder: &Path) -> anyhow::Result<Self> {
        let data = graphsaint::load(folder, &mut |_, _, _| ())?.with_standardized_features();
        Ok(Self {
            name: data.name().to_string(),
            dist: "data",
            graph: data.graph().clone(),
            data: Some(data),
            noise: Noise::default(),
        })
    }

    pub fn dataset(&self, seed: u64) -> anyhow::Result<NodeDataset> {
        let noise = Noise { seed, ..self.noise };
        Ok(match &self.data {
            Some(data) => data.clone(),
            None => noise.dataset(&self.name, self.graph.clone())?,
        })
    }
}

pub struct Bench<'a> {
    pub backend: Backend,
    pub arguments: &'a Arguments,
    pub copy_gbps: f64,
}
