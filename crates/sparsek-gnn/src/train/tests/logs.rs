use std::io::ErrorKind;

use super::*;

fn report(epoch: usize) -> EpochReport {
    EpochReport { epoch, loss: 0.5, train: 0.25, val: 0.125, test: 0.75, ms: 1.0 }
}

fn summary(epochs: usize) -> RunSummary {
    RunSummary {
        summary: true,
        backend: "flex".to_string(),
        device: "CPU".to_string(),
        dataset: "karate".to_string(),
        model: "sage".to_string(),
        metric: "accuracy".to_string(),
        activation: "relu".to_string(),
        hidden: 8,
        layers: 2,
        dropout: 0.5,
        lr: 0.01,
        weight_decay: 0.0,
        seed: 0,
        parameters: 9,
        most_epochs: 9,
        epochs,
        best_epoch: 1,
        val: 0.5,
        test: 0.5,
        ms_per_epoch: 1.0,
        seconds: 0.1,
        captured: false,
        configuration: String::new(),
    }
}

#[fixture]
fn folder(scratch: Scratch) -> Scratch {
    fs::create_dir_all(&scratch.0).unwrap();
    scratch
}

#[rstest]
fn an_epoch_and_a_summary_stand_once_for_each_run(folder: Scratch) {
    let path = folder.0.join("log");
    let (one, other) = (RunId::random(), RunId::random());
    for last in [2, 4] {
        let mut log = RunLog::open(&path).unwrap();
        for id in [&one, &other] {
            log.begin(id);
            (1..=last).for_each(|epoch| log.epoch("relu", &report(epoch)).unwrap());
            log.summary(&summary(last)).unwrap();
            log.summary(&summary(last)).unwrap();
        }
        log.sync().unwrap();
    }
    let text = fs::read_to_string(&path).unwrap();
    let of = |id: &RunId| text.lines().filter(|line| line.contains(id.as_str())).count();
    assert_eq!((of(&one), of(&other), text.lines().count()), (6, 6, 12));
    assert_eq!(RunLog::summaries(&path).unwrap().len(), 4);
}

#[rstest]
fn a_line_cut_anywhere_is_skipped_and_written_again(folder: Scratch) {
    let path = folder.0.join("log");
    let id = RunId::random();
    let mut log = RunLog::open(&path).unwrap();
    log.begin(&id);
    log.epoch("maxk:4:é", &report(1)).unwrap();
    let whole = fs::read(&path).unwrap();
    log.epoch("maxk:4:é", &report(2)).unwrap();
    let all = fs::read(&path).unwrap();
    for len in whole.len()..all.len() {
        fs::write(&path, &all[..len]).unwrap();
        let mut log = RunLog::open(&path).unwrap();
        log.begin(&id);
        for epoch in 1..=3 {
            log.epoch("maxk:4:é", &report(epoch)).unwrap();
        }
        let text = fs::read(&path).unwrap();
        assert!(text.starts_with(&all[..len]), "{len}");
        let text = String::from_utf8_lossy(&text).into_owned();
        let line = |epoch: usize| {
            let own = |line: &&str| {
                let value = serde_json::from_str::<serde_json::Value>(line);
                value.is_ok_and(|value| value["epoch"] == epoch)
            };
            text.lines().filter(own).count()
        };
        assert_eq!([line(1), line(2), line(3)], [1; 3], "{len}: {text}");
        assert!(RunLog::summaries(&path).unwrap().is_empty());
    }
}

#[rstest]
#[case::text("notes\n", "line 1")]
#[case::empty("{}\n", "line 1")]
#[case::one_line("{\"0\": 1, \"1\": 0}", "line 1")]
#[case::several_lines("{\n\"0\": 1\n}\n", "line 2")]
#[case::second_line("{\"epoch\":1,\"activation\":\"relu\"}\n[1]\n", "line 2")]
#[case::epoch("{\"epoch\":-1,\"activation\":\"relu\"}\n", "line 1")]
#[case::summary("{\"summary\":false}\n", "line 1")]
#[case::control_character("{\"activation\":\"\u{1b}\"}\n", "line 1")]
fn what_is_no_log_is_refused_and_stays(folder: Scratch, #[case] text: &str, #[case] line: &str) {
    let path = folder.0.join("notes.txt");
    fs::write(&path, text).unwrap();
    let error = RunLog::open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    let error = error.to_string();
    assert!(error.contains(line) && error.contains("notes.txt"), "{error}");
    assert!(RunLog::summaries(&path).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[rstest]
fn deep_lines_are_refused(folder: Scratch) {
    let path = folder.0.join("notes.txt");
    fs::write(&path, "{\"run\":\"".repeat(1 << 18)).unwrap();
    assert!(RunLog::open(&path).is_err());
}

#[rstest]
fn a_missing_log_has_no_summaries(folder: Scratch) {
    let summaries = RunLog::summaries(folder.0.join("none")).unwrap();
    assert!(summaries.is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_named() {
    let mut log = RunLog::open("/dev/full").unwrap();
    log.begin(&RunId::random());
    let error = log.epoch("relu", &report(1)).unwrap_err();
    assert!(error.to_string().contains("/dev/full"), "{error}");
    let error = TrainError::from(error).to_string();
    assert!(error.contains("/dev/full") && error.contains("space"), "{error}");
}
