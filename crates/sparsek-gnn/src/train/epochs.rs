use burn::{
    module::Module,
    tensor::{Device, Tensor},
};

use super::{
    capture::Capture, config::TrainConfig, engine::Engine, error::TrainError, recipe::Rates,
    replicas::Replicas, types::Evaluation,
};
use crate::{nn::NodeModelConfig, random};

/// Custom training loop, from [`Trainer::start`](super::Trainer::start). The first epoch uploads
/// the graph.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::Device;
/// use sparsek_gnn::{
///     datasets::karate,
///     nn::{Activation, Architecture, MaxKModelConfig},
///     train::{TrainConfig, Trainer},
/// };
///
/// let data = karate::karate_club();
/// let model = MaxKModelConfig::new(Architecture::Sage, data.feature_width(), 16, data.classes())
///     .with_activation(Activation::maxk(4))
///     .with_dropout(0.0);
/// let config = TrainConfig::new().with_lr(0.01);
/// let mut epochs = Trainer::new(&config, &model, &data).unwrap().start(&Device::flex()).unwrap();
/// let first = epochs.step();
/// (0..100).for_each(|_| drop(epochs.step()));
/// assert!(epochs.step().into_scalar::<f32>() < first.into_scalar::<f32>());
/// assert!(epochs.evaluate().unwrap().train > 0.5);
/// # }
/// ```
pub struct Epochs<'a, C: NodeModelConfig> {
    pub(super) config: &'a TrainConfig,
    pub(super) engine: Engine<'a>,
    pub(super) replicas: Option<Replicas<C::Model>>,
    pub(super) rates: Rates,
    pub(super) done: usize,
    pub(super) capture: Option<Capture>,
}

impl<C: NodeModelConfig> Epochs<'_, C> {
    /// Runs an epoch, asynchronously for full batches. Returns the mean loss before each step,
    /// `[1]`, outside autodiff.
    pub fn step(&mut self) -> Tensor<1> {
        self.advance().expect("one device waits for no other")
    }

    pub(super) fn advance(&mut self) -> Result<Tensor<1>, TrainError> {
        self.done += 1;
        let replicas = self.replicas.take().expect(KEPT);
        let seed = seed_all(replicas.devices(), self.config.seed, self.done);
        let (replicas, loss) = self.engine.epoch(replicas, seed, self.rates.next())?;
        self.replicas = Some(replicas);
        Ok(loss)
    }

    pub(super) fn measured(&mut self) -> Result<Evaluation, TrainError> {
        let Some(capture) = &mut self.capture else {
            let loss = self.advance()?;
            return self.engine.measure(&self.model().valid(), Some(loss));
        };
        self.done += 1;
        let replicas = self.replicas.take().expect(KEPT);
        if !capture.is_recorded() {
            // The first epoch draws parameters.
            seed_all(replicas.devices(), self.config.seed, self.done);
        }
        let step = (self.rates.next(), self.done);
        let (replicas, numbers) = capture.epoch(&self.engine, replicas, step)?;
        self.replicas = Some(replicas);
        Ok(self.engine.scores(&numbers))
    }

    pub(super) fn replicas(&self) -> &Replicas<C::Model> {
        self.replicas.as_ref().expect(KEPT)
    }

    /// Current model, with autodiff.
    pub fn model(&self) -> &C::Model {
        self.replicas().model()
    }

    /// Evaluates without dropout.
    pub fn evaluate(&self) -> Result<Evaluation, TrainError> {
        self.engine.measure(&self.model().valid(), None)
    }

    /// [`evaluate`](Epochs::evaluate) without blocking, as browsers need.
    pub async fn evaluate_async(&self) -> Result<Evaluation, TrainError> {
        self.engine.measure_async(&self.model().valid(), None).await
    }
}

const KEPT: &str = "put back after each epoch";

pub(super) fn seed_all(devices: &[Device], seed: u64, epoch: usize) -> u64 {
    let seed = random::nth(seed, epoch as u64);
    devices.iter().for_each(|device| device.seed(seed));
    seed
}
