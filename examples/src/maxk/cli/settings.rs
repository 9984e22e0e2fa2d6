//! Options of models and of training.
use clap::{Args, ValueEnum};
use sparsek_gnn::{
    datasets::NodeDataset,
    nn::{Activation, Architecture, MaxKModelConfig},
    preset::{Preset, Settings},
    train::{Batching, Metric, TrainConfig},
};

/// Models that can be trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModelName {
    /// GraphSAGE with the mean of neighbours.
    Sage,
    /// The graph convolution of Kipf and Welling.
    Gcn,
    /// The graph isomorphism network.
    Gin,
}

impl ModelName {
    pub fn architecture(self) -> Architecture {
        match self {
            Self::Sage => Architecture::Sage,
            Self::Gcn => Architecture::Gcn,
            Self::Gin => Architecture::Gin,
        }
    }
}

/// What a model is called.
pub fn name(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::Sage => "sage",
        Architecture::Gcn => "gcn",
        Architecture::Gin => "gin",
    }
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MetricName {
    /// Part of the nodes whose class is right.
    Accuracy,
    /// F1 over all nodes and classes together.
    MicroF1,
    /// Area under the ROC curve.
    RocAuc,
}

/// What the steps of an epoch are taken on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BatchName {
    /// The whole graph.
    Full,
    /// Sampled neighbours of some training nodes.
    Neighbours,
    /// Parts of the graph that are drawn at random.
    Random,
    /// Parts of the graph that are clusters.
    Clusters,
}

fn preset(text: &str) -> Result<Preset, String> {
    let named = |preset: &Preset| preset.name() == text;
    Preset::ALL.into_iter().find(named).ok_or_else(|| {
        let names = Preset::ALL.map(Preset::name).join(", ");
        format!("there are {names}")
    })
}

/// What is trained, and how. What is not given is the preset's.
#[derive(Args, Debug)]
pub struct SettingArgs {
    /// The settings of the MaxK-GNN paper for a dataset: reddit, flickr, yelp, products or proteins.
    #[arg(long, value_name = "DATASET", value_parser = preset)]
    pub preset: Option<Preset>,
    /// Elements that MaxK keeps per row. Default: 32.
    #[arg(long)]
    pub k: Option<usize>,
    /// Width of the hidden rows. Default: 256.
    #[arg(long)]
    pub hidden: Option<usize>,
    /// Layers. Default: 3.
    #[arg(long)]
    pub layers: Option<usize>,
    /// Most epochs to run. Default: 200.
    #[arg(long)]
    pub epochs: Option<usize>,
    /// Learning rate of Adam. Default: 0.003.
    #[arg(long, allow_negative_numbers = true)]
    pub lr: Option<f64>,
    /// Probability of dropping an element. Default: 0.5.
    #[arg(long, allow_negative_numbers = true)]
    pub dropout: Option<f64>,
    /// L2 penalty.
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    pub weight_decay: f64,
    /// Stop after so many epochs without a better validation metric.
    #[arg(long, value_name = "EPOCHS")]
    pub patience: Option<usize>,
    /// What is measured. Default: accuracy, or micro-F1 where nodes have any number of classes.
    #[arg(long, value_enum)]
    pub metric: Option<MetricName>,
    /// What the steps of an epoch are taken on.
    #[arg(long, value_enum, default_value_t = BatchName::Full)]
    pub batches: BatchName,
    /// Neighbours sampled of each node, for each layer (--batches neighbours). Default: 10,10,10.
    #[arg(long, value_delimiter = ',')]
    pub fanouts: Option<Vec<usize>>,
    /// Training nodes of a step (--batches neighbours). Default: 1024.
    #[arg(long)]
    pub batch_nodes: Option<usize>,
    /// Parts that the graph is cut into (--batches random or clusters). Default: 32.
    #[arg(long)]
    pub parts: Option<usize>,
    /// Parts of a step (--batches random or clusters). Default: 4.
    #[arg(long)]
    pub together: Option<usize>,
    /// Evaluate in batches too, so that the device never holds the whole graph; not with full ones.
    #[arg(long)]
    pub evaluate_batches: bool,
}

