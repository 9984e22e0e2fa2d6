//! Model and training options.
use clap::{Args, ValueEnum};
use sparsek_gnn::{
    datasets::NodeDataset,
    nn::{Activation, Architecture, ConvKind, MaxKModelConfig, PlainModelConfig},
    train::{Batching, Metric, Precision, Preset, PresetSettings, TrainConfig},
};

/// Trainable models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModelName {
    /// GraphSAGE with the mean.
    Sage,
    /// Kipf and Welling's convolution.
    Gcn,
    /// Graph isomorphism network.
    Gin,
    /// Graph attention, with --structure plain.
    Gat,
}

/// What stands around the convolutions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StructureName {
    /// The MaxK-GNN paper's: input and output layers, layer normalization.
    Maxk,
    /// Convolutions, nonlinearities and dropout only.
    Plain,
}

/// A model's structure and convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Maxk(Architecture),
    Plain(ConvKind),
}

impl ModelName {
    /// # Errors
    /// One line for a model that the structure lacks.
    pub fn kind(self, structure: StructureName) -> Result<Kind, String> {
        Ok(match (structure, self) {
            (StructureName::Maxk, Self::Sage) => Kind::Maxk(Architecture::Sage),
            (StructureName::Maxk, Self::Gcn) => Kind::Maxk(Architecture::Gcn),
            (StructureName::Maxk, Self::Gin) => Kind::Maxk(Architecture::Gin),
            (StructureName::Maxk, Self::Gat) => {
                return Err("--model gat means nothing without --structure plain".into());
            }
            (StructureName::Plain, Self::Sage) => Kind::Plain(ConvKind::Sage),
            (StructureName::Plain, Self::Gcn) => Kind::Plain(ConvKind::Gcn),
            (StructureName::Plain, Self::Gin) => Kind::Plain(ConvKind::Gin),
            (StructureName::Plain, Self::Gat) => Kind::Plain(ConvKind::Gat),
        })
    }
}

/// The model's name.
pub fn name(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::Sage => "sage",
        Architecture::Gcn => "gcn",
        Architecture::Gin => "gin",
    }
}

/// The plain model's name.
pub fn plain_name(conv: ConvKind) -> &'static str {
    match conv {
        ConvKind::Gcn => "plain gcn",
        ConvKind::Sage => "plain sage",
        ConvKind::Gin => "plain gin",
        ConvKind::Gat => "plain gat",
    }
}

/// Metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MetricName {
    /// Share of correct nodes.
    Accuracy,
    /// F1 over all nodes and classes.
    MicroF1,
    /// Area under the ROC curve.
    RocAuc,
}

/// Kinds of batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BatchName {
    /// The whole graph.
    Full,
    /// Training nodes and sampled neighbors.
    #[value(alias = "neighbours")]
    Neighbors,
    /// Random parts of the graph.
    Random,
    /// Clusters of the graph.
    Clusters,
}

fn preset(text: &str) -> Result<Preset, String> {
    let named = |preset: &Preset| preset.name() == text;
    Preset::ALL.into_iter().find(named).ok_or_else(|| {
        let names = Preset::ALL.map(Preset::name).join(", ");
        format!("there are {names}")
    })
}

/// Model and training options, by default the preset's.
#[derive(Args, Debug)]
pub struct SettingArgs {
    /// Hyperparameters of the MaxK-GNN paper: reddit, flickr, yelp, products or proteins.
    #[arg(help_heading = "Model", long, value_name = "DATASET", value_parser = preset)]
    pub preset: Option<Preset>,
    /// Elements kept per row. Default: 32.
    #[arg(help_heading = "Model", long)]
    pub k: Option<usize>,
    /// Hidden width; of a head for gat. Default: 256; plain: 16, gat 8.
    #[arg(help_heading = "Model", long)]
    pub hidden: Option<usize>,
    /// Layers. Default: 3; plain: 2.
    #[arg(help_heading = "Model", long)]
    pub layers: Option<usize>,
    /// Most epochs. Default: 200.
    #[arg(help_heading = "Training", long)]
    pub epochs: Option<usize>,
    /// Learning rate. Default: 0.003; plain: 0.01, gat 0.005.
    #[arg(help_heading = "Training", long, allow_negative_numbers = true)]
    pub lr: Option<f64>,
    /// Dropout probability. Default: 0.5; gat: 0.6.
    #[arg(help_heading = "Model", long, allow_negative_numbers = true)]
    pub dropout: Option<f64>,
    /// Attention heads (with gat). Default: 8.
    #[arg(help_heading = "Model", long)]
    pub heads: Option<usize>,
    /// L2 penalty. Default: 0; plain: 0.0005.
    #[arg(help_heading = "Training", long, allow_negative_numbers = true)]
    pub weight_decay: Option<f64>,
    /// Compute layers in bf16; parameters stay f32.
    #[arg(help_heading = "Training", long)]
    pub mixed: bool,
    /// Stop after this many epochs without improvement.
    #[arg(help_heading = "Training", long, value_name = "EPOCHS")]
    pub patience: Option<usize>,
    /// Metric. Default: accuracy, or micro-F1 for sets of classes.
    #[arg(help_heading = "Training", long, value_enum)]
    pub metric: Option<MetricName>,
    /// What each step trains on.
    #[arg(help_heading = "Batches", long, value_enum, default_value_t = BatchName::Full)]
    pub batches: BatchName,
    /// Neighbors per node and layer (with neighbors). Default: 10,10,10.
    #[arg(help_heading = "Batches", long, value_delimiter = ',')]
    pub fanouts: Option<Vec<usize>>,
    /// Training nodes per step (with neighbors). Default: 1024.
    #[arg(help_heading = "Batches", long)]
    pub batch_nodes: Option<usize>,
    /// Parts of the graph (with random or clusters). Default: 32.
    #[arg(help_heading = "Batches", long)]
    pub parts: Option<usize>,
    /// Parts per step (with random or clusters). Default: 4.
    #[arg(help_heading = "Batches", long)]
    pub together: Option<usize>,
    /// Evaluate in batches too, so that the device never holds the whole graph; not with full.
    #[arg(help_heading = "Batches", long)]
    pub evaluate_batches: bool,
}

