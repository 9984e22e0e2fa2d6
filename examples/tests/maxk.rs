//! The program `maxk`, as a user runs it.
#![cfg(feature = "flex")]

#[allow(dead_code, reason = "shared with the tests of other programs")]
mod common;

use std::fs;

use common::Folder;
use npyz::{WriterBuilder, npz::NpzWriter};
use rstest::{fixture, rstest};
use serde_json::Value;

const SMALL: &str = "--format karate --backend flex --hidden 8 --layers 2 --k 4";

#[fixture]
fn folder() -> Folder {
    Folder::new(env!("CARGO_BIN_EXE_maxk"))
}

/// Complete log lines without times and run ids.
fn log(folder: &Folder, file: &str) -> Vec<Value> {
    let text = fs::read_to_string(folder.path.join(file)).unwrap();
    let lines = text.lines().filter_map(|line| {
        let mut line: Value = match serde_json::from_str(line) {
            Err(error) if error.is_eof() => return None,
            line => line.unwrap(),
        };
        let fields = line.as_object_mut().unwrap();
        for field in ["run", "ms", "ms_per_epoch", "seconds"] {
            fields.remove(field);
        }
        Some(line)
    });
    lines.collect()
}

/// Expects one line with this word and exit status 2.
fn refuses(folder: &Folder, arguments: &str, word: &str) {
    let output = folder.run(arguments);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments}: {message}");
    assert_eq!(message.trim_end().lines().count(), 1, "{message}");
    assert!(message.contains(word), "{arguments}: {message}");
}

#[rstest]
fn a_run_that_is_resumed_reaches_the_figures_of_a_whole_one(
    folder: Folder,
    #[values(
        "--model sage",
        "--model sage --capture",
        "--model gcn",
        "--model gin",
        "--structure plain --model gcn --activation maxk",
        "--structure plain --model gat --activation maxk --heads 2"
    )]
    model: &str,
) {
    let train = format!("train {SMALL} {model} --seed 3");
    folder.runs(&format!("{train} --epochs 12 --log whole.jsonl --plot whole.svg"));
    let saved = format!("{train} --checkpoint run --log run.jsonl");
    folder.runs(&format!("{saved} --epochs 7"));
    // A line cut short by a kill.
    let file = folder.path.join("run.jsonl");
    let mut text = fs::read_to_string(&file).unwrap();
    text.push_str("{\"run\":\"0123456789abcdef\",\"activation\":\"maxk");
    fs::write(&file, &text).unwrap();
    let resume = format!("{saved} --epochs 12 --resume --plot run.svg");
    folder.runs(&resume);
    let after = fs::read_to_string(&file).unwrap();
    assert!(after.starts_with(&text));
    let (whole, mut parts) = (log(&folder, "whole.jsonl"), log(&folder, "run.jsonl"));
    parts.remove(7);
    assert_eq!(parts, whole);
    let plot = |name: &str| fs::read(folder.path.join(name)).unwrap();
    assert_eq!(plot("run.svg"), plot("whole.svg"));
    // A finished run logs nothing twice; a new log gets everything.
    folder.runs(&resume);
    assert_eq!(fs::read_to_string(&file).unwrap(), after);
    folder.runs(&resume.replace("run.jsonl", "other.jsonl"));
    assert_eq!(log(&folder, "other.jsonl"), whole);
    let eval = folder.runs("eval --checkpoint run --backend flex");
    let test = format!("test {:.4}", whole[12]["test"].as_f64().unwrap());
    assert!(eval.contains(&test), "{eval} {test}");
}

