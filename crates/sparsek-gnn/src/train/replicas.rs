//! Copies of a model, one on each device, that take the same steps.
use burn::{
    module::{ModuleVisitor, Param},
    optim::{GradientsParams, ModuleOptimizer},
    tensor::{DType, Device, Tensor},
};

use super::{
    CheckpointDir, EpochReport, NodeModel, NodeModelConfig, RunState, TrainConfig, TrainError,
    data::DeviceData,
    devices::{Sum, join},
    optimizer::adam,
};
use crate::Graph;

/// A model on each of the devices, equal to the bit as long as their gradients are.
pub(super) struct Replicas<M> {
    /// Outside autodiff.
    devices: Vec<Device>,
    each: Vec<Replica<M>>,
    sum: Sum,
}

struct Replica<M> {
    model: M,
    optimizer: ModuleOptimizer,
}

/// What a device contributes to a step.
pub(super) struct Share<'a> {
    pub(super) graph: &'a Graph,
    /// Its loss counts as much as its training nodes among those of the whole step.
    pub(super) data: &'a DeviceData,
}

impl<M: NodeModel> Replicas<M> {
    /// A model with random parameters, on the first device and copied from there.
    pub(super) fn new<C: NodeModelConfig<Model = M>>(
        config: &TrainConfig,
        model: &C,
        devices: &[Device],
        sum: Sum,
    ) -> Result<Self, TrainError> {
        let inner = |device: &Device| device.clone().without_autodiff();
        let devices: Vec<Device> = devices.iter().map(inner).collect();
        let mut each: Vec<Replica<M>> = Vec::with_capacity(devices.len());
        for device in &devices {
            let mut copy = model.init(&device.clone().autodiff())?;
            if let Some(first) = each.first() {
                let copied = copy.try_load_record(first.model.clone().into_record());
                copy = copied.map_err(|error| TrainError::Device(error.to_string()))?;
            }
            each.push(Replica {
                model: copy,
                optimizer: adam(config, device),
            });
        }
        if devices.len() > 1 {
            join(&devices, sum)?;
        }
        let replicas = Self { devices, each, sum };
        replicas.check_equal("before the first step")?;
        Ok(replicas)
    }

    /// The last state of a run, on every device.
    pub(super) fn restore(self, checkpoint: &CheckpointDir) -> Result<Self, TrainError> {
        let restore = |replica: Replica<M>| {
            let (model, optimizer) = checkpoint.load_last(replica.model, replica.optimizer)?;
            Ok(Replica { model, optimizer })
        };
        let each: Result<_, TrainError> = self.each.into_iter().map(restore).collect();
        Ok(Self {
            each: each?,
            ..self
        })
    }

    pub(super) fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// The model on the first device.
    pub(super) fn model(&self) -> &M {
        &self.each[0].model
    }

    /// Saves what the first device has.
    pub(super) fn save(
        &self,
        checkpoint: &CheckpointDir,
        last: EpochReport,
        seconds: f64,
    ) -> Result<(), TrainError> {
        let Replica { model, optimizer } = &self.each[0];
        let state = RunState {
            last,
            seconds,
            place: 0,
        };
        checkpoint.save_last(model.clone(), optimizer, &state)
    }

    /// One step, with a share for each device: that of one device on all their training nodes. Also the mean loss of these before
    /// it, [1], on the first device, outside autodiff and not read.
    pub(super) fn step(self, lr: f64, shares: &[Share]) -> Result<(Self, Tensor<1>), TrainError> {
        let several = shares.len() > 1;
        let (mut found, mut lists) = (Vec::new(), Vec::new());
        let places = self.each.iter().zip(&self.devices);
        for ((replica, device), share) in places.zip(shares) {
            let own = Found::new(&replica.model, share);
            if several {
                lists.push(own.list(&replica.model));
                // Random numbers are drawn from one stream for all devices, when operations run and not when they are asked for.
                let flushed = device.flush();
                flushed.map_err(|error| TrainError::Device(error.to_string()))?;
            }
            found.push(own);
        }
        if several {
            let sums = (self.sum)(same_length(lists)?, &self.devices);
            let owned = self.each.iter().zip(found).zip(sums);
            let replaced = owned.map(|((replica, own), sum)| own.replaced(&replica.model, sum));
            found = replaced.collect();
        }
        let loss = found[0].loss.clone();
        let step = |(mut replica, found): (Replica<M>, Found)| {
            let optimizer = &mut replica.optimizer;
            replica.model = optimizer.step(lr, replica.model, found.gradients);
            replica
        };
        let each = self.each.into_iter().zip(found).map(step).collect();
        Ok((Self { each, ..self }, loss))
    }

