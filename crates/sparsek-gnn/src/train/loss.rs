use std::fmt::Debug;

use burn::{
    nn::loss::{BinaryCrossEntropyLossConfig, CrossEntropyLossConfig},
    tensor::{Int, Tensor},
};

use super::{error::TrainError, json::to_json};
use crate::datasets::{Labels, NodeDataset};

/// Labels of rows.
#[derive(Clone, Debug)]
pub enum Targets {
    /// Classes, `[rows]`.
    Classes(Tensor<1, Int>),
    /// `[rows, classes]` of 0 and 1.
    Sets(Tensor<2, Int>),
}

/// Mean loss of rows, for [`Trainer::with_loss`](super::Trainer::with_loss).
///
/// Burn's [`CrossEntropyLossConfig`] and [`BinaryCrossEntropyLossConfig`] are losses:
///
/// ```
/// use burn::tensor::{Tensor, activation::log_softmax};
/// use sparsek_gnn::train::{NodeLoss, Targets};
///
/// /// Lin et al., ICCV 2017.
/// #[derive(Debug)]
/// struct FocalLoss {
///     gamma: f64,
/// }
///
/// impl NodeLoss for FocalLoss {
///     fn name(&self) -> String {
///         format!("focal:{}", self.gamma)
///     }
///
///     fn forward(&self, logits: Tensor<2>, targets: Targets) -> Tensor<1> {
///         let Targets::Classes(labels) = targets else { panic!("focal loss of class sets") };
///         let log = log_softmax(logits, 1).gather(1, labels.unsqueeze_dim(1));
///         let rest = log.clone().exp().neg() + 1.0;
///         (rest.powf_scalar(self.gamma) * log).mean().neg()
///     }
/// }
/// ```
pub trait NodeLoss: Debug + Send + Sync {
    /// Name with settings; resumption compares it.
    fn name(&self) -> String;

    /// Refuses unsuitable datasets. Default: none.
    fn check(&self, data: &NodeDataset) -> Result<(), TrainError> {
        let _ = data;
        Ok(())
    }

    /// Mean over training nodes, at least one: logits `[rows, classes]` → `[1]`.
    fn forward(&self, logits: Tensor<2>, targets: Targets) -> Tensor<1>;
}

impl NodeLoss for CrossEntropyLossConfig {
    fn name(&self) -> String {
        format!("cross-entropy {}", to_json(self))
    }

    fn check(&self, data: &NodeDataset) -> Result<(), TrainError> {
        check_labels(data, self.weights.as_deref(), matches!(data.labels(), Labels::Classes(_)))
    }

    fn forward(&self, logits: Tensor<2>, targets: Targets) -> Tensor<1> {
        match targets {
            Targets::Classes(labels) => self.init(&logits.device()).forward(logits, labels),
            Targets::Sets(_) => unreachable!("refused by check"),
        }
    }
}

/// Needs `logits` set to true.
impl NodeLoss for BinaryCrossEntropyLossConfig {
    fn name(&self) -> String {
        format!("binary cross-entropy {}", to_json(self))
    }

    fn check(&self, data: &NodeDataset) -> Result<(), TrainError> {
        if !self.logits {
            let reason = "models give logits: binary cross-entropy needs logits = true";
            return Err(TrainError::Config(reason.to_string()));
        }
        check_labels(data, self.weights.as_deref(), matches!(data.labels(), Labels::Sets(_)))
    }

    fn forward(&self, logits: Tensor<2>, targets: Targets) -> Tensor<1> {
        match targets {
            Targets::Sets(sets) => self.init(&logits.device()).forward(logits, sets),
            Targets::Classes(_) => unreachable!("refused by check"),
        }
    }
}

fn check_labels(data: &NodeDataset, weights: Option<&[f32]>, fits: bool) -> Result<(), TrainError> {
    let (name, classes) = (data.name(), data.classes());
    if !fits {
        return Err(TrainError::Config(format!("the loss does not fit the labels of {name}")));
    }
    match weights.map(<[f32]>::len).filter(|&count| count != classes) {
        Some(count) => Err(TrainError::Config(format!(
            "the loss has {count} class weights, {name} has {classes} classes"
        ))),
        None => Ok(()),
    }
}
