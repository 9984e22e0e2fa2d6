//! Saved and interrupted runs of `maxk`.
#![cfg(feature = "flex")]

#[allow(dead_code, reason = "shared with the tests of other programs")]
mod common;

use std::{
    fs::{self, File},
    path::Path,
    process::{Command, Stdio},
};

use common::Folder;
use npyz::{AutoSerialize, WriteOptions, WriterBuilder};
use rstest::{fixture, rstest};
use sparsek_examples::npz::Writer;

const SMALL: &str = "--backend flex --hidden 8 --layers 2 --k 4";

#[fixture]
fn folder() -> Folder {
    Folder::new(env!("CARGO_BIN_EXE_maxk"))
}

/// Expects one line with this word and exit status 2.
fn refuses(folder: &Folder, arguments: &str, word: &str) {
    let output = folder.run(arguments);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments}: {message}");
    assert_eq!(message.trim_end().lines().count(), 1, "{message}");
    assert!(message.contains(word), "{arguments}: {message}");
}

/// The last number after `test`.
fn test_of(output: &str) -> &str {
    let words: Vec<&str> = output.split_whitespace().collect();
    let at = words.iter().rposition(|&word| word == "test").unwrap();
    words[at + 1]
}

const PREPARED: &str = "train --backend flex --hidden 8 --layers 2 --k 4 --format karate \
     --epochs 4 --checkpoint run";
const EVAL: &str = "eval --checkpoint run --backend flex";

/// Has a run on prepared data.
#[fixture]
fn prepared(folder: Folder) -> Folder {
    folder.runs(&format!("{PREPARED} --features rows --self-loops --log run.jsonl"));
    folder
}

#[rstest]
fn a_saved_run_keeps_the_way_its_data_was_prepared(#[from(prepared)] folder: Folder) {
    let log = fs::read_to_string(folder.path.join("run.jsonl")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    let test = format!("{:.4}", summary["test"].as_f64().unwrap());
    assert_eq!(test_of(&folder.runs(EVAL)), test);
    let same = "--format karate --features rows --self-loops";
    assert_eq!(test_of(&folder.runs(&format!("{EVAL} {same}"))), test);
    folder.runs(&format!("{EVAL} --other-data --features raw"));
    // Omitted options are the saved ones.
    folder.runs(&format!("{PREPARED} --resume").replace("--epochs 4", "--epochs 6"));
}

#[rstest]
fn eval_draws_embedding_confusion_and_degrees(#[from(prepared)] folder: Folder) {
    folder.runs(&format!("{EVAL} --plot look.svg"));
    let svg = fs::read_to_string(folder.path.join("look.svg")).unwrap();
    for caption in ["embedding, colored by class", "class and prediction", "accuracy by degree"] {
        assert!(svg.contains(caption), "{caption}");
    }
    // The karate club has 34 nodes; the degrees of its test nodes have points too.
    assert!(svg.matches("<circle").count() > 34, "{svg}");
    refuses(&folder, &format!("{EVAL} --plot run/manifest.json"), "manifest.json");
}

#[rstest]
#[case::features("--features raw", "--features raw contradicts")]
#[case::format("--format sbm", "--format sbm contradicts")]
#[case::nodes("--nodes 9", "--nodes 9 contradicts")]
fn other_options_are_refused(
    #[from(prepared)] folder: Folder,
    #[case] options: &str,
    #[case] word: &str,
) {
    refuses(&folder, &format!("{EVAL} {options}"), word);
    refuses(
        &folder,
        &format!("{PREPARED} --resume {options}").replace("--format karate --", "--"),
        word,
    );
}

#[rstest]
fn options_of_a_plain_run_are_refused(folder: Folder) {
    let plain = "train --backend flex --format karate --hidden 8 --layers 2 --k 4 --epochs 2";
    folder.runs(&format!("{plain} --checkpoint plain"));
    refuses(&folder, "eval --checkpoint plain --backend flex --self-loops", "--self-loops");
    refuses(&folder, &format!("{plain} --checkpoint plain --resume --self-loops"), "--self-loops");
}

#[rstest]
#[case("--structure plain --model gcn", "convs.1.lin.weight")]
#[case("--k 4", "blocks.1.conv.lin_l.weight")]
fn exports_have_the_names_of_pyg(folder: Folder, #[case] options: &str, #[case] name: &str) {
    let train = "train --backend flex --format karate --hidden 8 --layers 2 --epochs 2";
    folder.runs(&format!("{train} --checkpoint run {options}"));
    refuses(&folder, "export model.pt --checkpoint run --backend flex", ".safetensors");
    refuses(&folder, "export model.safetensors --checkpoint none --backend flex", "none");
    assert_eq!(folder.names(), ["run"]);
    folder.runs("export model.safetensors --checkpoint run --backend flex");
    let bytes = fs::read(folder.path.join("model.safetensors")).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains(&format!("\"{name}\"")), "{text}");
}

