use std::{collections::BTreeMap, io};

use super::{super::fingerprint::sha256, *};

struct Run {
    data: NodeDataset,
    model: MaxKModelConfig,
    config: TrainConfig,
    device: Device,
    scratch: Scratch,
}

#[fixture]
fn run(
    #[default(2)] layers: usize,
    device: Device,
    #[from(karate_club)] data: NodeDataset,
    scratch: Scratch,
) -> Run {
    let run = Run {
        model: sage(&data).with_layers(layers),
        config: TrainConfig::new().with_epochs(3),
        device,
        scratch,
        data,
    };
    let trainer = run.trainer().with_checkpoint(run.dir()).unwrap();
    trainer.run(&run.device, &mut quiet).unwrap();
    run
}

impl Run {
    fn dir(&self) -> CheckpointDir {
        CheckpointDir::new(&self.scratch.0)
    }

    fn trainer(&self) -> Trainer<'_, MaxKModelConfig> {
        Trainer::new(&self.config, &self.model, &self.data).unwrap()
    }

    fn file(&self, kind: &str) -> PathBuf {
        let mut names = names(&self.scratch.0).into_iter();
        let name = names.rfind(|name| name.starts_with(kind));
        self.scratch.0.join(name.unwrap())
    }

    fn errors(&self) -> [String; 2] {
        let resumed = self.trainer().resume(self.dir());
        let resumed = resumed.and_then(|trainer| trainer.run(&self.device, &mut quiet));
        let best = self.dir().best_model::<MaxKModelConfig>(&self.device);
        let errors = [resumed.map(drop), best.map(drop)];
        errors.map(|done| {
            let error = done.err().map_or_else(String::new, |error| error.to_string());
            assert!(!error.contains('\n'), "{error}");
            error
        })
    }

    fn refuses(&self, word: &str) {
        let before = contents(&self.scratch.0);
        let errors = self.errors();
        let refused = errors.iter().any(|error| error.contains(word));
        assert!(refused, "{word}: {errors:?}");
        assert_eq!(contents(&self.scratch.0), before, "{word}");
    }

    fn forge(&self, change: impl FnOnce(String) -> String) {
        let path = self.scratch.0.join("manifest.json");
        let text = fs::read_to_string(&path).unwrap();
        let (_, run) = text.split_once("\n\"run\":").unwrap();
        let run = change(run.strip_suffix("}\n").unwrap().to_string());
        let head = format!(
            "{{\"format\":\"sparsek checkpoint\",\"version\":1,\"sha256\":\"{}\",\n\"run\":",
            sha256(run.as_bytes())
        );
        fs::write(path, format!("{head}{run}}}\n")).unwrap();
    }

    fn exchange(&self, kind: &str, bytes: &[u8]) {
        let path = self.file(kind);
        let before = fs::read(&path).unwrap();
        fs::write(&path, bytes).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let entry = |bytes: &[u8]| {
            let (length, sum) = (bytes.len(), sha256(bytes));
            format!("\"name\":\"{name}\",\"bytes\":{length},\"sha256\":\"{sum}\"")
        };
        self.forge(|run| {
            assert!(run.contains(&entry(&before)), "{run}");
            run.replace(&entry(&before), &entry(bytes))
        });
    }

    fn take(&self, kind: &str, other: &Run) {
        self.exchange(kind, &fs::read(other.file(kind)).unwrap());
    }

    fn restore(&self, files: &BTreeMap<String, Vec<u8>>) {
        for (name, bytes) in files {
            fs::write(self.scratch.0.join(name), bytes).unwrap();
        }
    }
}

fn names(path: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(path).unwrap();
    let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<String> = entries.map(|e| name(e).into_string().unwrap()).collect();
    names.sort();
    names
}

fn contents(path: &std::path::Path) -> BTreeMap<String, Vec<u8>> {
    let read = |name: String| (name.clone(), fs::read(path.join(name)).unwrap());
    names(path).into_iter().map(read).collect()
}