#[rstest]
fn a_comparison_is_a_table_and_a_figure_and_is_not_repeated(folder: Folder) {
    let compare = format!(
        "compare {SMALL} --models sage,gin --early 2,4 --seeds 2 --epochs 3 \
         --log runs.jsonl --plot runs.svg"
    );
    let table = folder.runs(&compare);
    for row in [
        "| SAGE | test accuracy |",
        "| GIN |",
        "| relu |",
        "| maxk:4:early:2 |",
        "| maxk:4:exact |",
    ] {
        assert!(table.contains(row), "{row}: {table}");
    }
    let runs = log(&folder, "runs.jsonl");
    assert_eq!(runs.iter().filter(|line| line["summary"] == true).count(), 16);
    let figure = fs::read_to_string(folder.path.join("runs.svg")).unwrap();
    assert!(figure.contains("SAGE on karate") && figure.contains("max_iter"));

    let rows = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.starts_with('|')).map(str::to_string).collect()
    };
    assert_eq!(rows(&folder.runs(&compare)), rows(&table));
    assert_eq!(log(&folder, "runs.jsonl"), runs);
    // Other options make other runs.
    let log_of = |options: &str| {
        folder.runs(&format!(
            "compare {SMALL} --models sage --early 2 --seeds 1 --epochs 3 \
             --log other.jsonl {options}"
        ));
        let lines = log(&folder, "other.jsonl");
        lines.iter().filter(|line| line["summary"] == true).count()
    };
    for (options, runs) in [
        ("", 3),
        ("--self-loops", 6),
        ("--features rows", 9),
        ("--batches clusters --parts 4 --together 2", 12),
        ("", 12),
    ] {
        assert_eq!(log_of(options), runs, "{options}");
    }
    // Plain models.
    let plain = folder.runs(
        "compare --format karate --structure plain --models gcn,gat --k 4 --early= --seeds 2 \
         --epochs 3 --backend flex --log plain.jsonl --plot plain.svg",
    );
    for row in ["| PLAIN GCN |", "| relu |", "| PLAIN GAT |", "| elu |", "ELU / this"] {
        assert!(plain.contains(row), "{row}: {plain}");
    }
    refuses(
        &folder,
        "compare --format karate --models gat --log x",
        "means nothing without --structure plain",
    );
    refuses(
        &folder,
        "compare --format karate --structure plain --models gcn --heads 2 --log x",
        "--heads",
    );
    // Times of the same runs, and of a log that lacks some.
    let timed = format!("{compare} --times runs.jsonl");
    assert_eq!(rows(&folder.runs(&timed)), rows(&table));
    let all = fs::read_to_string(folder.path.join("runs.jsonl")).unwrap();
    let some = all.lines().filter(|line| !line.contains("\"model\":\"gin\""));
    let some: Vec<&str> = some.collect();
    fs::write(folder.path.join("some.jsonl"), some.join("\n")).unwrap();
    let timed = format!("{compare} --times some.jsonl");
    refuses(&folder, &timed, "no run of gin");
    let drawn = timed.replace("--plot runs.svg", "--plot some.jsonl");
    refuses(&folder, &drawn, "would overwrite");
    // A truncated log continues; a foreign file is refused unchanged.
    let cut = "{\"activation\":\"maxk:4:exact\",\"epoch\":";
    fs::write(folder.path.join("runs.jsonl"), format!("{all}{cut}")).unwrap();
    assert_eq!(rows(&folder.runs(&compare)), rows(&table));
    assert_eq!(log(&folder, "runs.jsonl"), runs);
    fs::write(folder.path.join("runs.jsonl"), format!("notes\n{all}")).unwrap();
    refuses(&folder, &compare, "line 1");
    let text = fs::read_to_string(folder.path.join("runs.jsonl")).unwrap();
    assert_eq!(text, format!("notes\n{all}"));
    refuses(&folder, "compare --format karate --log x --seeds 0", "0 is not in 1..");
}

fn nothing_is_left(folder: &Folder) {
    for left in ["bad.jsonl", "bad.svg", "bad"] {
        assert!(!folder.path.join(left).exists(), "{left}");
    }
}

#[rstest]
#[case("--k 9", "width 8")]
#[case("--metric roc-auc --batches clusters --parts 99", "99 parts")]
#[case("--metric micro-f1", "micro-F1")]
#[case("--preset cora", "reddit, flickr, yelp, products, proteins")]
#[case("--dropout 1", "dropout")]
#[case("--topk early:x", "early:ITERATIONS")]
#[case("--resume", "no run is saved")]
fn mistakes_are_one_line_and_leave_nothing(
    folder: Folder,
    #[case] arguments: &str,
    #[case] word: &str,
) {
    let train = format!("train {SMALL} --log bad.jsonl --plot bad.svg --checkpoint bad");
    let arguments = match arguments.strip_prefix("--k ") {
        Some(k) => train.replace("--k 4", &format!("--k {k}")),
        None => format!("{train} {arguments}"),
    };
    refuses(&folder, &arguments, word);
    nothing_is_left(&folder);
}

#[rstest]
#[case::graphsaint("--data no/such/flickr", "https://github.com/GraphSAINT")]
#[case::ogb("--format ogb --data products", "products.zip")]
#[case::csr("--format csr", "--data DIR")]
#[case::edge_list("--format edge-list --data no/such", "edges.csv")]
#[case::npz("--format npz", "--data DIR")]
fn missing_data_is_one_line_and_leaves_nothing(
    folder: Folder,
    #[case] arguments: &str,
    #[case] word: &str,
) {
    refuses(&folder, &format!("train {arguments} --log bad.jsonl"), word);
    nothing_is_left(&folder);
}