#[rstest]
fn other_data_of_the_same_shape_is_refused(folder: Folder) {
    let train = format!("train {SMALL} --format sbm --nodes 300 --epochs 2 --checkpoint run");
    folder.runs(&format!("{train} --data-seed 1"));
    let other = "eval --checkpoint run --backend flex --data-seed 2";
    refuses(&folder, other, "--data-seed 2 contradicts");
    folder.runs(&format!("{other} --other-data"));
    folder.runs("eval --checkpoint run --backend flex");
    refuses(&folder, &format!("{train} --resume --data-seed 2"), "contradicts");
    refuses(&folder, &format!("{train} --data-seed 1"), "saved here already");
}

#[rstest]
fn foreign_files_stay_and_logs_keep_other_runs(folder: Folder) {
    let train = format!("train {SMALL} --format karate --checkpoint run");
    folder.runs(&format!("{train} --epochs 2"));
    let notes = folder.path.join("notes.txt");
    fs::write(&notes, "my notes\n").unwrap();
    refuses(&folder, &format!("{train} --epochs 3 --resume --log notes.txt"), "line 1");
    assert_eq!(fs::read_to_string(&notes).unwrap(), "my notes\n");

    let compare = format!(
        "compare {SMALL} --format karate --models sage --early 2 --seeds 1 --epochs 2 \
         --log all.jsonl"
    );
    folder.runs(&compare);
    let before = fs::read_to_string(folder.path.join("all.jsonl")).unwrap();
    folder.runs(&format!("{train} --epochs 4 --resume --log all.jsonl"));
    let after = fs::read_to_string(folder.path.join("all.jsonl")).unwrap();
    assert!(after.starts_with(&before));
    assert_eq!(after.lines().count(), before.lines().count() + 5);
    folder.runs(&compare);

    let manifest = "train --backend flex --format karate --checkpoint run --log run/manifest.json";
    refuses(&folder, manifest, "manifest.json");
}

#[rstest]
#[case::no_folder("none/run.svg")]
#[case::folder(".")]
#[case::log("run.jsonl")]
#[cfg_attr(target_os = "linux", case::proc("/proc/run.svg"))]
fn what_cannot_be_written_is_found_first(folder: Folder, #[case] plot: &str) {
    let train =
        format!("train {SMALL} --format karate --epochs 2 --log run.jsonl --checkpoint run");
    refuses(&folder, &format!("{train} --plot {plot}"), plot);
    for left in ["run.jsonl", "run", "run.svg"] {
        assert!(!folder.path.join(left).exists(), "{left}");
    }
}

#[cfg(target_os = "linux")]
#[rstest]
fn a_full_disk_is_named(folder: Folder) {
    let full = format!("train {SMALL} --format karate --epochs 2 --log /dev/full");
    let output = folder.run(&full);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    let last = message.lines().last().unwrap();
    assert!(last.contains("/dev/full") && last.contains("space"), "{last}");
}

