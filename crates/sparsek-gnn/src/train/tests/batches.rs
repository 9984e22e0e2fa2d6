use super::*;

fn parts(parts: usize, together: usize, clustered: bool) -> Batching {
    Batching::Parts { parts, together, clustered }
}

fn neighbors(fanouts: &[usize], nodes: usize) -> Batching {
    Batching::Neighbors { fanouts: fanouts.to_vec(), nodes }
}

#[rstest]
#[case::neighbors(neighbors(&[8, 8], 100), false)]
#[case::neighbors(neighbors(&[8, 8], 100), true)]
#[case::random(parts(8, 2, false), false)]
#[case::clusters(parts(8, 2, true), true)]
fn batches_learn_and_resume(
    _alone: Alone,
    device: Device,
    scratch: Scratch,
    #[case] batches: Batching,
    #[case] evaluate_batches: bool,
) {
    let data = blocks(800);
    let model = sage(&data);
    let config = TrainConfig::new()
        .with_epochs(12)
        .with_lr(0.01)
        .with_batches(batches)
        .with_evaluate_batches(evaluate_batches);
    let whole = train(&config, &model, &data, &device, &mut quiet).unwrap();
    // Guessing gives 1/8.
    assert!(whole.best.test > 0.3, "{:?}", whole.best);

    let checkpoint = CheckpointDir::new(&scratch.0);
    let half = config.clone().with_epochs(5);
    let first = Trainer::new(&half, &model, &data).unwrap();
    let first = first.with_checkpoint(checkpoint.clone()).unwrap();
    first.run(&device, &mut quiet).unwrap();
    let rest = Trainer::new(&config, &model, &data).unwrap();
    let rest = rest.resume(checkpoint).unwrap().run(&device, &mut quiet).unwrap();
    assert_eq!(curves(&rest), curves(&whole)[5..]);
}

#[test]
fn more_parts_than_nodes_are_refused() {
    let data = blocks(800);
    let config = TrainConfig::new().with_batches(parts(801, 1, false));
    assert!(Trainer::new(&config, &sage(&data), &data).unwrap_err().to_string().contains("801"));
}

#[rstest]
#[case::no_parts(parts(0, 0, true))]
#[case::no_parts(parts(0, 1, true))]
#[case::none_together(parts(4, 0, true))]
#[case::more_together(parts(4, 5, true))]
#[case::more_parts_than_nodes(parts(35, 1, true))]
#[case::no_fanouts(neighbors(&[], 8))]
#[case::no_nodes(neighbors(&[2], 0))]
fn no_batches_are_refused_before_an_evaluation_too(
    _alone: Alone,
    device: Device,
    #[from(karate_club)] data: NodeDataset,
    #[case] batches: Batching,
) {
    let model = sage(&data);
    let weights = model.init(&device).unwrap();
    let config = TrainConfig::new().with_batches(batches).with_evaluate_batches(true);
    let trained = Trainer::new(&config, &model, &data).unwrap_err();
    let error = evaluate(&config, &model, &weights, &data, &device).unwrap_err();
    assert!(matches!(error, TrainError::Config(_)), "{error}");
    assert_eq!(error.to_string(), trained.to_string());
}

/// Up to summation order.
#[rstest]
fn one_part_is_the_full_batch(_alone: Alone, device: Device) {
    let data = blocks(300);
    let model = sage(&data).with_dropout(0.0);
    let config = TrainConfig::new().with_epochs(4);
    let full = train(&config, &model, &data, &device, &mut quiet).unwrap();
    let one = config.with_batches(parts(1, 1, false));
    let one = train(&one, &model, &data, &device, &mut quiet).unwrap();
    for (a, b) in full.history.iter().zip(&one.history) {
        assert!((a.loss - b.loss).abs() < 1e-4 * a.loss, "{a:?} {b:?}");
    }
}
