//! Options of the data.
use std::{
    cell::RefCell,
    error::Error,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use sparsek_examples::program::bar;
use sparsek_gnn::datasets::{
    NodeDataset, csr, graphsaint, karate,
    ogb::{self, OgbOptions},
    power_law::{PowerLawConfig, power_law},
    sbm::{SbmConfig, block_model},
};

/// Where the data comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A folder of adj_full.npz, feats.npy, class_map.json and role.json.
    Graphsaint,
    /// A raw folder of the Open Graph Benchmark: raw/edge.csv.gz and so on, split/NAME/train.csv.gz and so on.
    Ogb,
    /// A folder of graph.npz (scipy's save_npz), features.npy, labels.npy and, if wanted, split.npz.
    Csr,
    /// A seeded stochastic block model.
    Sbm,
    /// Zachary's karate club.
    Karate,
    /// A seeded power-law graph with the nodes and edges of Reddit, for speed.
    RedditSize,
    /// A seeded power-law graph with the nodes and edges of ogbn-products, for speed.
    ProductsSize,
}

/// What is done to the features first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Features {
    /// Nothing.
    Raw,
    /// Mean 0 and variance 1 over the training nodes, as GraphSAINT does.
    Standard,
    /// Each node's divided by the sum of their magnitudes.
    Rows,
}

/// Options of the data.
#[derive(Args, Clone, Debug)]
pub struct DataArgs {
    /// Folder of the dataset, for the formats that are files.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Format of the dataset.
    #[arg(long, value_enum, default_value_t = Format::Graphsaint)]
    pub format: Format,
    /// Split of an OGB folder, if it has several.
    #[arg(long, value_name = "NAME")]
    pub split: Option<String>,
    /// Take the edges of an OGB folder in the direction stored only, not in both.
    #[arg(long)]
    pub directed: bool,
    /// Nodes of the block model.
    #[arg(long, default_value_t = 4096)]
    pub nodes: usize,
    /// Seed of what is generated, or of the split where a CSR folder has none.
    #[arg(long, default_value_t = 0)]
    pub data_seed: u64,
    /// Give every node an edge to itself.
    #[arg(long)]
    pub self_loops: bool,
    /// What is done to the features first. Default: standard for files, raw for what is built in.
    #[arg(long, value_enum)]
    pub features: Option<Features>,
}

impl DataArgs {
    /// All of them but where the files are, in one line.
    pub fn settings(&self) -> String {
        let options = Self {
            data: None,
            ..self.clone()
        };
        format!("{options:?}")
    }

    /// The dataset, with a progress bar for each file if somebody looks at it.
    pub fn load(&self) -> Result<NodeDataset, Box<dyn Error>> {
        let built_in = !matches!(self.format, Format::Graphsaint | Format::Ogb | Format::Csr);
        let folder = match (&self.data, built_in) {
            (Some(folder), _) => folder.as_path(),
            (None, true) => Path::new(""),
            (None, false) => return Err("formats that are files need --data DIR".into()),
        };
        let shown = RefCell::new(None);
        let watch = &mut |file: &Path, done: u64, size: u64| {
            let mut shown = shown.borrow_mut();
            if shown.as_ref().is_none_or(|(path, _)| path != file) {
                *shown = Some((file.to_path_buf(), bar(size as usize)));
            }
            if let Some((_, Some(bar))) = shown.as_ref() {
                bar.set_position(done);
                if done == size {
                    bar.finish_and_clear();
                }
            }
        };
        let data = match self.format {
            Format::Graphsaint => graphsaint::load(folder, watch)?,
            Format::Ogb => {
                let options = OgbOptions {
                    directed: self.directed,
                    split: self.split.clone(),
                };
                ogb::load(folder, &options, watch)?
            }
            Format::Csr => csr::load(folder, self.data_seed, watch)?,
            Format::Sbm => block_model(&SbmConfig::new(self.nodes).with_seed(self.data_seed))?,
            Format::Karate => karate::karate_club(),
            Format::RedditSize => {
                power_law(&PowerLawConfig::reddit_size().with_seed(self.data_seed))?
            }
            Format::ProductsSize => {
                power_law(&PowerLawConfig::products_size().with_seed(self.data_seed))?
            }
        };
        let features = match built_in {
            true => Features::Raw,
            false => Features::Standard,
        };
        Ok(match self.features.unwrap_or(features) {
            Features::Raw => data,
            Features::Standard => data.with_standardised_features(),
            Features::Rows => data.with_normalised_rows(),
        })
    }
}

/// The dataset, every node with an edge to itself if so wanted.
pub fn looped(data: NodeDataset, wanted: bool) -> NodeDataset {
    match wanted {
        true => {
            let graph = data.graph().with_self_loops();
            data.with_graph(graph)
        }
        false => data,
    }
}
