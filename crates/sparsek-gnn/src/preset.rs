//! The hyper-parameters of the MaxK-GNN paper's release.
use crate::{nn::Architecture, train::Metric};

/// A dataset that the paper has settings for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Reddit.
    Reddit,
    /// Flickr.
    Flickr,
    /// Yelp, whose nodes have any number of classes.
    Yelp,
    /// ogbn-products.
    Products,
    /// ogbn-proteins, whose nodes have any number of classes.
    Proteins,
}

/// What is trained, and how: Adam without a penalty, evaluated in every epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Convolutions.
    pub layers: usize,
    /// Width of the hidden rows.
    pub hidden: usize,
    /// Learning rate.
    pub lr: f64,
    /// Probability of dropping an element.
    pub dropout: f64,
    /// Epochs.
    pub epochs: usize,
    /// Whether every node gets an edge to itself.
    pub self_loops: bool,
    /// What is measured.
    pub metric: Metric,
}

impl Preset {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Reddit,
        Self::Flickr,
        Self::Yelp,
        Self::Products,
        Self::Proteins,
    ];

    /// The settings of an architecture.
    ///
    /// Peng et al., *MaxK-GNN*, ASPLOS 2024, as in the authors' release.
    ///
    /// ```
    /// use sparsek_gnn::{nn::Architecture, preset::Preset};
    ///
    /// let settings = Preset::Products.settings(Architecture::Gcn);
    /// assert!(settings.self_loops && settings.epochs == 500);
    /// ```
    pub fn settings(self, architecture: Architecture) -> Settings {
        let (layers, hidden, lr, dropout, epochs) = match self {
            Self::Reddit => (4, 256, 0.01, 0.5, 3000),
            Self::Flickr => (3, 256, 0.001, 0.2, 400),
            Self::Yelp => (4, 384, 0.001, 0.1, 3000),
            Self::Products => (3, 256, 0.003, 0.5, 500),
            Self::Proteins => (3, 256, 0.01, 0.5, 1000),
        };
        let self_loops = match self {
            Self::Reddit | Self::Flickr | Self::Yelp => true,
            Self::Products => architecture != Architecture::Sage,
            Self::Proteins => false,
        };
        let metric = match self {
            Self::Reddit | Self::Flickr | Self::Products => Metric::Accuracy,
            Self::Yelp => Metric::MicroF1,
            Self::Proteins => Metric::RocAuc,
        };
        Settings {
            layers,
            hidden,
            lr,
            dropout,
            epochs,
            self_loops,
            metric,
        }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reddit => "reddit",
            Self::Flickr => "flickr",
            Self::Yelp => "yelp",
            Self::Products => "products",
            Self::Proteins => "proteins",
        }
    }
}
