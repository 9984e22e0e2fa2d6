use super::metric::Metric;
use crate::nn::Architecture;

/// Dataset of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Reddit.
    Reddit,
    /// Flickr.
    Flickr,
    /// Yelp.
    Yelp,
    /// ogbn-products.
    Products,
    /// ogbn-proteins.
    Proteins,
}

/// Settings for Adam without weight decay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PresetSettings {
    /// Convolutions.
    pub layers: usize,
    /// Hidden width.
    pub hidden: usize,
    /// Learning rate.
    pub lr: f64,
    /// Dropout.
    pub dropout: f64,
    /// Epochs.
    pub epochs: usize,
    /// Adds self-loops.
    pub self_loops: bool,
    /// Metric.
    pub metric: Metric,
}

impl Preset {
    /// All presets.
    pub const ALL: [Self; 5] =
        [Self::Reddit, Self::Flickr, Self::Yelp, Self::Products, Self::Proteins];

    /// Settings of the authors' release (Peng et al., *MaxK-GNN*, 2024).
    ///
    /// ```
    /// use sparsek_gnn::{nn::Architecture, train::Preset};
    ///
    /// let settings = Preset::Products.settings(Architecture::Gcn);
    /// assert!(settings.self_loops && settings.epochs == 500);
    /// ```
    pub fn settings(self, architecture: Architecture) -> PresetSettings {
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
        PresetSettings { layers, hidden, lr, dropout, epochs, self_loops, metric }
    }

    /// Command-line name.
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