#[rstest]
fn a_checkpoint_is_four_files_and_a_lock(_alone: Alone, run: Run) {
    let names = names(&run.scratch.0);
    assert_eq!(names.len(), 5, "{names:?}");
    assert_eq!(names[0], ".lock");
    assert!(names[1].starts_with("best-"), "{names:?}");
    assert_eq!(names[2..], ["last-3.bpk", "manifest.json", "optimizer-3.bpk"]);
    let error = run.trainer().with_checkpoint(run.dir()).unwrap_err();
    assert!(error.to_string().contains("saved here already"), "{error}");
}

#[rstest]
fn damaged_files_are_named_and_stay_as_they_are(
    _alone: Alone,
    run: Run,
    #[values("best", "last", "optimizer", "manifest")] kind: &str,
) {
    let path = run.file(kind);
    let bytes = fs::read(&path).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap().to_string();
    for len in [0, 1, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&path, &bytes[..len]).unwrap();
        run.refuses(&name);
    }
    fs::write(&path, [&bytes[..], b"x"].concat()).unwrap();
    run.refuses(&name);
    for at in [10, bytes.len() / 2, bytes.len() - 9] {
        let mut other = bytes.clone();
        other[at..at + 8].iter_mut().for_each(|byte| *byte ^= 0x55);
        fs::write(&path, other).unwrap();
        run.refuses(&name);
    }
    fs::remove_file(&path).unwrap();
    run.refuses(&name);
    fs::create_dir(&path).unwrap();
    let error = run.errors().concat();
    assert!(error.contains("a folder"), "{error}");
    fs::remove_dir(&path).unwrap();
    fs::write(&path, bytes).unwrap();
    assert_eq!(run.errors(), ["", ""]);
}

#[rstest]
fn files_of_another_run_are_refused(
    _alone: Alone,
    run: Run,
    #[from(run)]
    #[with(3)]
    wider: Run,
    #[values("best", "optimizer", "last")] kind: &str,
) {
    let own = contents(&run.scratch.0);
    fs::write(run.file(kind), fs::read(wider.file(kind)).unwrap()).unwrap();
    run.refuses(kind);
    let path = run.file(kind);
    fs::write(&path, &own[path.file_name().unwrap().to_str().unwrap()]).unwrap();
    run.take(kind, &wider);
    run.refuses(kind);
    run.restore(&own);
    assert_eq!(run.errors(), ["", ""]);
}

#[rstest]
fn optimizer_state_belongs_to_parameter_ids(_alone: Alone, run: Run, #[from(run)] same: Run) {
    let own = contents(&run.scratch.0);
    run.take("optimizer", &same);
    run.refuses("belongs to no parameter");
    run.restore(&own);
    assert_eq!(run.errors(), ["", ""]);
}

#[rstest]
#[case("__rank", "__rang")]
#[case("moment_1", "moment_3")]
#[case("time", "tame")]
fn optimizer_state_with_other_names_is_refused(
    _alone: Alone,
    run: Run,
    #[case] from: &str,
    #[case] to: &str,
) {
    let own = contents(&run.scratch.0);
    let mut bytes = fs::read(run.file("optimizer")).unwrap();
    let at = bytes.windows(from.len()).position(|w| w == from.as_bytes());
    let at = at.unwrap();
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    run.exchange("optimizer", &bytes);
    run.refuses("optimizer-3.bpk");
    run.restore(&own);
    assert_eq!(run.errors(), ["", ""]);
}

fn forged(run: &Run, from: &str, to: &str, word: &str) {
    let own = fs::read_to_string(run.scratch.0.join("manifest.json")).unwrap();
    assert!(own.contains(from));
    run.forge(|text| text.replace(from, to));
    run.refuses(word);
}

#[rstest]
#[case::parent("last-3.bpk", "../last-3.bpk", "manifest.json")]
#[case::absolute("last-3.bpk", "/etc/passwd", "manifest.json")]
#[case::epoch("\"epoch\":2", "\"epoch\":7", "counted from 1")]
#[case::field("\"history\":", "\"histories\":", "manifest.json")]
#[case::epochs("\"epochs\":3", "\"epochs\":0", "epochs")]
#[case::batches(
    "\"batches\":\"Full\"",
    "\"batches\":{\"Parts\":{\"parts\":0,\"together\":0,\"clustered\":false}}",
    "manifest.json"
)]
#[case::width("\"d_hidden\":16", "\"d_hidden\":2", "width")]
#[case::id("\"id\":\"", "\"id\":\"\\u001b[2J", "16 hexadecimal")]
fn forged_manifests_are_refused(
    _alone: Alone,
    run: Run,
    #[case] from: &str,
    #[case] to: &str,
    #[case] word: &str,
) {
    forged(&run, from, to, word);
}

