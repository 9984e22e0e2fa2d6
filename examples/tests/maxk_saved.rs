//! Saved and interrupted runs of `maxk`.
#![cfg(feature = "flex")]

#[allow(dead_code, reason = "shared with the tests of other programs")]
mod folder;

use std::{
    fs::{self, File},
    path::Path,
    process::{Command, Stdio},
};

use folder::Folder;
use npyz::{AutoSerialize, WriteOptions, WriterBuilder};
use sparsek_examples::npz::Writer;

const SMALL: &str = "--backend flex --hidden 8 --layers 2 --k 4";

fn folder(name: &str) -> Folder {
    Folder::new(env!("CARGO_BIN_EXE_maxk"), name)
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

#[test]
fn a_saved_run_keeps_the_way_its_data_was_prepared() {
    let folder = folder("prepared");
    let train = format!("train {SMALL} --format karate --epochs 4 --checkpoint run");
    folder.runs(&format!(
        "{train} --features rows --self-loops --log run.jsonl"
    ));
    let log = fs::read_to_string(folder.path.join("run.jsonl")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    let test = format!("{:.4}", summary["test"].as_f64().unwrap());
    let eval = "eval --checkpoint run --backend flex";
    assert_eq!(test_of(&folder.runs(eval)), test);
    let same = "--format karate --features rows --self-loops";
    assert_eq!(test_of(&folder.runs(&format!("{eval} {same}"))), test);
    for (options, word) in [
        ("--features raw", "--features raw contradicts"),
        ("--format sbm", "--format sbm contradicts"),
        ("--nodes 9", "--nodes 9 contradicts"),
    ] {
        refuses(&folder, &format!("{eval} {options}"), word);
        refuses(
            &folder,
            &format!("{train} --resume {options}").replace("--format karate --", "--"),
            word,
        );
    }
    folder.runs(&format!("{eval} --other-data --features raw"));
    // Omitted options are the saved ones.
    folder.runs(&format!("{train} --resume").replace("--epochs 4", "--epochs 6"));

    let plain = "train --backend flex --format karate --hidden 8 --layers 2 --k 4 --epochs 2";
    folder.runs(&format!("{plain} --checkpoint plain"));
    refuses(
        &folder,
        "eval --checkpoint plain --backend flex --self-loops",
        "--self-loops",
    );
    refuses(
        &folder,
        &format!("{plain} --checkpoint plain --resume --self-loops"),
        "--self-loops",
    );
}

#[test]
fn other_data_of_the_same_shape_is_refused() {
    let folder = folder("other");
    let train = format!("train {SMALL} --format sbm --nodes 300 --epochs 2 --checkpoint run");
    folder.runs(&format!("{train} --data-seed 1"));
    let other = "eval --checkpoint run --backend flex --data-seed 2";
    refuses(&folder, other, "--data-seed 2 contradicts");
    folder.runs(&format!("{other} --other-data"));
    folder.runs("eval --checkpoint run --backend flex");
    refuses(
        &folder,
        &format!("{train} --resume --data-seed 2"),
        "contradicts",
    );
    refuses(
        &folder,
        &format!("{train} --data-seed 1"),
        "saved here already",
    );
}

#[test]
fn foreign_files_stay_and_logs_keep_other_runs() {
    let folder = folder("foreign");
    let train = format!("train {SMALL} --format karate --checkpoint run");
    folder.runs(&format!("{train} --epochs 2"));
    let notes = folder.path.join("notes.txt");
    fs::write(&notes, "my notes\n").unwrap();
    refuses(
        &folder,
        &format!("{train} --epochs 3 --resume --log notes.txt"),
        "line 1",
    );
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

#[test]
fn what_cannot_be_written_is_found_first() {
    let folder = folder("first");
    let train =
        format!("train {SMALL} --format karate --epochs 2 --log run.jsonl --checkpoint run");
    for plot in ["none/run.svg", ".", "run.jsonl"] {
        refuses(&folder, &format!("{train} --plot {plot}"), plot);
    }
    #[cfg(target_os = "linux")]
    refuses(
        &folder,
        &format!("{train} --plot /proc/run.svg"),
        "/proc/run.svg",
    );
    for left in ["run.jsonl", "run", "run.svg"] {
        assert!(!folder.path.join(left).exists(), "{left}");
    }
    #[cfg(target_os = "linux")]
    {
        let full = format!("train {SMALL} --format karate --epochs 2 --log /dev/full");
        let output = folder.run(&full);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        let last = message.lines().last().unwrap();
        assert!(
            last.contains("/dev/full") && last.contains("space"),
            "{last}"
        );
    }
}

#[test]
fn a_closed_pipe_loses_nothing() {
    let folder = folder("pipe");
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
    let mut array = options
        .writer(File::create(file).unwrap())
        .begin_nd()
        .unwrap();
    array.extend(elements).unwrap();
    array.finish().unwrap();
}

#[test]
fn what_was_left_out_of_a_dataset_is_said_once() {
    let folder = folder("zeros");
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

#[cfg(unix)]
#[test]
fn an_interruption_saves_the_run_and_says_how_to_go_on() {
    use std::{thread::sleep, time::Duration};

    let folder = folder("interrupt");
    // Starts a run, and signals once its log has lines.
    let interrupt = |line: &str, signal: &str| {
        let log = folder.path.join("run.jsonl");
        let _ = fs::remove_file(&log);
        let child = Command::new(env!("CARGO_BIN_EXE_maxk"))
            .args(line.split_whitespace())
            .current_dir(&folder.path)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while fs::read_to_string(&log).map_or(0, |text| text.lines().count()) < 2 {
            sleep(Duration::from_millis(5));
        }
        let id = child.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(sent.success());
        child.wait_with_output().unwrap()
    };
    let train = format!("train {SMALL} --format sbm --nodes 2000 --epochs 100000 --log run.jsonl");
    for (signal, path) in [("-INT", "int"), ("-TERM", "term")] {
        let saved = format!("{train} --checkpoint {path} --plot {path}.svg");
        let output = interrupt(&saved, signal);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{message}");
        let last = message.lines().last().unwrap();
        assert!(last.contains(path) && last.ends_with("--resume"), "{last}");
        assert!(!folder.path.join(format!("{path}.svg")).exists());
        let log = fs::read_to_string(folder.path.join("run.jsonl")).unwrap();
        let done = log.lines().count();
        assert!(!log.contains("summary"));
        let rest = saved.replace("100000", &(done + 2).to_string());
        folder.runs(&format!("{rest} --resume"));
        let log = fs::read_to_string(folder.path.join("run.jsonl")).unwrap();
        assert_eq!(log.lines().count(), done + 3, "{log}");
    }
    let output = interrupt(&train, "-INT");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{message}");
    assert!(message.contains("nothing was saved"), "{message}");
}