/// A ring of 120 nodes in an archive of each kind, without splits and with two.
fn save_rings(folder: &Folder) {
    let save = |name: &str, arrays: &[(&str, &[u64], Vec<i32>)]| {
        let mut npz = NpzWriter::create(folder.path.join(name)).unwrap();
        for (name, shape, values) in arrays {
            let builder = npz.array::<i32>(name, Default::default()).unwrap();
            let mut writer = builder.default_dtype().shape(shape).begin_nd().unwrap();
            writer.extend(values.iter().copied()).unwrap();
            writer.finish().unwrap();
        }
    };
    let features: Vec<i32> = (0..240).map(|at| i32::from(at % 3 == 0)).collect();
    let labels: Vec<i32> = (0..120).map(|node| node / 60).collect();
    let next: Vec<i32> = (0..120).map(|node| (node + 1) % 120).collect();
    save(
        "shchur.npz",
        &[
            ("adj_indptr", &[121], (0..121).collect()),
            ("adj_indices", &[120], next.clone()),
            ("adj_shape", &[2], vec![120, 120]),
            ("attr_matrix", &[120, 2], features.clone()),
            ("labels", &[120], labels.clone()),
        ],
    );
    let mask =
        |first: i32| (0..240).map(move |at| i32::from((at % 120 + at / 120 + first) % 3 == 0));
    save(
        "platonov.npz",
        &[
            ("edges", &[120, 2], (0..).zip(next).flat_map(|(a, b)| [a, b]).collect()),
            ("node_features", &[120, 2], features),
            ("node_labels", &[120], labels),
            ("train_masks", &[2, 120], mask(0).collect()),
            ("val_masks", &[2, 120], mask(1).collect()),
            ("test_masks", &[2, 120], mask(2).collect()),
        ],
    );
}

#[rstest]
fn archives_are_data(folder: Folder) {
    save_rings(&folder);
    let options = "--backend flex --hidden 8 --layers 2 --k 4 --epochs 2";
    let train = format!("train {options} --format npz --data");
    let losses = |arguments: &str| -> Vec<Value> {
        folder.runs(&format!("{train} {arguments} --log run.jsonl"));
        let run = log(&folder, "run.jsonl");
        fs::remove_file(folder.path.join("run.jsonl")).unwrap();
        run.into_iter().map(|line| line["loss"].clone()).collect()
    };
    let stored = losses("platonov.npz");
    assert_eq!(losses("platonov.npz --split 0"), stored);
    assert_ne!(losses("platonov.npz --split 1"), stored);
    assert_ne!(losses("platonov.npz --data-seed 1"), stored);
    let drawn = losses("shchur.npz");
    assert_eq!(losses("shchur.npz --data-seed 0"), drawn);
    assert_ne!(losses("shchur.npz --data-seed 1"), drawn);
    for (arguments, word) in [
        ("platonov.npz --split 2", "there are 2"),
        ("platonov.npz --split x", "--split x"),
        ("platonov.npz --split 0 --data-seed 1", "--data-seed"),
        ("shchur.npz --split 0", "train_masks"),
        ("missing.npz", "missing.npz"),
    ] {
        refuses(&folder, &format!("{train} {arguments} --log bad.jsonl"), word);
        nothing_is_left(&folder);
    }
    let own = format!("{train} platonov.npz --log platonov.npz");
    refuses(&folder, &own, "platonov.npz");
}

#[rstest]
fn edge_lists_are_data(folder: Folder) {
    let data = folder.path.join("ring");
    fs::create_dir(&data).unwrap();
    let text = |line: &dyn Fn(usize) -> String| (0..40).map(line).collect::<String>();
    let edges = text(&|node| format!("{node}\t{}\n", (node + 1) % 40));
    fs::write(data.join("edges.tsv"), format!("source\ttarget\n{edges}")).unwrap();
    fs::write(data.join("features.csv"), text(&|node| format!("{node},1\n"))).unwrap();
    fs::write(data.join("labels.csv"), text(&|node| format!("{}\n", node / 20))).unwrap();
    let train = "train --backend flex --hidden 8 --layers 2 --k 4 --format edge-list --data ring";
    folder.runs(&format!("{train} --epochs 2 --checkpoint run"));
    folder.runs(&format!("{train} --epochs 4 --checkpoint run --resume"));
    let other = format!("{train} --epochs 4 --checkpoint run --resume --directed");
    refuses(&folder, &other, "--directed");
    refuses(&folder, &format!("{train} --epochs 2 --log ring/labels.csv"), "labels.csv");
    fs::write(data.join("edges.tsv"), "0\t40\n").unwrap();
    refuses(&folder, &format!("{train} --log bad.jsonl"), "line 1 has node 40");
    nothing_is_left(&folder);
}

