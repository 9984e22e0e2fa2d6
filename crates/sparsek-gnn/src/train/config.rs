use burn::{
    config::Config,
    tensor::{DType, Device},
};
use serde::{Deserialize, Serialize};

use super::{error::TrainError, metric::Metric};
use crate::datasets::NodeDataset;

/// Training configuration.
#[derive(Config, Debug, PartialEq)]
pub struct TrainConfig {
    /// Most epochs.
    #[config(default = 200)]
    pub epochs: usize,
    /// Learning rate.
    #[config(default = 0.003)]
    pub lr: f64,
    /// L2 penalty added to gradients.
    #[config(default = 0.0)]
    pub weight_decay: f64,
    /// Epochs without better validation before stopping.
    pub patience: Option<usize>,
    /// Seed.
    #[config(default = 0)]
    pub seed: u64,
    /// Chooses the best epoch. Default: [`Metric::default_for`].
    pub metric: Option<Metric>,
    /// Data per step.
    #[config(default = "Batching::Full")]
    pub batches: Batching,
    /// Evaluates in batches, which lack edges.
    #[config(default = false)]
    pub evaluate_batches: bool,
    /// Default: [`Precision::Full`].
    pub precision: Option<Precision>,
    /// Epochs between saves; also saves the last.
    #[config(default = 25)]
    pub save_every: usize,
}

impl TrainConfig {
    /// Errors for values out of range.
    pub fn validate(&self) -> Result<(), TrainError> {
        let bad = |reason: String| Err(TrainError::Config(reason));
        if self.epochs == 0 || self.save_every == 0 {
            return bad("epochs and save_every must be at least 1".to_string());
        }
        if self.patience == Some(0) {
            return bad("patience must be at least 1 epoch".to_string());
        }
        check_positive("learning rate", self.lr)?;
        check_weight_decay(self.weight_decay)?;
        self.batches.check()
    }

    pub(super) fn stored(&self) -> Option<DType> {
        self.precision.unwrap_or_default().stored()
    }

    pub(super) fn check_device(&self, device: &Device) -> Result<(), TrainError> {
        match self.stored() {
            Some(dtype) if !device.supports_dtype(dtype) => {
                Err(TrainError::Config(format!("{device:?} has no {dtype:?}")))
            }
            _ => Ok(()),
        }
    }

    /// Configured or default metric.
    pub fn metric_for(&self, data: &NodeDataset) -> Metric {
        self.metric.unwrap_or_else(|| Metric::default_for(data))
    }
}

pub(super) fn check_positive(name: &str, value: f64) -> Result<(), TrainError> {
    match value > 0.0 && value.is_finite() {
        true => Ok(()),
        false => Err(TrainError::Config(format!("{name} {value} is not a positive number"))),
    }
}

pub(super) fn check_weight_decay(decay: f64) -> Result<(), TrainError> {
    match decay >= 0.0 && decay.is_finite() {
        true => Ok(()),
        false => Err(TrainError::Config(format!("weight decay {decay} is not at least 0"))),
    }
}

/// Dtypes of layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Precision {
    /// The device's float dtype.
    #[default]
    Full,
    /// Mixed: layers compute in bf16; kernels add in f32. Parameters, updates and loss keep their
    /// dtype. Refuses models with running statistics or frozen parameters.
    Bf16,
}

impl Precision {
    /// None: unchanged.
    pub(super) fn stored(self) -> Option<DType> {
        match self {
            Self::Full => None,
            Self::Bf16 => Some(DType::BF16),
        }
    }
}

/// Data per step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Batching {
    /// Whole graph per step.
    Full,
    /// Sampled neighborhoods, reshuffled every epoch.
    #[serde(rename = "Neighbours", alias = "Neighbors")]
    Neighbors {
        /// Neighbors per hop.
        fanouts: Vec<usize>,
        /// Training nodes per step.
        nodes: usize,
    },
    /// Induced parts, regrouped every epoch; up to four threads prepare steps.
    Parts {
        /// All parts.
        parts: usize,
        /// Parts per step.
        together: usize,
        /// Clustered parts.
        clustered: bool,
    },
}

/// The derive cannot rename variants.
impl Config for Batching {}

impl Batching {
    pub(super) fn check(&self) -> Result<(), TrainError> {
        let bad = match self {
            Self::Full => false,
            Self::Neighbors { fanouts, nodes } => fanouts.is_empty() || *nodes == 0,
            Self::Parts { parts, together, .. } => *together == 0 || together > parts,
        };
        match bad {
            true => Err(TrainError::Config(format!(
                "{self:?} makes no batches; hops, nodes and parts must be at least 1"
            ))),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::{fixture, rstest};

    use super::*;

    const SAVED: &str = r#"{"Neighbours":{"fanouts":[2],"nodes":3}}"#;

    #[fixture]
    fn batching() -> Batching {
        Batching::Neighbors { fanouts: vec![2], nodes: 3 }
    }

    #[rstest]
    fn saved_runs_keep_the_british_name_of_neighbor_batches(batching: Batching) {
        assert_eq!(serde_json::to_string(&batching).unwrap(), SAVED);
    }

    #[rstest]
    #[case::british(SAVED.to_string())]
    #[case::american(SAVED.replace("bours", "bors"))]
    fn neighbor_batches_are_read_by_either_name(batching: Batching, #[case] text: String) {
        assert_eq!(serde_json::from_str::<Batching>(&text).unwrap(), batching);
    }
}
