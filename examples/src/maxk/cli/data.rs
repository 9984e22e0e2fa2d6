//! Data options.
use std::{
    error::Error,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use sparsek::io::text::excerpt;
use sparsek_gnn::datasets::{
    ArchiveOptions, ArchiveSplit, NodeDataset, RandomSplit, csr,
    edge_list::{self, EdgeListOptions},
    graphsaint, karate, npz,
    ogb::{self, OgbOptions},
    power_law::{PowerLawConfig, power_law},
    sbm::{SbmConfig, block_model},
    tensors,
};
use sparsek_gnn::train::Preparation;

use crate::progress::file_bars;

/// Default nodes of the block model.
const NODES: usize = 4096;

/// Source of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Folder: adj_full.npz, feats.npy, class_map.json, role.json.
    Graphsaint,
    /// Open Graph Benchmark folder: raw/edge.csv.gz, split/NAME/train.csv.gz, ...
    Ogb,
    /// Folder: graph.npz (scipy's save_npz), features.npy, labels.npy, optional split.npz.
    Csr,
    /// Folder: edges.csv, features.csv or .npy, labels.csv or .npy, optional split.npz.
    EdgeList,
    /// One file, as of the Amazon, Coauthor and heterophilous graphs.
    Npz,
    /// One file, .pt or .safetensors: PyG's torch.save(data.to_dict(), FILE), or DGL's.
    Tensors,
    /// Seeded stochastic block model.
    Sbm,
    /// Zachary's karate club.
    Karate,
    /// Seeded power-law graph of Reddit's size, for timing.
    RedditSize,
    /// Seeded power-law graph of ogbn-products' size, for timing.
    ProductsSize,
}

/// Feature scaling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Features {
    /// None.
    Raw,
    /// Mean 0 and variance 1 over training nodes, as GraphSAINT.
    Standard,
    /// Each row divided by its sum of magnitudes.
    Rows,
}

/// Data options. Absent ones stay unset, so that unused options can be refused.
#[derive(Args, Clone, Debug)]
pub struct DataArgs {
    /// Folder of the dataset, for file formats; for npz and tensors the file.
    #[arg(help_heading = "Data", long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Format. Default: graphsaint.
    #[arg(help_heading = "Data", long, value_enum)]
    pub format: Option<Format>,
    /// Split of an OGB folder with several, or number of a stored split of an npz or tensor
    /// file.
    #[arg(help_heading = "Data", long, value_name = "NAME")]
    pub split: Option<String>,
    /// Do not symmetrize the edges of an OGB folder, edge list, npz or tensor file.
    #[arg(help_heading = "Data", long)]
    pub directed: bool,
    /// Nodes of the block model. Default: 4096.
    #[arg(help_heading = "Data", long)]
    pub nodes: Option<usize>,
    /// Seed of generated data, or of a random split of csr, edge-list, npz and tensors.
    /// Default: 0.
    #[arg(help_heading = "Data", long)]
    pub data_seed: Option<u64>,
    /// Add a self-loop to every node.
    #[arg(help_heading = "Data", long)]
    pub self_loops: bool,
    /// Feature scaling. Default: standard for files, else raw.
    #[arg(help_heading = "Data", long, value_enum)]
    pub features: Option<Features>,
}

impl Format {
    /// Whether it reads files.
    pub fn is_files(self) -> bool {
        matches!(self, Self::Graphsaint | Self::Ogb | Self::Csr | Self::EdgeList)
            || self.is_archive()
    }

    /// Whether it is one file, which may store splits.
    fn is_archive(self) -> bool {
        matches!(self, Self::Npz | Self::Tensors)
    }

    fn is_seeded(self) -> bool {
        !matches!(self, Self::Graphsaint | Self::Ogb | Self::Karate)
    }

    /// Whether a folder may have split.npz.
    fn may_have_split(self) -> bool {
        matches!(self, Self::Csr | Self::EdgeList)
    }

    /// Whether it symmetrizes edges by default.
    fn symmetrizes(self) -> bool {
        matches!(self, Self::Ogb | Self::EdgeList) || self.is_archive()
    }

    fn name(self) -> String {
        value_name(self)
    }
}

fn value_name(value: impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_string())
}

impl DataArgs {
    /// The format, or its default.
    pub fn format(&self) -> Format {
        self.format.unwrap_or(Format::Graphsaint)
    }

