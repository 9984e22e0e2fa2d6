//! Options of the data.
use std::{
    cell::RefCell,
    error::Error,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use sparsek::io::text::excerpt;
use sparsek_examples::program::bar;
use sparsek_gnn::datasets::{
    NodeDataset, csr, graphsaint, karate,
    ogb::{self, OgbOptions},
    power_law::{PowerLawConfig, power_law},
    sbm::{SbmConfig, block_model},
};
use sparsek_gnn::train::Preparation;

/// Nodes of the block model, if not given.
const NODES: usize = 4096;

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

/// Options of the data. What is not given is none or false here, so that options which the format
/// does not use can be refused.
#[derive(Args, Clone, Debug)]
pub struct DataArgs {
    /// Folder of the dataset, for the formats that are files.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Format of the dataset. Default: graphsaint.
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Split of an OGB folder, if it has several.
    #[arg(long, value_name = "NAME")]
    pub split: Option<String>,
    /// Take the edges of an OGB folder in the direction stored only, not in both.
    #[arg(long)]
    pub directed: bool,
    /// Nodes of the block model (--format sbm). Default: 4096.
    #[arg(long)]
    pub nodes: Option<usize>,
    /// Seed of what is generated, or of the split where a CSR folder has none. Default: 0.
    #[arg(long)]
    pub data_seed: Option<u64>,
    /// Give every node an edge to itself.
    #[arg(long)]
    pub self_loops: bool,
    /// What is done to the features first. Default: standard for files, raw for what is built in.
    #[arg(long, value_enum)]
    pub features: Option<Features>,
}

impl Format {
    /// Whether the dataset is a folder of files.
    pub fn is_files(self) -> bool {
        matches!(self, Self::Graphsaint | Self::Ogb | Self::Csr)
    }

    /// As it is written on the command line.
    fn name(self) -> String {
        value_name(self)
    }
}

/// A value as it is written on the command line.
fn value_name(value: impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_string())
}

impl DataArgs {
    /// The format, the default one if none is given.
    pub fn format(&self) -> Format {
        self.format.unwrap_or(Format::Graphsaint)
    }

    /// What the options come to: defaults filled in where the format uses them.
    pub fn resolved(&self) -> Self {
        let format = self.format();
        let seeded = !matches!(format, Format::Graphsaint | Format::Ogb | Format::Karate);
        let features = match format.is_files() {
            true => Features::Standard,
            false => Features::Raw,
        };
        Self {
            format: Some(format),
            nodes: (format == Format::Sbm).then(|| self.nodes.unwrap_or(NODES)),
            data_seed: seeded.then(|| self.data_seed.unwrap_or(0)),
            features: Some(self.features.unwrap_or(features)),
            ..self.clone()
        }
    }

    /// All of them but where the files are, in one line.
    pub fn settings(&self) -> String {
        let options = Self {
            data: None,
            ..self.resolved()
        };
        format!("{options:?}")
    }

    /// How the data is prepared, for a checkpoint to hold. `loops`: whether nodes get edges to
    /// themselves.
    pub fn preparation(&self, loops: bool) -> Preparation {
        let options = self.resolved();
        let folder = self.data.as_deref().unwrap_or(Path::new(""));
        let drawn = self.format() != Format::Csr || !folder.join("split.npz").exists();
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

    /// Fills in the options of a saved run where none is given, and refuses options that contradict
    /// it, unless `other` data is wanted. Of data in another format it takes over only the scaling
    /// of the features and the edges of nodes to themselves.
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
            Err(format!(
                "{option} {given} contradicts the saved run, which {saved}"
            ))
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
        adopt!(features, "--features", |&features: &Features| value_name(
            features
        ));
        if self.self_loops && !found.self_loops && !other {
            return refuse("--self-loops", String::new(), None);
        }
        options.self_loops |= found.self_loops;
        Ok(options)
    }

    /// The options of a saved run.
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
                format!("the saved run has the option {name} {value}, which is not known here")
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

    /// The files and folders that [`load`](Self::load) reads.
    pub fn inputs(&self) -> Vec<PathBuf> {
        let Some(folder) = &self.data else {
            return Vec::new();
        };
        let names: &[&str] = match self.format() {
            Format::Graphsaint => &["adj_full.npz", "feats.npy", "class_map.json", "role.json"],
            Format::Ogb => &["raw", "split"],
            Format::Csr => &["graph.npz", "features.npy", "labels.npy", "split.npz"],
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
            ("--split", self.split.is_some(), format == Format::Ogb),
            ("--directed", self.directed, format == Format::Ogb),
            ("--nodes", self.nodes.is_some(), format == Format::Sbm),
            (
                "--data-seed",
                self.data_seed.is_some(),
                !matches!(format, Format::Graphsaint | Format::Ogb | Format::Karate),
            ),
        ];
        for (option, given, used) in given {
            if given && !used {
                return Err(format!(
                    "{option} means nothing with --format {}",
                    format.name()
                ));
            }
        }
        let split = self.data.as_ref().map(|folder| folder.join("split.npz"));
        match split {
            Some(split) if self.data_seed.is_some() && split.exists() => Err(format!(
                "{}: gives the split, so --data-seed means nothing",
                split.display()
            )),
            None if format.is_files() => {
                Err(format!("--format {} needs --data DIR", format.name()))
            }
            _ => Ok(()),
        }
    }

    /// The dataset, with a progress bar for each file if somebody looks at it.
    pub fn load(&self) -> Result<NodeDataset, Box<dyn Error>> {
        self.check()?;
        let format = self.format();
        let folder = self.data.as_deref().unwrap_or(Path::new(""));
        let data_seed = self.data_seed.unwrap_or(0);
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
        let data = match format {
            Format::Graphsaint => graphsaint::load(folder, watch)?,
            Format::Ogb => {
                let options = OgbOptions {
                    directed: self.directed,
                    split: self.split.clone(),
                };
                ogb::load(folder, &options, watch)?
            }
            Format::Csr => csr::load(folder, data_seed, watch)?,
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
