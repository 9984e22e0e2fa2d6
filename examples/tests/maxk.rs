//! The program `maxk`, as a user runs it.
#![cfg(feature = "flex")]

#[allow(dead_code, reason = "shared with the tests of other programs")]
mod folder;

use std::fs;

use folder::Folder;
use serde_json::Value;

const SMALL: &str = "--format karate --backend flex --hidden 8 --layers 2 --k 4";

fn folder(name: &str) -> Folder {
    Folder::new(env!("CARGO_BIN_EXE_maxk"), name)
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

#[test]
fn a_run_that_is_resumed_reaches_the_figures_of_a_whole_one() {
    let folder = folder("resume");
    for model in ["sage", "gcn", "gin"] {
        let train = format!("train {SMALL} --model {model} --seed 3");
        let whole = format!("whole-{model}");
        folder.runs(&format!(
            "{train} --epochs 12 --log {whole}.jsonl --plot {whole}.svg"
        ));
        let saved = format!("{train} --checkpoint {model} --log {model}.jsonl");
        folder.runs(&format!("{saved} --epochs 7"));
        // A line cut short by a kill.
        let file = folder.path.join(format!("{model}.jsonl"));
        let mut text = fs::read_to_string(&file).unwrap();
        text.push_str("{\"run\":\"0123456789abcdef\",\"activation\":\"maxk");
        fs::write(&file, &text).unwrap();
        let resume = format!("{saved} --epochs 12 --resume --plot {model}.svg");
        folder.runs(&resume);
        let after = fs::read_to_string(&file).unwrap();
        assert!(after.starts_with(&text));
        let (whole, mut parts) = (
            log(&folder, &format!("whole-{model}.jsonl")),
            log(&folder, &format!("{model}.jsonl")),
        );
        parts.remove(7);
        assert_eq!(parts, whole);
        let plot = |name: &str| fs::read(folder.path.join(name)).unwrap();
        let plots = [format!("{model}.svg"), format!("whole-{model}.svg")];
        assert_eq!(plot(&plots[0]), plot(&plots[1]));
        // A finished run logs nothing twice; a new log gets everything.
        folder.runs(&resume);
        assert_eq!(fs::read_to_string(&file).unwrap(), after);
        folder.runs(&resume.replace(&format!("{model}.jsonl"), "other.jsonl"));
        assert_eq!(log(&folder, "other.jsonl"), whole);
        fs::remove_file(folder.path.join("other.jsonl")).unwrap();
        let eval = folder.runs(&format!("eval --checkpoint {model} --backend flex"));
        let test = format!("test {:.4}", whole[12]["test"].as_f64().unwrap());
        assert!(eval.contains(&test), "{eval} {test}");
    }
}

#[test]
fn a_comparison_is_a_table_and_a_figure_and_is_not_repeated() {
    let folder = folder("compare");
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
    assert_eq!(
        runs.iter().filter(|line| line["summary"] == true).count(),
        16
    );
    let figure = fs::read_to_string(folder.path.join("runs.svg")).unwrap();
    assert!(figure.contains("SAGE on karate") && figure.contains("max_iter"));

    let rows = |text: &str| -> Vec<String> {
        text.lines()
            .filter(|line| line.starts_with('|'))
            .map(str::to_string)
            .collect()
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
    // Times of the same runs, and of a log that lacks some.
    let timed = format!("{compare} --times runs.jsonl");
    assert_eq!(rows(&folder.runs(&timed)), rows(&table));
    let all = fs::read_to_string(folder.path.join("runs.jsonl")).unwrap();
    let some = all
        .lines()
        .filter(|line| !line.contains("\"model\":\"gin\""));
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
    refuses(
        &folder,
        "compare --format karate --log x --seeds 0",
        "0 is not in 1..",
    );
}

#[test]
fn mistakes_are_one_line_and_leave_nothing() {
    let folder = folder("refuses");
    let train = format!("train {SMALL} --log bad.jsonl --plot bad.svg --checkpoint bad");
    for (arguments, word) in [
        ("--k 9", "width 8"),
        ("--metric roc-auc --batches clusters --parts 99", "99 parts"),
        ("--metric micro-f1", "micro-F1"),
        ("--preset cora", "reddit, flickr, yelp, products, proteins"),
        ("--dropout 1", "dropout"),
        ("--topk early:x", "early:ITERATIONS"),
        ("--resume", "no run is saved"),
    ] {
        let arguments = match arguments.strip_prefix("--k ") {
            Some(k) => train.replace("--k 4", &format!("--k {k}")),
            None => format!("{train} {arguments}"),
        };
        refuses(&folder, &arguments, word);
    }
    refuses(
        &folder,
        "train --data no/such/flickr --log bad.jsonl",
        "https://github.com/GraphSAINT",
    );
    refuses(
        &folder,
        "train --format ogb --data products --log bad.jsonl",
        "products.zip",
    );
    refuses(&folder, "train --format csr --log bad.jsonl", "--data DIR");
    for left in ["bad.jsonl", "bad.svg", "bad"] {
        assert!(!folder.path.join(left).exists(), "{left}");
    }
}

#[test]
fn a_preset_sets_what_is_not_given() {
    let folder = folder("preset");
    let arguments = "--format karate --backend flex --preset flickr --hidden 16 --k 4 --epochs 2";
    folder.runs(&format!("train {arguments} --model gin --log run.jsonl"));
    let run = log(&folder, "run.jsonl").pop().unwrap();
    assert_eq!(
        (&run["model"], &run["layers"], &run["hidden"]),
        (&"gin".into(), &3.into(), &16.into())
    );
    assert_eq!((&run["dropout"], &run["lr"]), (&0.2.into(), &0.001.into()));
}