#[rstest]
fn files_of_tensors_are_data(folder: Folder) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/pyg/karate.pt");
    fs::copy(file, folder.path.join("karate.pt")).unwrap();
    let train =
        "train --backend flex --hidden 8 --layers 2 --k 4 --format tensors --data karate.pt";
    folder.runs(&format!("{train} --split 1 --epochs 2 --checkpoint run"));
    folder.runs(&format!("{train} --split 1 --epochs 4 --checkpoint run --resume"));
    let other = format!("{train} --split 0 --epochs 4 --checkpoint run --resume");
    refuses(&folder, &other, "--split");
    for (arguments, word) in [
        ("--split 2", "there are 2"),
        ("--split 0 --data-seed 1", "--data-seed"),
        ("--log karate.pt", "karate.pt"),
    ] {
        refuses(&folder, &format!("{train} {arguments}"), word);
    }
    nothing_is_left(&folder);
}

#[rstest]
fn a_preset_sets_what_is_not_given(folder: Folder) {
    let arguments = "--format karate --backend flex --preset flickr --hidden 16 --k 4 --epochs 2";
    folder.runs(&format!("train {arguments} --model gin --log run.jsonl"));
    let run = log(&folder, "run.jsonl").pop().unwrap();
    assert_eq!(
        (&run["model"], &run["layers"], &run["hidden"]),
        (&"gin".into(), &3.into(), &16.into())
    );
    assert_eq!((&run["dropout"], &run["lr"]), (&0.2.into(), &0.001.into()));
}

#[rstest]
#[case("gcn", "relu", 16, 0.5, 0.01)]
#[case("gat", "elu", 8, 0.6, 0.005)]
fn a_plain_model_has_the_settings_of_its_paper(
    folder: Folder,
    #[case] model: &str,
    #[case] activation: &str,
    #[case] hidden: u64,
    #[case] dropout: f64,
    #[case] lr: f64,
) {
    let arguments = "--format karate --backend flex --structure plain --epochs 2";
    folder.runs(&format!("train {arguments} --conv {model} --log run.jsonl"));
    let run = log(&folder, "run.jsonl").pop().unwrap();
    let found = ["model", "activation", "layers", "hidden", "dropout", "lr", "weight_decay"];
    let expected: [Value; 7] = [
        format!("plain {model}").into(),
        activation.into(),
        2.into(),
        hidden.into(),
        dropout.into(),
        lr.into(),
        5e-4.into(),
    ];
    assert_eq!(found.map(|name| run[name].clone()), expected);
}

/// Expects text that a terminal would not obey.
fn plain(text: &str) {
    let escapes = text.chars().any(|c| c.is_control() && c != '\n');
    assert!(!escapes, "{text:?}");
}

#[rstest]
fn the_demonstration_ends_in_a_table(folder: Folder) {
    let output = folder.run("--backend flex --nodes 400 --hidden 24 --k 6 --epochs 12");
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{message}");
    // No progress bar where nobody looks.
    assert_eq!(message, "");
    let printed = String::from_utf8(output.stdout).unwrap();
    plain(&printed);
    let head = "| activation | test accuracy | ms per epoch | kept | activations, MB |";
    assert!(printed.contains(head), "{printed}");
    let runs = log(&folder, "maxk.jsonl");
    assert_eq!(runs.len(), 26);
    // Two layers of 400 rows in f32; MaxK also keeps a byte per column.
    for (label, summary, kept, bytes) in [
        ("| maxk:6:exact |", &runs[12], "25.0 %", 2 * 400 * 6 * 5),
        ("| relu |", &runs[25], "100.0 %", 2 * 400 * 24 * 4),
    ] {
        let row = printed.lines().find(|line| line.starts_with(label));
        let cells: Vec<&str> = row.unwrap().split('|').map(str::trim).collect();
        let test = summary["test"].as_f64().unwrap();
        assert_eq!(cells[2], format!("{test:.4}"));
        assert!(cells[3].parse::<f64>().unwrap() > 0.0, "{printed}");
        assert_eq!(cells[4..6], [kept, &format!("{:.2}", f64::from(bytes) / 1e6)]);
    }
    let last = printed.lines().last().unwrap();
    assert_eq!(last, "curves maxk.svg, log maxk.jsonl");
    let figure = fs::read_to_string(folder.path.join("maxk.svg")).unwrap();
    for word in ["SAGE on sbm-400", "relu test", "maxk:6:exact test", "seconds"] {
        assert!(figure.contains(word), "{word}");
    }
}