impl SettingArgs {
    /// Elements kept per row.
    pub fn k(&self) -> usize {
        self.k.unwrap_or(32)
    }

    /// Refuses options that the batches do not use.
    ///
    /// # Errors
    /// One line that names the option.
    pub fn check(&self) -> Result<(), String> {
        let neighbors = self.batches == BatchName::Neighbors;
        let parts = matches!(self.batches, BatchName::Random | BatchName::Clusters);
        let given = [
            ("--fanouts", self.fanouts.is_some(), neighbors),
            ("--batch-nodes", self.batch_nodes.is_some(), neighbors),
            ("--parts", self.parts.is_some(), parts),
            ("--together", self.together.is_some(), parts),
            ("--evaluate-batches", self.evaluate_batches, neighbors || parts),
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

    /// Refuses options that the model does not use.
    ///
    /// # Errors
    /// One line that names the option.
    pub fn check_model(&self, kind: Kind) -> Result<(), String> {
        match kind {
            Kind::Plain(_) if self.preset.is_some() => {
                Err("--preset means nothing with --structure plain".into())
            }
            Kind::Plain(ConvKind::Gat) => Ok(()),
            _ if self.heads.is_some() => Err("--heads means nothing without --model gat".into()),
            _ => Ok(()),
        }
    }

    /// Preset and options combined.
    pub fn settings(&self, kind: Kind, data: &NodeDataset) -> PresetSettings {
        let common = PresetSettings {
            layers: 3,
            hidden: 256,
            lr: 0.003,
            dropout: 0.5,
            epochs: 200,
            self_loops: false,
            metric: Metric::default_for(data),
        };
        let base = match (kind, self.preset) {
            (Kind::Maxk(architecture), Some(preset)) => preset.settings(architecture),
            (Kind::Maxk(_), None) => common,
            // Kipf and Welling, 2017; Veličković et al., 2018.
            (Kind::Plain(ConvKind::Gat), _) => {
                PresetSettings { layers: 2, hidden: 8, lr: 0.005, dropout: 0.6, ..common }
            }
            (Kind::Plain(_), _) => PresetSettings { layers: 2, hidden: 16, lr: 0.01, ..common },
        };
        PresetSettings {
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

    /// The model configuration.
    pub fn model(
        &self,
        architecture: Architecture,
        activation: Activation,
        data: &NodeDataset,
    ) -> MaxKModelConfig {
        let settings = self.settings(Kind::Maxk(architecture), data);
        let (features, classes) = (data.feature_width(), data.classes());
        MaxKModelConfig::new(architecture, features, settings.hidden, classes)
            .with_layers(settings.layers)
            .with_activation(activation)
            .with_dropout(settings.dropout)
    }

    /// The plain model's configuration.
    pub fn plain_model(
        &self,
        conv: ConvKind,
        activation: Activation,
        data: &NodeDataset,
    ) -> PlainModelConfig {
        let settings = self.settings(Kind::Plain(conv), data);
        let (features, classes) = (data.feature_width(), data.classes());
        PlainModelConfig::new(conv, features, settings.hidden, classes)
            .with_layers(settings.layers)
            .with_activation(activation)
            .with_dropout(settings.dropout)
            .with_heads(self.heads.unwrap_or(8))
    }

    /// The training configuration.
    pub fn training(&self, kind: Kind, seed: u64, data: &NodeDataset) -> TrainConfig {
        let settings = self.settings(kind, data);
        let weight_decay = match kind {
            Kind::Maxk(_) => 0.0,
            Kind::Plain(_) => 5e-4,
        };
        TrainConfig::new()
            .with_epochs(settings.epochs)
            .with_lr(settings.lr)
            .with_weight_decay(self.weight_decay.unwrap_or(weight_decay))
            .with_patience(self.patience)
            .with_precision(self.mixed.then_some(Precision::Bf16))
            .with_seed(seed)
            .with_metric(Some(settings.metric))
            .with_batches(self.batching())
            .with_evaluate_batches(self.evaluate_batches)
    }

    fn batching(&self) -> Batching {
        match self.batches {
            BatchName::Full => Batching::Full,
            BatchName::Neighbors => Batching::Neighbors {
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
