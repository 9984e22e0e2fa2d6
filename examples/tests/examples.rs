//! Runs the examples and reads what they print.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use rstest::rstest;

/// Cargo builds examples beside the folder of the tests.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap().parent().unwrap().join("examples");
    let program = folder.join(name).with_extension(std::env::consts::EXE_EXTENSION);
    assert!(program.exists(), "build the examples first: cargo build --examples");
    program
}

/// Words of each line.
fn run(name: &str, arguments: &[&str]) -> Vec<Vec<String>> {
    let output = Command::new(program(name)).args(arguments).env("SPARSEK_CACHE", "off").output();
    let output = output.unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {message}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

fn number(word: &str) -> f64 {
    word.parse().unwrap_or_else(|_| panic!("{word} is no number"))
}

/// A file of the test's own, for a drawing.
fn drawing(test: &str) -> String {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test).with_extension("svg");
    file.to_str().unwrap().to_owned()
}

/// Number `column` of the first and the last line below the heading.
#[rstest]
#[case::moe("moe", "20", 1)]
#[case::sae("sae", "40", 1)]
#[case::custom_module("custom_module", "40", 1)]
#[case::knn_graph("knn_graph", "12", 3)]
fn training_lowers_the_loss(#[case] name: &str, #[case] steps: &str, #[case] column: usize) {
    let mut lines = run(name, &[steps, &drawing(name)]);
    lines.retain(|line| line[0] != "drawn");
    let loss = |line: &[String]| number(&line[column]);
    let (first, last) = (loss(&lines[1]), loss(lines.last().unwrap()));
    assert!(last < first, "{name}: {first} then {last}");
}

#[rstest]
#[case::moe("moe", ["Mixture of experts", "cross-entropy", "expert 3", "tokens"])]
#[case::sae("sae", ["Superposed features", "recovered features", "dead latents", "after"])]
fn training_is_drawn(#[case] name: &str, #[case] words: [&str; 4]) {
    let file = drawing(&format!("{name}-drawn"));
    let _ = fs::remove_file(&file);
    let lines = run(name, &["3", &file]);
    assert_eq!(lines.last().unwrap().join(" "), format!("drawn in {file}"));
    let figure = fs::read_to_string(&file).unwrap();
    assert!(figure.starts_with("<svg") && figure.trim_end().ends_with("</svg>"));
    for word in words {
        assert!(figure.contains(word), "{name}: {word}");
    }
}

#[test]
fn tokens_reach_all_experts_once_per_copy() {
    let lines = run("moe", &["2", &drawing("tokens")]);
    for line in &lines[1..lines.len() - 1] {
        let counts = line[2..].iter().map(|word| number(word.trim_matches(['[', ']', ','])));
        assert_eq!(counts.sum::<f64>(), 256.0);
    }
}

#[test]
fn attention_to_more_keys_is_nearer_to_dense() {
    let errors: Vec<f64> = run("attention", &[])[2..].iter().map(|line| number(&line[1])).collect();
    assert!(errors.is_sorted_by(|a, b| a > b), "{errors:?}");
    assert_eq!(errors.last(), Some(&0.0));
}

#[test]
fn samplers_draw_what_their_settings_keep() {
    let lines = run("sampler", &[]);
    let counts = |name: &str| -> Vec<f64> {
        let line = lines.iter().find(|line| line[0] == name).unwrap();
        line[line.len() - 6..].iter().map(|word| number(word)).collect()
    };
    assert_eq!(counts("greedy"), [1000.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(counts("top-k")[2..], [0.0; 4]);
    for name in ["plain", "hot", "top-p", "min-p"] {
        assert_eq!(counts(name).iter().sum::<f64>(), 1000.0, "{name}");
    }
    assert!(counts("hot")[5] > counts("plain")[5]);
}

#[test]
fn pruned_networks_have_the_zeros_that_were_asked_for() {
    let lines = run("prune", &["20"]);
    let zeros = |at: usize| number(&lines[at][lines[at].len() - 3]);
    // 4 · 128 and 128 weights.
    assert_eq!([2, 3, 4, 5].map(zeros), [320.0, 320.0, 320.0, 576.0]);
}

#[test]
fn ways_are_the_cheapest_of_at_most_two_roads() {
    let lines = run("semiring", &[]);
    assert_eq!(lines[2], ["Aalen", "0", "4", "7", "5", "-"]);
    assert_eq!(lines[6], ["Emden", "-", "5", "2", "9", "0"]);
}

/// Reads Burn's summary: split, metric, least value and its epoch, greatest value and its epoch.
#[cfg(feature = "train")]
#[test]
fn burn_trains_on_sampled_neighbors() {
    let lines = run("burn_train", &["2"]);
    let row = |split: &str, metric: &str| -> Vec<f64> {
        let rows = lines.iter().map(|line| line.join(" "));
        let mut rows = rows.map(|row| row.split('|').map(|x| x.trim().to_owned()).collect());
        let found = rows.find(|row: &Vec<_>| row.len() == 8 && row[1..3] == [split, metric]);
        found.unwrap()[3..7].iter().map(|word| number(word)).collect()
    };
    let loss = row("Train", "Loss");
    assert!(loss[0] < loss[2], "{loss:?}");
    assert_eq!([loss[1], loss[3]], [2.0, 1.0], "epochs of the least and the greatest loss");
    // Guesses reach 12.5 %.
    let accuracy = row("Valid", "Accuracy");
    assert!(accuracy[2] > 50.0 && accuracy[2] <= 100.0, "{accuracy:?}");
    let used = row("Valid", "Units in use");
    assert!(used[0] > 25.0 && used[2] <= 100.0, "{used:?}");
}