#[rstest]
fn manifests_that_name_another_file_are_refused(_alone: Alone, run: Run) {
    let best = run.file("best");
    let best = best.file_name().unwrap().to_str().unwrap();
    forged(&run, best, "best-9.bpk", "best-9.bpk");
}

#[rstest]
#[case::version("\"version\":1", "\"version\":2", "version 2")]
#[case::format("sparsek checkpoint", "another checkpoint", "not a checkpoint")]
#[case::json("{", "", "not a checkpoint")]
#[case::checksum("\n", "\n\n", "checksum")]
fn edited_manifests_are_refused(
    _alone: Alone,
    run: Run,
    #[case] from: &str,
    #[case] to: &str,
    #[case] word: &str,
) {
    let path = run.scratch.0.join("manifest.json");
    let own = fs::read_to_string(&path).unwrap();
    fs::write(&path, own.replacen(from, to, 1)).unwrap();
    run.refuses(word);
}

#[rstest]
fn folders_without_a_manifest_are_refused(_alone: Alone, run: Run) {
    let path = run.scratch.0.join("manifest.json");
    fs::write(&path, "[".repeat(100_000)).unwrap();
    run.refuses("not a checkpoint");
    fs::remove_file(&path).unwrap();
    run.refuses("no run is saved");
    let error = run.trainer().with_checkpoint(run.dir()).unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
    for name in ["model.json", "train.json", "state.json"] {
        fs::write(run.scratch.0.join(name), "{}").unwrap();
    }
    run.refuses("older version");
}

fn resume(run: &Run, data: &NodeDataset, preparation: Preparation) -> Result<(), String> {
    let trainer = Trainer::new(&run.config, &run.model, data).unwrap();
    let resumed = trainer.with_preparation(preparation).resume(run.dir());
    resumed.map(drop).map_err(|error| error.to_string())
}

fn looped(data: &NodeDataset) -> NodeDataset {
    data.clone().with_graph(data.graph().with_self_loops())
}

#[rstest]
#[case::preparation(
    NodeDataset::clone,
    Preparation::from([("features".to_string(), "raw".to_string())]),
    "features was not set and is raw"
)]
#[case::features(
    |data: &NodeDataset| data.clone().with_standardized_features(),
    Preparation::new(),
    "the features of"
)]
#[case::graph(looped, Preparation::new(), "the graph of")]
fn other_data_is_refused(
    _alone: Alone,
    run: Run,
    #[case] change: fn(&NodeDataset) -> NodeDataset,
    #[case] preparation: Preparation,
    #[case] words: &str,
) {
    let error = resume(&run, &change(&run.data), preparation).unwrap_err();
    assert!(error.contains(words), "{error}");
}

#[rstest]
fn a_run_is_resumed_on_its_own_data_and_model(_alone: Alone, run: Run) {
    let data = &run.data;
    resume(&run, data, Preparation::new()).unwrap();
    let saved = run.dir().open::<MaxKModelConfig>().unwrap();
    saved.check_dataset(data, &Preparation::new()).unwrap();
    saved.check_dataset(&looped(data), &Preparation::new()).unwrap_err();
    let wider = run.model.clone().with_layers(3);
    let trainer = Trainer::new(&run.config, &wider, data).unwrap();
    drop(saved);
    let error = trainer.resume(run.dir()).unwrap_err().to_string();
    assert!(error.contains("another model"), "{error}");
}