    /// Whether all models are equal to the bit; reads them. `when` is for the message.
    ///
    /// # Errors
    /// [`TrainError::Device`] when they are not.
    pub(super) fn check_equal(&self, when: &str) -> Result<(), TrainError> {
        let mut others = self.each.iter().zip(&self.devices);
        let Some((first, _)) = others.next().filter(|_| self.each.len() > 1) else {
            return Ok(());
        };
        let bits = |model: &M| {
            let bytes = model.clone().into_record().into_bytes();
            bytes.map_err(|error| TrainError::Device(error.to_string()))
        };
        let wanted = bits(&first.model)?;
        for (other, device) in others {
            if bits(&other.model)? != wanted {
                let apart = apart(&first.model, &other.model);
                let reason = format!(
                    "the model on {device:?} is not that of the first device {when}, up to {apart:e} apart"
                );
                return Err(TrainError::Device(reason));
            }
        }
        Ok(())
    }
}

/// The greatest difference between parameters of two models.
fn apart<M: NodeModel>(one: &M, other: &M) -> f64 {
    let [one, other] = [one, other].map(|model| {
        let mut elements = Elements(Vec::new());
        model.visit(&mut elements);
        elements.0
    });
    let differences = one.iter().zip(&other).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, f64::max)
}

struct Elements(Vec<f64>);

impl ModuleVisitor for Elements {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.extend(param.val().into_data().iter::<f64>());
    }
}

/// Lists of several lengths would not be summed, but waited for without end.
fn same_length(lists: Vec<Tensor<1>>) -> Result<Vec<Tensor<1>>, TrainError> {
    match lists.windows(2).all(|two| two[0].dims() == two[1].dims()) {
        true => Ok(lists),
        false => Err(TrainError::Device(
            "the devices have gradients of different parameters".to_string(),
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

    /// The elements of all gradients, in the order of the parameters, and the loss: f64 where one of them is, else f32.
    fn list<M: NodeModel>(&self, model: &M) -> Tensor<1> {
        let mut list = List {
            gradients: &self.gradients,
            pieces: Vec::new(),
        };
        model.visit(&mut list);
        let mut pieces = list.pieces;
        pieces.push(self.loss.clone());
        let wide = pieces.iter().any(|piece| piece.dtype() == DType::F64);
        let dtype = if wide { DType::F64 } else { DType::F32 };
        Tensor::cat(
            pieces.into_iter().map(|piece| piece.cast(dtype)).collect(),
            0,
        )
    }

    /// The same with the elements of such a list.
    fn replaced<M: NodeModel>(mut self, model: &M, list: Tensor<1>) -> Self {
        let mut spread = Spread {
            gradients: &mut self.gradients,
            list,
            taken: 0,
        };
        model.visit(&mut spread);
        self.loss = spread.take(1).cast(self.loss.dtype());
        self
    }
}

struct List<'a> {
    gradients: &'a GradientsParams,
    pieces: Vec<Tensor<1>>,
}

impl ModuleVisitor for List<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.get::<D>(param.id) {
            let length = gradient.shape().num_elements();
            self.pieces.push(gradient.reshape([length]));
        }
    }
}

struct Spread<'a> {
    gradients: &'a mut GradientsParams,
    list: Tensor<1>,
    taken: usize,
}

impl Spread<'_> {
    fn take(&mut self, length: usize) -> Tensor<1> {
        let first = self.taken;
        self.taken += length;
        self.list.clone().narrow(0, first, length)
    }
}

impl ModuleVisitor for Spread<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(own) = self.gradients.remove::<D>(param.id) {
            let piece = self.take(own.shape().num_elements());
            let gradient = piece.reshape(own.dims()).cast(own.dtype());
            self.gradients.register(param.id, gradient);
        }
    }
}
