use super::*;

#[test]
fn batches_learn_and_resume() {
    let _alone = alone();
    let data = block_model(&SbmConfig::new(800)).unwrap();
    let (model, device) = (sage(&data), Device::flex());
    let parts = |clustered| Batching::Parts {
        parts: 8,
        together: 2,
        clustered,
    };
    let neighbors = Batching::Neighbors {
        fanouts: vec![8, 8],
        nodes: 100,
    };
    for (batches, evaluate_batches) in [
        (neighbors.clone(), false),
        (neighbors, true),
        (parts(false), false),
        (parts(true), true),
    ] {
        let config = TrainConfig::new()
            .with_epochs(12)
            .with_lr(0.01)
            .with_batches(batches)
            .with_evaluate_batches(evaluate_batches);
        let whole = train(&config, &model, &data, &device, &mut quiet).unwrap();
        // Guessing gives 1/8; clusters lose most edges here.
        assert!(whole.best.test > 0.3, "{config:?}: {:?}", whole.best);

        let scratch = Scratch::new("batches");
        let checkpoint = CheckpointDir::new(&scratch.0);
        let half = config.clone().with_epochs(5);
        let first = Trainer::new(&half, &model, &data).unwrap();
        let first = first.with_checkpoint(checkpoint.clone()).unwrap();
        first.run(&device, &mut quiet).unwrap();
        let rest = Trainer::new(&config, &model, &data).unwrap();
        let rest = rest
            .resume(checkpoint)
            .unwrap()
            .run(&device, &mut quiet)
            .unwrap();
        assert_eq!(curves(&rest), curves(&whole)[5..]);
    }
    let config = TrainConfig::new().with_batches(Batching::Parts {
        parts: 801,
        together: 1,
        clustered: false,
    });
    assert!(
        Trainer::new(&config, &model, &data)
            .unwrap_err()
            .to_string()
            .contains("801")
    );
}

#[test]
fn no_batches_are_refused_before_an_evaluation_too() {
    let data = karate::karate_club();
    let (model, device) = (sage(&data), Device::flex());
    let weights = model.init(&device).unwrap();
    let parts = |parts, together| Batching::Parts {
        parts,
        together,
        clustered: true,
    };
    let neighbors = |fanouts, nodes| Batching::Neighbors { fanouts, nodes };
    for batches in [
        parts(0, 0),
        parts(0, 1),
        parts(4, 0),
        parts(4, 5),
        parts(35, 1),
        neighbors(vec![], 8),
        neighbors(vec![2], 0),
    ] {
        let config = TrainConfig::new()
            .with_batches(batches.clone())
            .with_evaluate_batches(true);
        let trained = Trainer::new(&config, &model, &data).unwrap_err();
        let error = evaluate(&config, &model, &weights, &data, &device).unwrap_err();
        assert!(matches!(error, TrainError::Config(_)), "{batches:?}");
        assert_eq!(error.to_string(), trained.to_string());
    }
}

/// Apart from the order of sums.
#[test]
fn one_part_is_the_full_batch() {
    let _alone = alone();
    let data = block_model(&SbmConfig::new(300)).unwrap();
    let (model, device) = (sage(&data).with_dropout(0.0), Device::flex());
    let config = TrainConfig::new().with_epochs(4);
    let full = train(&config, &model, &data, &device, &mut quiet).unwrap();
    let one = config.with_batches(Batching::Parts {
        parts: 1,
        together: 1,
        clustered: false,
    });
    let one = train(&one, &model, &data, &device, &mut quiet).unwrap();
    for (a, b) in full.history.iter().zip(&one.history) {
        assert!((a.loss - b.loss).abs() < 1e-4 * a.loss, "{a:?} {b:?}");
    }
}