#[rstest]
fn a_directory_has_one_trainer_or_several_readers(_alone: Alone, run: Run) {
    let open = || run.dir().open::<MaxKModelConfig>();
    let (first, second) = (open().unwrap(), open().unwrap());
    let error = run.trainer().resume(run.dir()).unwrap_err().to_string();
    assert!(error.contains("another process"), "{error}");
    drop((first, second));
    let resumed = run.trainer().resume(run.dir()).unwrap();
    let error = open().unwrap_err().to_string();
    assert!(error.contains("another process"), "{error}");
    assert!(run.trainer().resume(run.dir()).is_err());
    drop(resumed);
    open().unwrap();
}

#[rstest]
fn a_run_killed_while_it_saves_resumes_from_the_state_before(
    _alone: Alone,
    device: Device,
    #[from(karate_club)] data: NodeDataset,
    scratch: Scratch,
    #[values(3, 14)] killed: usize,
) {
    let (model, config) = (sage(&data), TrainConfig::new().with_epochs(18).with_save_every(5));
    let whole = train(&config, &model, &data, &device, &mut quiet).unwrap();
    let checkpoint = CheckpointDir::new(&scratch.0);
    let trainer = || Trainer::new(&config, &model, &data).unwrap();
    let first = trainer().with_checkpoint(checkpoint.clone()).unwrap();
    let id = first.id().clone();
    let first = first.run(&device, &mut |report: &EpochReport| match report.epoch == killed {
        true => Err(io::Error::other("killed")),
        false => Ok(()),
    });
    assert!(matches!(first, Err(TrainError::Progress(_))));
    for left in ["last-15.bpk", ".optimizer-15.bpk.part", ".manifest.json.part"] {
        fs::write(scratch.0.join(left), "half a file").unwrap();
    }
    let resumed = trainer().resume(checkpoint).unwrap();
    assert_eq!(resumed.id(), &id);
    let rest = resumed.run(&device, &mut quiet).unwrap();
    let done = killed / 5 * 5;
    assert_eq!(rest.earlier.len(), done);
    assert_eq!(curves(&rest), curves(&whole)[done..]);
    assert_eq!((rest.best.epoch, rest.best.test), (whole.best.epoch, whole.best.test));
    assert_eq!(names(&scratch.0).len(), 5, "{:?}", names(&scratch.0));
}

#[rstest]
fn a_run_that_is_stopped_is_saved_and_goes_on(
    _alone: Alone,
    device: Device,
    #[from(karate_club)] data: NodeDataset,
    scratch: Scratch,
) {
    struct Stop(usize);

    impl Progress for Stop {
        fn on_epoch(&mut self, report: &EpochReport) -> io::Result<()> {
            self.0 = report.epoch;
            Ok(())
        }

        fn stop(&self) -> bool {
            self.0.is_multiple_of(4)
        }
    }

    let (model, config) = (sage(&data), TrainConfig::new().with_epochs(8));
    let whole = train(&config, &model, &data, &device, &mut quiet).unwrap();
    assert!(!whole.interrupted);
    let trainer = || Trainer::new(&config, &model, &data).unwrap();
    let first = trainer().with_checkpoint(CheckpointDir::new(&scratch.0));
    let first = first.unwrap().run(&device, &mut Stop(0)).unwrap();
    assert!(first.interrupted && first.epochs == 4);
    let rest = trainer().resume(CheckpointDir::new(&scratch.0)).unwrap();
    let rest = rest.run(&device, &mut Stop(0)).unwrap();
    assert!(!rest.interrupted && rest.epochs == 8);
    assert_eq!([curves(&first), curves(&rest)].concat(), curves(&whole));
    let all = [first.history, rest.history.clone()].concat();
    assert_eq!([rest.earlier, rest.history].concat(), all);
}

#[cfg(unix)]
#[rstest]
fn a_folder_that_cannot_be_written_to_can_be_read(_alone: Alone, run: Run) {
    use std::os::unix::fs::PermissionsExt;

    fs::remove_file(run.scratch.0.join(".lock")).unwrap();
    let set = |mode| fs::set_permissions(&run.scratch.0, fs::Permissions::from_mode(mode));
    set(0o555).unwrap();
    let read = run.dir().best_model::<MaxKModelConfig>(&run.device);
    set(0o755).unwrap();
    read.unwrap();
}
