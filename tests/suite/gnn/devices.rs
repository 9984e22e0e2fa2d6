//! Training on several devices against one.

use burn::module::Module;
use burn::tensor::Device;
use sparsek_gnn::Graph;
use sparsek_gnn::datasets::sbm::{SbmConfig, block_model};
use sparsek_gnn::nn::{Activation, Architecture, MaxKModel, MaxKModelConfig, ModelError};
use sparsek_gnn::train::{
    Batching, DevicesError, EpochReport, NodeModelConfig, TrainConfig, TrainError, train_on,
};
use sparsek_tests::{
    backend::Backend,
    runner::{Cases, Outcome, Verdict},
};

pub fn add(cases: &mut Cases, backend: &Backend) {
    cases.add(backend, "tensor/gnn/devices", devices);
}

/// A model with eagerly drawn parameters, equal on one and on several devices.
#[derive(burn::config::Config, Debug, PartialEq)]
struct EagerModel {
    model: MaxKModelConfig,
}

impl NodeModelConfig for EagerModel {
    type Model = MaxKModel;

    fn validate(&self) -> Result<(), ModelError> {
        self.model.validate()
    }

    fn init(&self, device: &Device) -> Result<MaxKModel, ModelError> {
        let model = self.model.init(device)?;
        let record = model.clone().into_record();
        Ok(model.load_record(record))
    }

    fn input_width(&self) -> usize {
        self.model.input_width()
    }

    fn classes(&self) -> usize {
        self.model.classes()
    }
}

/// Two devices with one part each take the steps of one device with two parts, if no edges are lost
/// between parts. With edges and dropout, the loss must fall. The trainer itself checks that the
/// replicas' parameters are equal bit for bit.
fn devices(backend: &Backend) -> Outcome {
    let devices = backend.devices();
    let [first, second, ..] = &devices[..] else {
        return Ok(Verdict::Skipped("there is only one such device".into()));
    };
    let two = [first.clone(), second.clone()];
    let config = |together, epochs| {
        let parts = Batching::Parts { parts: 8, together, clustered: false };
        let config = TrainConfig::new().with_epochs(epochs).with_lr(0.01);
        config.with_batches(parts)
    };
    match config(1, 1).check_devices(&two) {
        Err(TrainError::Devices(DevicesError::Collectives { .. })) => {
            let reason = "the devices have no collective operations (CUDA needs libnccl.so)";
            return Ok(Verdict::Skipped(reason.into()));
        }
        checked => checked.map_err(|e| e.to_string())?,
    }
    match config(1, 1).with_batches(Batching::Full).check_devices(&two) {
        Err(TrainError::Devices(DevicesError::Batching { devices: 2 })) => {}
        found => return Err(format!("full batch on two devices: {found:?}")),
    }

    let data = block_model(&SbmConfig::new(800).with_seed(2)).map_err(|e| e.to_string())?;
    let model = MaxKModelConfig::new(Architecture::Sage, data.feature_width(), 32, data.classes())
        .with_layers(2)
        .with_activation(Activation::maxk(8));
    let quiet = &mut |_: &EpochReport| Ok(());
    let loops = Graph::from_edges(data.nodes(), []).map_err(|e| e.to_string())?;
    let loops_only = data.clone().with_graph(loops.with_self_loops());
    // ReLU: other summation orders and tf32 would change the selected elements of MaxK.
    let smooth = model.clone().with_activation(Activation::Relu);
    let eager = EagerModel::new(smooth.with_dropout(0.0));
    let mut run = |together, devices: &[Device]| {
        let config = config(together, 10);
        train_on(&config, &eager, &loops_only, devices, quiet).map_err(|e| e.to_string())
    };
    let (whole, shared) = (run(2, &two[..1])?, run(1, &two)?);
    for (a, b) in whole.history.iter().zip(&shared.history) {
        let near = (a.loss - b.loss).abs() <= 0.02 * a.loss && (a.train - b.train).abs() <= 0.02;
        if !near {
            return Err(format!("one device {a:?}, two {b:?}"));
        }
    }

    let model = model.with_dropout(0.3);
    let found = train_on(&config(1, 20), &model, &data, &two, quiet);
    let found = found.map_err(|e| e.to_string())?;
    let (first, last) = (found.history[0].loss, found.history[19].loss);
    match last < 0.9 * first {
        true => Ok(Verdict::Passed),
        false => Err(format!("the loss went from {first} to {last}")),
    }
}