#[rstest]
fn a_training_run_prints_lines_into_a_pipe(folder: Folder) {
    let output = folder.run(&format!("train {SMALL} --epochs 20"));
    let message = String::from_utf8(output.stderr).unwrap();
    plain(&message);
    let lines = message.lines().filter(|line| line.contains(" epoch "));
    assert_eq!(lines.count(), 11, "{message}");
}

#[rstest]
#[case::demonstration("--help", "Data Model Training Device Output")]
#[case::train("train --help", "Data Model Training Batches Device Output Checkpoint")]
#[case::eval("eval --help", "Checkpoint Data Device Output")]
#[case::export("export --help", "Checkpoint Device")]
#[case::compare("compare --help", "Data Model Training Batches Device Output")]
fn help_has_sections_and_examples(folder: Folder, #[case] arguments: &str, #[case] sections: &str) {
    common::help(&folder, arguments, sections);
}

#[cfg(feature = "download")]
#[rstest]
fn downloads_are_listed_and_unknown_names_refused(folder: Folder) {
    let list = folder.runs("download");
    assert!(list.contains("tolokers") && list.lines().all(|line| line.contains("https://")));
    let output = folder.run("download tolokers reddit");
    common::fails(&output, "no dataset \"reddit\" is known");
    assert!(folder.names().is_empty());
}

/// Rings and paths of 3 to 8 nodes.
#[fixture]
fn graphs(folder: Folder) -> Folder {
    let (mut edges, mut nodes, mut classes) = (String::new(), String::new(), String::new());
    let mut first = 1;
    for graph in 0..12 {
        let (length, ring) = (3 + graph / 2, graph % 2);
        for node in 0..length - 1 + ring {
            let (from, to) = (first + node, first + (node + 1) % length);
            edges.push_str(&format!("{from}, {to}\n{to}, {from}\n"));
        }
        nodes.push_str(&format!("{}\n", graph + 1).repeat(length));
        classes.push_str(&format!("{ring}\n"));
        first += length;
    }
    let set = folder.path.join("set");
    fs::create_dir(&set).unwrap();
    for (file, text) in [("A", edges), ("graph_indicator", nodes), ("graph_labels", classes)] {
        fs::write(set.join(format!("rings_{file}.txt")), text).unwrap();
    }
    folder
}

const FOLDS: &str = "graphs --data set --backend flex --hidden 8 --layers 2 --folds 3";

#[rstest]
fn graphs_are_classified_in_folds(graphs: Folder) {
    let run = format!("{FOLDS} --k 2,4 --epochs 40 --batch-graphs 4 --log folds.jsonl");
    let output = graphs.runs(&run);
    assert!(
        output.contains("rings: 12 graphs, 66 nodes, 1 features, 2 classes, 3 folds"),
        "{output}"
    );
    let lines = log(&graphs, "folds.jsonl");
    assert_eq!(lines.len(), 9);
    for (lines, activation) in lines.chunks(3).zip(["relu", "maxk:2:exact", "maxk:4:exact"]) {
        for (fold, line) in lines.iter().enumerate() {
            assert_eq!(line["activation"], activation);
            assert_eq!((&line["fold"], &line["folds"]), (&fold.into(), &3.into()));
            assert_eq!(line["best_epoch"], lines[0]["best_epoch"]);
        }
        let mean = lines.iter().map(|line| line["test"].as_f64().unwrap()).sum::<f64>() / 3.0;
        assert!(mean > 0.9, "{lines:?}");
        let row = format!("| {activation} | {mean:.4} ± ");
        assert!(output.contains(&row), "{row}: {output}");
    }
    graphs.runs(&run.replace("folds.jsonl", "again.jsonl"));
    assert_eq!(log(&graphs, "again.jsonl"), lines);
}

#[rstest]
#[case("--folds 1", "1 folds of 12 graphs")]
#[case("--k 9", "k = 9 exceeds the row width 8")]
#[case("--epochs 0", "epochs")]
#[case("--attributes", "rings_node_attributes.txt")]
#[case("--log set/rings_A.txt", "set/rings_A.txt")]
#[case("--k 4 --log none/folds.jsonl", "there is no folder none")]
fn impossible_folds_are_refused(graphs: Folder, #[case] options: &str, #[case] word: &str) {
    let run = match options.split_once(' ') {
        Some(("--folds", _)) => FOLDS.replace("--folds 3", options),
        _ => format!("{FOLDS} {options}"),
    };
    refuses(&graphs, &run, word);
    assert!(!graphs.path.join("folds.jsonl").exists());
}