    /// Fills in the defaults that the format uses.
    pub fn resolved(&self) -> Self {
        let format = self.format();
        let seed = (!format.is_archive()).then_some(0);
        let data_seed = self.data_seed.or(seed).filter(|_| format.is_seeded());
        let features = match format.is_files() {
            true => Features::Standard,
            false => Features::Raw,
        };
        Self {
            format: Some(format),
            nodes: (format == Format::Sbm).then(|| self.nodes.unwrap_or(NODES)),
            data_seed,
            features: Some(self.features.unwrap_or(features)),
            ..self.clone()
        }
    }

    /// All options but the folder, in one line.
    pub fn settings(&self) -> String {
        let options = Self { data: None, ..self.resolved() };
        format!("{options:?}")
    }

    /// The preparation that a checkpoint records; `loops`: whether nodes get self-loops.
    pub fn preparation(&self, loops: bool) -> Preparation {
        let options = self.resolved();
        let folder = self.data.as_deref().unwrap_or(Path::new(""));
        let drawn = !self.format().may_have_split() || !folder.join("split.npz").exists();
        let number = |number: u64| number.to_string();
        let seed = options.data_seed.filter(|_| drawn);
        let pairs = [
            ("format", Some(self.format().name())),
            ("features", options.features.map(value_name)),
            ("self-loops", Some(loops.to_string())),
            ("split", options.split),
            ("directed", self.directed.then(|| true.to_string())),
            ("nodes", options.nodes.map(|nodes| number(nodes as u64))),
            ("data-seed", seed.map(number)),
        ];
        let pairs = pairs.into_iter();
        let named = |(name, value): (&str, Option<String>)| Some((name.to_string(), value?));
        pairs.filter_map(named).collect()
    }

    /// Fills in a saved run's options, and refuses contradictions unless `other` data is wanted.
    ///
    /// Other data in another format takes over only feature scaling and self-loops.
    ///
    /// # Errors
    /// One line that names the option.
    pub fn adopt(&self, saved: &Preparation, other: bool) -> Result<Self, String> {
        let mut options = self.clone();
        let found = Self::saved(saved)?;
        let foreign = other && self.format.is_some_and(|own| Some(own) != found.format);
        let refuse = |option: &str, given: String, saved: Option<String>| {
            let saved =
                saved.map_or_else(|| "has none".to_string(), |saved| format!("has {saved}"));
            Err(format!("{option} {given} contradicts the saved run, which {saved}"))
        };
        macro_rules! adopt {
            ($field:ident, $option:literal, $text:expr) => {
                match (&self.$field, &found.$field) {
                    (Some(own), saved) if !other && saved.as_ref() != Some(own) => {
                        let text = $text;
                        return refuse($option, text(own), saved.as_ref().map(text));
                    }
                    (None, saved) => options.$field = saved.clone(),
                    _ => {}
                }
            };
        }
        if !foreign {
            adopt!(format, "--format", |format: &Format| format.name());
            adopt!(split, "--split", |split: &String| excerpt(split));
            adopt!(nodes, "--nodes", usize::to_string);
            adopt!(data_seed, "--data-seed", u64::to_string);
            if self.directed && !found.directed && !other {
                return refuse("--directed", String::new(), None);
            }
            options.directed |= found.directed;
        }
        adopt!(features, "--features", |&features: &Features| value_name(features));
        if self.self_loops && !found.self_loops && !other {
            return refuse("--self-loops", String::new(), None);
        }
        options.self_loops |= found.self_loops;
        Ok(options)
    }

    /// Parses a saved run's options.
    fn saved(saved: &Preparation) -> Result<Self, String> {
        let mut options = Self {
            data: None,
            format: None,
            split: None,
            directed: false,
            nodes: None,
            data_seed: None,
            self_loops: false,
            features: None,
        };
        for (name, value) in saved {
            let unknown = || {
                let (name, value) = (excerpt(name), excerpt(value));
                format!("the saved run has the option {name} {value}, which is unknown here")
            };
            match name.as_str() {
                "format" => {
                    options.format = Some(Format::from_str(value, false).map_err(|_| unknown())?);
                }
                "features" => {
                    let features = Features::from_str(value, false);
                    options.features = Some(features.map_err(|_| unknown())?);
                }
                "self-loops" => options.self_loops = value.parse().map_err(|_| unknown())?,
                "split" => options.split = Some(value.clone()),
                "directed" => options.directed = value.parse().map_err(|_| unknown())?,
                "nodes" => options.nodes = Some(value.parse().map_err(|_| unknown())?),
                "data-seed" => options.data_seed = Some(value.parse().map_err(|_| unknown())?),
                _ => return Err(unknown()),
            }
        }
        Ok(options)
    }