#[rstest]
fn a_closed_pipe_loses_nothing(folder: Folder) {
    let line = format!(
        "train {SMALL} --format karate --epochs 3 --log run.jsonl --plot run.svg --checkpoint run"
    );
    let mut child = Command::new(env!("CARGO_BIN_EXE_maxk"))
        .args(line.split_whitespace())
        .current_dir(&folder.path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    assert!(child.wait().unwrap().success());
    let log = fs::read_to_string(folder.path.join("run.jsonl")).unwrap();
    assert_eq!(log.lines().count(), 4);
    let plot = fs::read_to_string(folder.path.join("run.svg")).unwrap();
    assert!(plot.trim_end().ends_with("</svg>"));
}

/// A ring of 40 nodes with 40 stored zeros.
fn ring(folder: &Folder) {
    let (graph, nodes) = (folder.path.join("ring"), 40);
    fs::create_dir(&graph).unwrap();
    let around = |node: i64| [1, 2, nodes - 1].map(|step| (node + step) % nodes);
    let indices: Vec<i64> = (0..nodes).flat_map(around).collect();
    let indptr: Vec<i64> = (0..=nodes).map(|node| 3 * node).collect();
    let data = [1.0f32, 0.0, 1.0].repeat(nodes as usize);
    let mut npz = Writer::new(File::create(graph.join("graph.npz")).unwrap()).unwrap();
    npz.array("indptr", &[indptr.len()], &indptr).unwrap();
    npz.array("indices", &[indices.len()], &indices).unwrap();
    npz.array("data", &[data.len()], &data).unwrap();
    npz.array("shape", &[2], &[nodes, nodes]).unwrap();
    npz.finish().unwrap();
    let halves = (0..nodes).map(|node| node * 2 / nodes);
    array(&graph.join("labels.npy"), &[40], halves.clone());
    let features = halves.flat_map(|half| [half as f32, 1.0 - half as f32]);
    array(&graph.join("features.npy"), &[40, 2], features);
}

fn array<T: AutoSerialize>(file: &Path, shape: &[u64], elements: impl Iterator<Item = T>) {
    let options = WriteOptions::new().default_dtype().shape(shape);
    let mut array = options.writer(File::create(file).unwrap()).begin_nd().unwrap();
    array.extend(elements).unwrap();
    array.finish().unwrap();
}

#[rstest]
fn what_was_left_out_of_a_dataset_is_said_once(folder: Folder) {
    ring(&folder);
    let line = "graph.npz: 40 stored zeros skipped, since they are not edges";
    for command in [
        "train --hidden 8 --layers 2 --k 4 --epochs 2 --format csr --checkpoint run",
        "train --hidden 8 --layers 2 --k 4 --epochs 3 --format csr --checkpoint run --resume",
        "eval --checkpoint run",
        "compare --hidden 8 --layers 2 --k 4 --epochs 2 --format csr --models sage,gcn \
         --early 2 --seeds 2 --log runs.jsonl",
    ] {
        let output = folder.run(&format!("{command} --data ring --backend flex"));
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {message}");
        let said = message.lines().filter(|&found| found == line).count();
        assert_eq!(said, 1, "{command}: {message}");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(printed.contains("40 nodes, 80 edges"), "{printed}");
    }
}

/// Starts a run, and signals once its log has lines.
#[cfg(unix)]
fn interrupt(folder: &Folder, line: &str, signal: &str) -> std::process::Output {
    use std::{thread::sleep, time::Duration};

    let child = Command::new(env!("CARGO_BIN_EXE_maxk"))
        .args(line.split_whitespace())
        .current_dir(&folder.path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = folder.path.join("run.jsonl");
    while fs::read_to_string(&log).map_or(0, |text| text.lines().count()) < 2 {
        sleep(Duration::from_millis(5));
    }
    let id = child.id().to_string();
    let sent = Command::new("kill").args([signal, &id]).status().unwrap();
    assert!(sent.success());
    child.wait_with_output().unwrap()
}

#[cfg(unix)]
const ENDLESS: &str = "train --backend flex --hidden 8 --layers 2 --k 4 --format sbm --nodes 2000 \
     --epochs 100000 --log run.jsonl";

#[cfg(unix)]
#[rstest]
fn an_interruption_saves_the_run_and_says_how_to_go_on(
    folder: Folder,
    #[values("-INT", "-TERM")] signal: &str,
) {
    let saved = format!("{ENDLESS} --checkpoint halted --plot run.svg");
    let output = interrupt(&folder, &saved, signal);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{message}");
    let last = message.lines().last().unwrap();
    assert!(last.contains("halted") && last.ends_with("--resume"), "{last}");
    assert!(!folder.path.join("run.svg").exists());
    let log = fs::read_to_string(folder.path.join("run.jsonl")).unwrap();
    let done = log.lines().count();
    assert!(!log.contains("summary"));
    let rest = saved.replace("100000", &(done + 2).to_string());
    folder.runs(&format!("{rest} --resume"));
    let log = fs::read_to_string(folder.path.join("run.jsonl")).unwrap();
    assert_eq!(log.lines().count(), done + 3, "{log}");
}

#[cfg(unix)]
#[rstest]
fn an_interruption_without_a_checkpoint_saves_nothing(folder: Folder) {
    let output = interrupt(&folder, ENDLESS, "-INT");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{message}");
    assert!(message.contains("nothing was saved"), "{message}");
}
