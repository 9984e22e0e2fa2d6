use std::sync::Arc;

use burn::{
    grad_clipping::GradientClippingConfig,
    lr_scheduler::{
        LrSchedulerConfig,
        module_lr_scheduler::{ModuleLrScheduler, ModuleLrSchedulerConfig},
    },
    optim::ModuleOptimizer,
    tensor::Device,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    config::TrainConfig,
    error::TrainError,
    json::to_json,
    loss::NodeLoss,
    metric::{Metric, NodeMetric},
    optimizer::{AnyOptimizer, adam},
};
use crate::datasets::NodeDataset;

/// None is the configuration's default.
#[derive(Clone, Debug, Default)]
pub(super) struct Recipe {
    pub(super) loss: Option<Arc<dyn NodeLoss>>,
    pub(super) metric: Option<Arc<dyn NodeMetric>>,
    pub(super) optimizer: Option<Arc<dyn AnyOptimizer>>,
    pub(super) schedule: Option<LrSchedulerConfig>,
    pub(super) clipping: Option<GradientClippingConfig>,
    pub(super) captures: bool,
}

/// What resumption compares.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecipeRecord {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    loss: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metric: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    optimizer: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schedule: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    clipping: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    captures: Option<bool>,
}

impl RecipeRecord {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn has_optimizer(&self) -> bool {
        self.optimizer.is_some()
    }

    pub(super) fn differences(&self, other: &Self) -> Vec<&'static str> {
        let parts = [
            ("loss", self.loss == other.loss),
            ("metric", self.metric == other.metric),
            ("optimizer", self.optimizer == other.optimizer),
            ("schedule", self.schedule == other.schedule),
            ("gradient clipping", self.clipping == other.clipping),
            ("way to run steps", self.captures == other.captures),
        ];
        parts.into_iter().filter(|(_, equal)| !equal).map(|(name, _)| name).collect()
    }
}

impl Recipe {
    pub(super) fn record(&self) -> RecipeRecord {
        RecipeRecord {
            loss: self.loss.as_ref().map(|loss| loss.name()),
            metric: self.metric.as_ref().map(|metric| metric.name()),
            optimizer: self.optimizer.as_ref().map(|optimizer| optimizer.record()),
            schedule: self.schedule.as_ref().map(to_json),
            clipping: self.clipping.as_ref().map(to_json),
            captures: self.captures.then_some(true),
        }
    }

    pub(super) fn optimizer(&self, config: &TrainConfig, device: &Device) -> ModuleOptimizer {
        let clipping = self.clipping.as_ref().map(GradientClippingConfig::init);
        match &self.optimizer {
            Some(optimizer) => optimizer.optimizer(device, clipping),
            None => adam(config.weight_decay, device, clipping),
        }
    }
}

pub(super) enum Rates {
    Constant(f64),
    Scheduled(ModuleLrScheduler),
}

impl Rates {
    /// After `done` epochs.
    pub(super) fn new(
        config: &TrainConfig,
        recipe: &Recipe,
        done: usize,
    ) -> Result<Self, TrainError> {
        let Some(schedule) = &recipe.schedule else {
            return Ok(Self::Constant(config.lr));
        };
        let scheduler = ModuleLrSchedulerConfig::new(schedule.clone()).init();
        let mut scheduler = scheduler.map_err(TrainError::Config)?;
        (0..done).for_each(|_| drop(scheduler.step()));
        Ok(Self::Scheduled(scheduler))
    }

    pub(super) fn next(&mut self) -> f64 {
        match self {
            Self::Constant(lr) => *lr,
            Self::Scheduled(scheduler) => scheduler.step().base(),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Score {
    BuiltIn(Metric),
    Own(Arc<dyn NodeMetric>),
}

impl Score {
    pub(super) fn new(config: &TrainConfig, recipe: &Recipe, data: &NodeDataset) -> Self {
        match &recipe.metric {
            Some(metric) => Self::Own(metric.clone()),
            None => Self::BuiltIn(config.metric_for(data)),
        }
    }

    pub(super) fn splits(&self, logits: &[f32], data: &NodeDataset) -> [f64; 3] {
        let metric: &dyn NodeMetric = match self {
            Self::BuiltIn(metric) => metric,
            Self::Own(metric) => &**metric,
        };
        [data.train(), data.val(), data.test()].map(|nodes| metric.score(logits, data, nodes))
    }
}