    /// Files and folders that [`load`](Self::load) reads.
    pub fn inputs(&self) -> Vec<PathBuf> {
        let Some(folder) = &self.data else {
            return Vec::new();
        };
        let names: &[&str] = match self.format() {
            Format::Graphsaint => &["adj_full.npz", "feats.npy", "class_map.json", "role.json"],
            Format::Ogb => &["raw", "split"],
            Format::Csr => &["graph.npz", "features.npy", "labels.npy", "split.npz"],
            Format::EdgeList => return edge_list::files(folder),
            Format::Npz | Format::Tensors => return vec![folder.clone()],
            _ => &[],
        };
        names.iter().map(|name| folder.join(name)).collect()
    }

    /// Refuses options that the format does not use.
    ///
    /// # Errors
    /// One line that names the option and the format.
    pub fn check(&self) -> Result<(), String> {
        let format = self.format();
        let given = [
            ("--data", self.data.is_some(), format.is_files()),
            ("--split", self.split.is_some(), format == Format::Ogb || format.is_archive()),
            ("--directed", self.directed, format.symmetrizes()),
            ("--nodes", self.nodes.is_some(), format == Format::Sbm),
            ("--data-seed", self.data_seed.is_some(), format.is_seeded()),
        ];
        for (option, given, used) in given {
            if given && !used {
                return Err(format!("{option} means nothing with --format {}", format.name()));
            }
        }
        if format.is_archive() {
            self.archive()?;
        }
        let split = self.data.as_ref().map(|folder| folder.join("split.npz"));
        match split {
            Some(split) if self.data_seed.is_some() && split.exists() => {
                Err(format!("{}: sets the split, so --data-seed means nothing", split.display()))
            }
            None if format.is_files() => {
                Err(format!("--format {} needs --data DIR", format.name()))
            }
            _ => Ok(()),
        }
    }

    fn archive(&self) -> Result<ArchiveOptions, String> {
        let split = match (&self.split, self.data_seed) {
            (None, None) => None,
            (None, Some(seed)) => Some(ArchiveSplit::Random(RandomSplit::default(), seed)),
            (Some(_), Some(_)) => {
                return Err(
                    "--split names a stored split, so --data-seed means nothing".to_string()
                );
            }
            (Some(split), None) => match split.parse() {
                Ok(split) => Some(ArchiveSplit::Stored(split)),
                Err(_) => return Err(format!("--split {} is not a number", excerpt(split))),
            },
        };
        Ok(ArchiveOptions { directed: self.directed, split })
    }

    /// Loads the dataset, with a progress bar per file on terminals.
    pub fn load(&self) -> Result<NodeDataset, Box<dyn Error>> {
        self.check()?;
        let format = self.format();
        let folder = self.data.as_deref().unwrap_or(Path::new(""));
        let data_seed = self.data_seed.unwrap_or(0);
        let watch = &mut file_bars();
        let data = match format {
            Format::Graphsaint => graphsaint::load(folder, watch)?,
            Format::Ogb => {
                let options = OgbOptions { directed: self.directed, split: self.split.clone() };
                ogb::load(folder, &options, watch)?
            }
            Format::Csr => csr::load(folder, data_seed, watch)?,
            Format::EdgeList => {
                let options = EdgeListOptions { directed: self.directed, seed: data_seed };
                edge_list::load(folder, &options, watch)?
            }
            Format::Npz => npz::load(folder, &self.archive()?, watch)?,
            Format::Tensors => tensors::load(folder, &self.archive()?)?,
            Format::Sbm => {
                let nodes = self.nodes.unwrap_or(NODES);
                block_model(&SbmConfig::new(nodes).with_seed(data_seed))?
            }
            Format::Karate => karate::karate_club(),
            Format::RedditSize => power_law(&PowerLawConfig::reddit_size().with_seed(data_seed))?,
            Format::ProductsSize => {
                power_law(&PowerLawConfig::products_size().with_seed(data_seed))?
            }
        };
        Ok(match self.resolved().features.unwrap_or(Features::Raw) {
            Features::Raw => data,
            Features::Standard => data.with_standardized_features(),
            Features::Rows => data.with_normalized_rows(),
        })
    }
}

/// Adds self-loops if wanted.
pub fn looped(data: NodeDataset, wanted: bool) -> NodeDataset {
    match wanted {
        true => {
            let graph = data.graph().with_self_loops();
            data.with_graph(graph)
        }
        false => data,
    }
}
