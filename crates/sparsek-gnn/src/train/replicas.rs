use burn::{
    module::{Module, ModuleMapper, ModuleVisitor, Param},
    optim::{GradientsParams, ModuleOptimizer},
    tensor::{Bytes, DType, Device, Tensor},
};

use super::{
    checkpoint::SavedRun,
    config::TrainConfig,
    data::DeviceData,
    devices::{self, Sum},
    error::TrainError,
    precision::{copy_in, gradients_for, has_untrained},
    recipe::Recipe,
};
use crate::{
    graph::Graph,
    nn::{NodeModel, NodeModelConfig},
    step::optimizer_step,
};

/// Bitwise equal models, one per device. The first steps for all: independent steps may drift.
pub(super) struct Replicas<M> {
    /// Outside autodiff.
    devices: Vec<Device>,
    models: Vec<M>,
    optimizer: ModuleOptimizer,
    sum: Sum,
    /// Dtype of stepping copies.
    stored: Option<DType>,
}

pub(super) struct Share<'a> {
    pub(super) graph: &'a Graph,
    /// Weighs by training nodes.
    pub(super) data: &'a DeviceData,
}

impl<M: NodeModel> Replicas<M> {
    /// The first device draws.
    pub(super) fn new<C: NodeModelConfig<Model = M>>(
        (config, recipe): (&TrainConfig, &Recipe),
        model: &C,
        devices: &[Device],
        sum: Sum,
    ) -> Result<Self, TrainError> {
        let inner = |device: &Device| device.clone().without_autodiff();
        let devices: Vec<Device> = devices.iter().map(inner).collect();
        let init = |device: &Device| model.init(&device.clone().autodiff());
        let models: Result<Vec<M>, _> = devices.iter().map(init).collect();
        if devices.len() > 1 {
            devices::join(&devices, sum)?;
        }
        let optimizer = recipe.optimizer(config, &devices[0]);
        let (models, stored) = (models?, config.stored());
        if stored.is_some() && models.iter().any(has_untrained) {
            return Err(TrainError::Config(
                "mixed precision takes no running statistics and no frozen parameters".to_string(),
            ));
        }
        let replicas = Self { models, optimizer, sum, stored, devices };
        let replicas = replicas.shared()?;
        replicas.check_equal("before the first step")?;
        Ok(replicas)
    }

    pub(super) fn restore<C: NodeModelConfig>(
        mut self,
        saved: &SavedRun<C>,
    ) -> Result<Self, TrainError> {
        let first = self.models.remove(0);
        let (first, optimizer) = saved.load_last(first, self.optimizer)?;
        self.models.insert(0, first);
        Self { optimizer, ..self }.shared()
    }

    pub(super) fn devices(&self) -> &[Device] {
        &self.devices
    }

    pub(super) fn model(&self) -> &M {
        &self.models[0]
    }

    pub(super) fn records(&self) -> Result<(Bytes, Bytes), TrainError> {
        let optimizer = self.optimizer.into_bytes();
        let optimizer = optimizer.map_err(|error| TrainError::Device(error.to_string()))?;
        Ok((record(self.model().clone())?, optimizer))
    }

    /// Also returns the unread mean loss, on the first device.
    pub(super) fn step(
        mut self,
        lr: f64,
        shares: &[Share],
    ) -> Result<(Self, Tensor<1>), TrainError> {
        let several = shares.len() > 1;
        let (mut first, mut lists) = (None, Vec::new());
        let places = self.models.iter().zip(&self.devices);
        for ((model, device), share) in places.zip(shares) {
            let own = StepResult::new(model, share, self.stored);
            if several {
                lists.push(flatten(model, &own.gradients, Some(own.loss.clone())));
            }
            // Operations draw random numbers when run, and Adam in place overwrites what they read:
            // flush in turn.
            if several || optimizer_step().is_some() {
                let flushed = device.flush();
                flushed.map_err(|error| TrainError::Device(error.to_string()))?;
            }
            first.get_or_insert(own);
        }
        let mut first = first.expect("a share for each device");
        let model = self.models.remove(0);
        if several {
            let sums = (self.sum)(same_length(lists)?, &self.devices);
            first = first.replaced(&model, sums.into_iter().next().expect("one for each"));
        }
        let model = self.optimizer.step(lr, model, first.gradients);
        self.models.insert(0, model);
        Ok((self.shared()?, first.loss))
    }

    /// Sums with zeros elsewhere.
    fn shared(self) -> Result<Self, TrainError> {
        if self.models.len() == 1 {
            return Ok(self);
        }
        let own: Vec<GradientsParams> = self.models.iter().map(parameters).collect();
        let first = flatten(&self.models[0], &own[0], None);
        let none = |device: &Device| Tensor::zeros(first.dims(), (device, first.dtype()));
        let others: Vec<Tensor<1>> = self.devices[1..].iter().map(none).collect();
        let lists = [vec![first], others].concat();
        let sums = (self.sum)(lists, &self.devices);
        let each = self.models.into_iter().zip(own).zip(sums);
        let models = each.map(|((model, own), sum)| {
            let (values, _) = unflatten(&model, own, sum);
            with_parameters(model, values)
        });
        Ok(Self { models: models.collect(), ..self })
    }