impl SettingArgs {
    /// Elements that MaxK keeps per row.
    pub fn k(&self) -> usize {
        self.k.unwrap_or(32)
    }

    /// Refuses options that the kind of batches does not use.
    ///
    /// # Errors
    /// One line that names the option.
    pub fn check(&self) -> Result<(), String> {
        let neighbors = self.batches == BatchName::Neighbours;
        let parts = matches!(self.batches, BatchName::Random | BatchName::Clusters);
        let given = [
            ("--fanouts", self.fanouts.is_some(), neighbors),
            ("--batch-nodes", self.batch_nodes.is_some(), neighbors),
            ("--parts", self.parts.is_some(), parts),
            ("--together", self.together.is_some(), parts),
            (
                "--evaluate-batches",
                self.evaluate_batches,
                neighbors || parts,
            ),
        ];
        match given.iter().find(|(_, given, used)| *given && !used) {
            Some((option, ..)) => {
                let batches = self.batches.to_possible_value();
                let batches = batches.map_or_else(String::new, |b| b.get_name().to_string());
                Err(format!("{option} means nothing with --batches {batches}"))
            }
            None => Ok(()),
        }
    }

    /// The settings of an architecture.
    pub fn settings(&self, architecture: Architecture, data: &NodeDataset) -> Settings {
        let preset = self.preset.map(|preset| preset.settings(architecture));
        let base = preset.unwrap_or(Settings {
            layers: 3,
            hidden: 256,
            lr: 0.003,
            dropout: 0.5,
            epochs: 200,
            self_loops: false,
            metric: Metric::default_for(data),
        });
        Settings {
            layers: self.layers.unwrap_or(base.layers),
            hidden: self.hidden.unwrap_or(base.hidden),
            lr: self.lr.unwrap_or(base.lr),
            dropout: self.dropout.unwrap_or(base.dropout),
            epochs: self.epochs.unwrap_or(base.epochs),
            self_loops: base.self_loops,
            metric: match self.metric {
                None => base.metric,
                Some(MetricName::Accuracy) => Metric::Accuracy,
                Some(MetricName::MicroF1) => Metric::MicroF1,
                Some(MetricName::RocAuc) => Metric::RocAuc,
            },
        }
    }

    /// The model of an architecture for a dataset.
    pub fn model(
        &self,
        architecture: Architecture,
        activation: Activation,
        data: &NodeDataset,
    ) -> MaxKModelConfig {
        let settings = self.settings(architecture, data);
        let (features, classes) = (data.feature_width(), data.classes());
        MaxKModelConfig::new(architecture, features, settings.hidden, classes)
            .with_layers(settings.layers)
            .with_activation(activation)
            .with_dropout(settings.dropout)
    }

    /// How it is trained.
    pub fn training(
        &self,
        architecture: Architecture,
        seed: u64,
        data: &NodeDataset,
    ) -> TrainConfig {
        let settings = self.settings(architecture, data);
        TrainConfig::new()
            .with_epochs(settings.epochs)
            .with_lr(settings.lr)
            .with_weight_decay(self.weight_decay)
            .with_patience(self.patience)
            .with_seed(seed)
            .with_metric(Some(settings.metric))
            .with_batches(self.batching())
            .with_evaluate_batches(self.evaluate_batches)
    }

    fn batching(&self) -> Batching {
        match self.batches {
            BatchName::Full => Batching::Full,
            BatchName::Neighbours => Batching::Neighbours {
                fanouts: self.fanouts.clone().unwrap_or_else(|| vec![10; 3]),
                nodes: self.batch_nodes.unwrap_or(1024),
            },
            name => Batching::Parts {
                parts: self.parts.unwrap_or(32),
                together: self.together.unwrap_or(4),
                clustered: name == BatchName::Clusters,
            },
        }
    }
}
