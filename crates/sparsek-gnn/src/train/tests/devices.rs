//! One device acts as several.

use super::*;
use crate::train::{
    data::DeviceData,
    devices::{check_batches, has_collectives, join},
    recipe::Recipe,
    replicas::{Replicas, Share},
};

fn add_up(each: Vec<Tensor<1>>, devices: &[Device]) -> Vec<Tensor<1>> {
    let sum = Tensor::stack::<2>(each, 0).sum_dim(0).reshape([-1]);
    vec![sum; devices.len()]
}

#[derive(Config, Debug, PartialEq)]
struct Drawn {
    model: MaxKModelConfig,
}

impl NodeModelConfig for Drawn {
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

fn drawn(data: &NodeDataset) -> Drawn {
    Drawn::new(sage(data).with_dropout(0.0))
}

/// Parts lose no edges.
fn lonely(nodes: usize) -> Graph {
    Graph::from_edges(nodes, []).unwrap().with_self_loops()
}

fn parts(parts: usize, together: usize) -> Batching {
    Batching::Parts { parts, together, clustered: false }
}

#[rstest]
#[case::classes(blocks(600))]
#[case::sets(sets())]
fn a_step_of_two_batches_is_that_of_their_union(
    _alone: Alone,
    device: Device,
    #[case] data: NodeDataset,
    #[values([3, 11], [1, 1], [5, 0], [0, 7])] counts: [u32; 2],
) {
    let model = drawn(&data);
    let config = TrainConfig::new().with_weight_decay(1e-3);
    let replicas = |count| {
        device.seed(1);
        let devices = vec![device.clone(); count];
        Replicas::new((&config, &Recipe::default()), &model, &devices, add_up).unwrap()
    };
    let (mut one, mut two) = (replicas(1), replicas(2));
    two.check_equal("after training").unwrap();

    let [first, second] = counts.map(|count| (0..count).collect::<Vec<u32>>());
    let both = [first.clone(), second.iter().map(|at| at + 20).collect()].concat();
    let batch = |nodes: std::ops::Range<u32>, train: &[u32]| {
        let nodes: Vec<u32> = nodes.collect();
        let train = (train, both.len());
        let uploaded = DeviceData::new(&data, Some(&nodes), train, None, (&device, None));
        (lonely(nodes.len()), uploaded)
    };
    let batches = [batch(0..20, &first), batch(20..40, &second), batch(0..40, &both)];
    let [a, b, union] = batches.each_ref().map(|(graph, data)| Share { graph, data });
    let (pair, union) = ([a, b], [union]);
    for _ in 0..4 {
        let loss;
        let expected;
        (one, expected) = one.step(0.01, &union).unwrap();
        (two, loss) = two.step(0.01, &pair).unwrap();
        two.check_equal("after training").unwrap();
        let [loss, expected] = [loss, expected].map(|x| x.into_scalar::<f32>());
        let near = (loss - expected).abs() < 1e-4 * expected;
        assert!(near, "{loss} instead of {expected}");
    }
}

#[rstest]
fn devices_train_as_one_with_as_many_parts_together(_alone: Alone, device: Device) {
    let data = blocks(400);
    let data = data.clone().with_graph(lonely(data.nodes()));
    let model = drawn(&data);
    let run = |together, devices: usize| {
        let config = TrainConfig::new().with_epochs(5).with_batches(parts(10, together));
        let devices = vec![device.clone(); devices];
        let trainer = Trainer::new(&config, &model, &data).unwrap();
        trainer.run_with(&devices, add_up, &mut quiet).unwrap()
    };
    let (one, two, five) = (run(4, 1), run(2, 2), run(1, 5));
    for (a, b) in one.history.iter().zip(&two.history) {
        assert!((a.loss - b.loss).abs() < 1e-3 * a.loss, "{a:?} {b:?}");
        assert!((a.train - b.train).abs() < 0.02, "{a:?} {b:?}");
    }
    assert!(five.history[4].loss < five.history[0].loss);
}

#[rstest]
fn several_devices_learn_and_resume(_alone: Alone, device: Device, scratch: Scratch) {
    let data = blocks(800);
    let model = sage(&data);
    let devices = [device.clone(), device];
    let config = TrainConfig::new().with_epochs(12).with_lr(0.01).with_batches(parts(8, 2));
    let trainer = |config| Trainer::new(config, &model, &data).unwrap();
    let whole = trainer(&config).run_with(&devices, add_up, &mut quiet).unwrap();
    assert!(whole.best.test > 0.3, "{:?}", whole.best);

    let checkpoint = CheckpointDir::new(&scratch.0);
    let half = config.clone().with_epochs(5);
    let first = trainer(&half).with_checkpoint(checkpoint.clone()).unwrap();
    first.run_with(&devices, add_up, &mut quiet).unwrap();
    let rest = trainer(&config).resume(checkpoint).unwrap();
    let rest = rest.run_with(&devices, add_up, &mut quiet).unwrap();
    assert_eq!(curves(&rest), curves(&whole)[5..]);
}

#[rstest]
fn replicas_that_differ_are_noticed(
    _alone: Alone,
    device: Device,
    #[from(karate_club)] data: NodeDataset,
) {
    let (config, devices) = (TrainConfig::new(), [device.clone(), device.clone()]);
    let alone = |each: Vec<Tensor<1>>, _: &[Device]| each;
    let found = join(&devices, alone).unwrap_err().to_string();
    assert!(found.contains("counted themselves"), "{found}");

    fn careless(each: Vec<Tensor<1>>, devices: &[Device]) -> Vec<Tensor<1>> {
        match each[0].dims() {
            [1] => add_up(each, devices),
            _ => each,
        }
    }
    let config = config.with_epochs(2).with_batches(parts(4, 1));
    let model = sage(&data);
    let trainer = Trainer::new(&config, &model, &data).unwrap();
    let found = trainer.run_with(&devices, careless, &mut quiet);
    let found = found.unwrap_err().to_string();
    assert!(found.contains("not that of the first device"), "{found}");
}

#[rstest]
fn devices_that_cannot_train_together_are_told(
    _alone: Alone,
    device: Device,
    #[from(karate_club)] data: NodeDataset,
) {
    let model = sage(&data);
    let config = TrainConfig::new().with_epochs(2);
    let run = |devices: &[Device]| train_on(&config, &model, &data, devices, &mut quiet);
    let one = run(std::slice::from_ref(&device)).unwrap();
    let plain = train(&config, &model, &data, &device, &mut quiet).unwrap();
    assert_eq!(curves(&one), curves(&plain));
    let refused = |devices: &[Device]| match run(devices) {
        Err(TrainError::Devices(error)) => error,
        found => panic!("{:?}", found.map(|run| run.best)),
    };
    assert_eq!(refused(&[]), DevicesError::None);
    let twice = [device.clone(), device.clone().autodiff()];
    let repeated = refused(&twice);
    assert!(matches!(repeated, DevicesError::Repeated { .. }));
    assert!(repeated.to_string().contains("twice"));
    assert!(!has_collectives(&device));
}

#[rstest]
#[case::full(Batching::Full)]
#[case::neighbors(Batching::Neighbors { fanouts: vec![2], nodes: 4 })]
fn several_devices_need_parts(#[case] batches: Batching) {
    let devices = 3;
    let found = check_batches(&batches, devices);
    assert_eq!(found, Err(DevicesError::Batching { devices }));
}

#[rstest]
#[case(1, false)]
#[case(2, false)]
#[case(3, true)]
#[case(4, false)]
#[case(9, true)]
fn devices_take_equal_numbers_of_parts(#[case] count: usize, #[case] fits: bool) {
    let devices = 3;
    let refused = DevicesError::Parts { parts: count, devices };
    let expected = if fits { Ok(()) } else { Err(refused) };
    assert_eq!(check_batches(&parts(count, 1), devices), expected);
}
