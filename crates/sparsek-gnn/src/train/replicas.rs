//! Copies of a model, one on each device, that take the same steps.
use burn::{
    optim::{GradientsParams, ModuleOptimizer},
    tensor::{Bytes, Device, Tensor},
};

use super::{
    NodeModel, NodeModelConfig, SavedRun, TrainConfig, TrainError,
    data::DeviceData,
    devices::{self, Sum},
    lists,
    optimizer::adam,
};
use crate::Graph;

/// A model on each of the devices, equal to the bit: the first device takes the steps, with the gradients of all, and shares its
/// parameters. Steps taken by each for itself would not stay equal, as devices may fuse and round the same arithmetic differently.
pub(super) struct Replicas<M> {
    /// Outside autodiff.
    devices: Vec<Device>,
    models: Vec<M>,
    /// On the first device.
    optimizer: ModuleOptimizer,
    sum: Sum,
}

/// What a device contributes to a step.
pub(super) struct Share<'a> {
    pub(super) graph: &'a Graph,
    /// Its loss counts as much as its training nodes among those of the whole step.
    pub(super) data: &'a DeviceData,
}

impl<M: NodeModel> Replicas<M> {
    /// A model with random parameters, those of the first device.
    pub(super) fn new<C: NodeModelConfig<Model = M>>(
        config: &TrainConfig,
        model: &C,
        devices: &[Device],
        sum: Sum,
    ) -> Result<Self, TrainError> {
        let inner = |device: &Device| device.clone().without_autodiff();
        let devices: Vec<Device> = devices.iter().map(inner).collect();
        let init = |device: &Device| model.init(&device.clone().autodiff());
        let models: Result<_, _> = devices.iter().map(init).collect();
        if devices.len() > 1 {
            devices::join(&devices, sum)?;
        }
        let optimizer = adam(config, &devices[0]);
        let replicas = Self {
            models: models?,
            optimizer,
            sum,
            devices,
        };
        let replicas = replicas.shared()?;
        replicas.check_equal("before the first step")?;
        Ok(replicas)
    }

    /// The last state of a run, on every device.
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

    /// The model on the first device.
    pub(super) fn model(&self) -> &M {
        &self.models[0]
    }

    /// The parameters and the optimizer's state of the first device, as records.
    pub(super) fn records(&self) -> Result<(Bytes, Bytes), TrainError> {
        let optimizer = self.optimizer.into_bytes();
        let optimizer = optimizer.map_err(|error| TrainError::Device(error.to_string()))?;
        Ok((record(self.model().clone())?, optimizer))
    }

    /// One step, with a share for each device: that of one device on all their training nodes. Also the mean loss of these before
    /// it, [1], on the first device, outside autodiff and not read.
    pub(super) fn step(
        mut self,
        lr: f64,
        shares: &[Share],
    ) -> Result<(Self, Tensor<1>), TrainError> {
        let several = shares.len() > 1;
        let (mut first, mut lists) = (None, Vec::new());
        let places = self.models.iter().zip(&self.devices);
        for ((model, device), share) in places.zip(shares) {
            let own = Found::new(model, share);
            if several {
                lists.push(lists::join(model, &own.gradients, Some(own.loss.clone())));
                // Random numbers are drawn from one stream for all devices, when operations run and not when they are asked for.
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

    /// Every model with the parameters of the first: the sum of these and of zeros.
    fn shared(self) -> Result<Self, TrainError> {
        if self.models.len() == 1 {
            return Ok(self);
        }
        let own: Vec<GradientsParams> = self.models.iter().map(lists::parameters).collect();
        let first = lists::join(&self.models[0], &own[0], None);
        let none = |device: &Device| Tensor::zeros(first.dims(), (device, first.dtype()));
        let others: Vec<Tensor<1>> = self.devices[1..].iter().map(none).collect();
        let lists = [vec![first], others].concat();
        let sums = (self.sum)(lists, &self.devices);
        let each = self.models.into_iter().zip(own).zip(sums);
        let models = each.map(|((model, own), sum)| {
            let (values, _) = lists::split(&model, own, sum);
            lists::with_parameters(model, values)
        });
        Ok(Self {
            models: models.collect(),
            ..self
        })
    }

    /// Whether all models are equal to the bit; reads them. `when` is for the message.
    ///
    /// # Errors
    /// [`TrainError::Device`] when they are not.
    pub(super) fn check_equal(&self, when: &str) -> Result<(), TrainError> {
        if self.models.len() == 1 {
            return Ok(());
        }
        let read = |model: &M| -> Result<Vec<f64>, TrainError> {
            let list = lists::join(model, &lists::parameters(model), None);
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
                    "the model on {device:?} is not that of the first device {when}, up to {apart:e} apart"
                );
                return Err(TrainError::Device(reason));
            }
        }
        Ok(())
    }
}

/// The parameters of a model.
pub(super) fn record<M: NodeModel>(model: M) -> Result<Bytes, TrainError> {
    let bytes = model.into_record().into_bytes();
    bytes.map_err(|error| TrainError::Device(error.to_string()))
}

/// Lists of several lengths would not be summed, but waited for without end.
fn same_length(lists: Vec<Tensor<1>>) -> Result<Vec<Tensor<1>>, TrainError> {
    match lists.windows(2).all(|two| two[0].dims() == two[1].dims()) {
        true => Ok(lists),
        false => Err(TrainError::Device(
            "the devices have lists of different parameters".to_string(),
        )),
    }
}

/// What a step of one device gives.
struct Found {
    gradients: GradientsParams,
    /// [1], outside autodiff.
    loss: Tensor<1>,
}

impl Found {
    fn new<M: NodeModel>(model: &M, share: &Share) -> Self {
        let logits = model.forward(share.graph, share.data.features.clone());
        let loss = share.data.loss(logits);
        Self {
            gradients: GradientsParams::from_grads(loss.backward(), model),
            loss: loss.without_autodiff(),
        }
    }

    /// The same with the elements of a list of gradients and loss.
    fn replaced<M: NodeModel>(self, model: &M, list: Tensor<1>) -> Self {
        let dtype = self.loss.dtype();
        let (gradients, rest) = lists::split(model, self.gradients, list);
        let loss = rest.expect("the loss follows").narrow(0, 0, 1);
        let loss = loss.cast(dtype);
        Self { gradients, loss }
    }
}