    pub(super) fn check_equal(&self, when: &str) -> Result<(), TrainError> {
        if self.models.len() == 1 {
            return Ok(());
        }
        let read = |model: &M| -> Result<Vec<f64>, TrainError> {
            let list = flatten(model, &parameters(model), None);
            let data = list.try_into_data();
            let data = data.map_err(|error| TrainError::Device(error.to_string()))?;
            Ok(data.iter::<f64>().collect())
        };
        let wanted = read(&self.models[0])?;
        for (other, device) in self.models.iter().zip(&self.devices).skip(1) {
            let found = read(other)?;
            let mut pairs = wanted.iter().zip(&found);
            if pairs.any(|(a, b)| a.to_bits() != b.to_bits()) {
                let pairs = wanted.iter().zip(&found);
                let apart = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                let reason = format!(
                    "{when}, the model on {device:?} is not that of the first device: \
                     values differ by up to {apart:e}"
                );
                return Err(TrainError::Device(reason));
            }
        }
        Ok(())
    }
}

pub(super) fn record<M: NodeModel>(model: M) -> Result<Bytes, TrainError> {
    let bytes = model.into_record().into_bytes();
    bytes.map_err(|error| TrainError::Device(error.to_string()))
}

fn same_length(lists: Vec<Tensor<1>>) -> Result<Vec<Tensor<1>>, TrainError> {
    match lists.windows(2).all(|two| two[0].dims() == two[1].dims()) {
        true => Ok(lists),
        false => Err(TrainError::Device("the devices have different parameters".to_string())),
    }
}

struct StepResult {
    gradients: GradientsParams,
    /// `[1]`, outside autodiff.
    loss: Tensor<1>,
}

impl StepResult {
    fn new<M: NodeModel>(model: &M, share: &Share, stored: Option<DType>) -> Self {
        let copy = stored.map(|dtype| copy_in(model, dtype));
        let stepping = copy.as_ref().unwrap_or(model);
        let logits = stepping.forward(share.graph, share.data.features.clone());
        let loss = share.data.loss(logits);
        let gradients = GradientsParams::from_grads(loss.backward(), stepping);
        Self {
            gradients: match copy {
                Some(_) => gradients_for(model, gradients),
                None => gradients,
            },
            loss: loss.without_autodiff(),
        }
    }

    fn replaced<M: NodeModel>(self, model: &M, list: Tensor<1>) -> Self {
        let dtype = self.loss.dtype();
        let (gradients, rest) = unflatten(model, self.gradients, list);
        let loss = rest.expect("the loss follows").narrow(0, 0, 1);
        let loss = loss.cast(dtype);
        Self { gradients, loss }
    }
}

/// By id, outside autodiff.
fn parameters<M: Module>(model: &M) -> GradientsParams {
    let mut taken = ParameterReader(GradientsParams::new());
    model.visit(&mut taken);
    taken.0
}

fn with_parameters<M: Module>(model: M, values: GradientsParams) -> M {
    model.map(&mut ParameterWriter(values))
}

/// Burn's `all_reduce` sums whole buffers; unequal lengths mix up or hang.
const BLOCK: usize = 256;

/// In parameter order; f64 if any is, else f32.
fn flatten<M: Module>(model: &M, values: &GradientsParams, last: Option<Tensor<1>>) -> Tensor<1> {
    let mut pieces = GradientPieces { values, found: Vec::new() };
    model.visit(&mut pieces);
    let found: Vec<Tensor<1>> = pieces.found.into_iter().chain(last).collect();
    let wide = found.iter().any(|piece| piece.dtype() == DType::F64);
    let dtype = if wide { DType::F64 } else { DType::F32 };
    let mut found: Vec<Tensor<1>> = found.into_iter().map(|piece| piece.cast(dtype)).collect();
    let length: usize = found.iter().map(|piece| piece.dims()[0]).sum();
    let rest = length.next_multiple_of(BLOCK) - length;
    if let Some(piece) = found.first().filter(|_| rest > 0) {
        found.push(Tensor::zeros([rest], (&piece.device(), dtype)));
    }
    Tensor::cat(found, 0)
}

fn unflatten<M: Module>(
    model: &M,
    values: GradientsParams,
    list: Tensor<1>,
) -> (GradientsParams, Option<Tensor<1>>) {
    let mut spread = ListReader { values, list, taken: 0 };
    model.visit(&mut spread);
    let left = spread.list.dims()[0] - spread.taken;
    let rest = (left > 0).then(|| spread.take(left));
    (spread.values, rest)
}

struct ParameterReader(GradientsParams);

impl ModuleVisitor for ParameterReader {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.register(param.id, param.val().without_autodiff());
    }
}

struct ParameterWriter(GradientsParams);

impl ModuleMapper for ParameterWriter {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(value) = self.0.remove::<D>(param.id) else {
            return param;
        };
        param.map(|before| {
            let mut value = Tensor::from_inner(value);
            if let Some(strategy) = before.gradient_checkpointing_strategy() {
                value = value.with_gradient_checkpointing_strategy(strategy);
            }
            value.set_require_grad(before.is_require_grad())
        })
    }
}

struct GradientPieces<'a> {
    values: &'a GradientsParams,
    found: Vec<Tensor<1>>,
}

impl ModuleVisitor for GradientPieces<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(value) = self.values.get::<D>(param.id) {
            let length = value.shape().num_elements();
            self.found.push(value.reshape([length]));
        }
    }
}

struct ListReader {
    values: GradientsParams,
    list: Tensor<1>,
    taken: usize,
}

impl ListReader {
    fn take(&mut self, length: usize) -> Tensor<1> {
        let first = self.taken;
        self.taken += length;
        self.list.clone().narrow(0, first, length)
    }
}

impl ModuleVisitor for ListReader {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(own) = self.values.remove::<D>(param.id) {
            let piece = self.take(own.shape().num_elements());
            let value = piece.reshape(own.dims()).cast(own.dtype());
            self.values.register(param.id, value);
        }
    }
}
