//! Accuracy of graph models beside published results.

use super::{
    chapter,
    graphs::metric,
    records::{Benches, Line, groups},
    table::{MISSING, Table},
};

const BENCH: &str = "plain";

const HEAD: &str = "\
# Accuracy beside published results

`sparsek-bench report` writes this chapter from the logs of

```sh
maxk compare --data cora --features rows --structure plain --models gcn,gat --k 8 --early '' \\
  --log runs.jsonl
maxk graphs --data MUTAG --log folds.jsonl
```

Test accuracy in percent, mean and deviation over runs. Cora: seeds, at the best validation
accuracy, with the papers' hyperparameters and the public split. MUTAG: ten folds, at the epoch
with the best mean, as GIN's authors. Published: GCN by Kipf and Welling, 2017; GAT by Veličković
et al., 2018; GIN by Xu et al., 2019.
";

/// Data set, model, nonlinearity, published accuracy.
const PUBLISHED: [[&str; 4]; 3] = [
    ["cora", "plain gcn", "relu", "81.5"],
    ["cora", "plain gat", "elu", "83.0±0.7"],
    ["MUTAG", "gin", "relu", "89.4±5.6"],
];

/// The chapter of the guide; none without records.
pub fn chapter<'a>(devices: impl Iterator<Item = (String, &'a Benches, String)>) -> Option<String> {
    chapter::of_devices(HEAD, BENCH, devices, section)
}

fn section(lines: &[Line]) -> String {
    let mut table = Table::new(["data", "model", "nonlinearity", "runs", "test", "published"]);
    let runs = lines.iter().filter(|line| line.is("summary"));
    for group in groups(runs, &["dataset", "model", "activation"]) {
        let key = ["dataset", "model", "activation"].map(|field| group.text(field));
        let published = PUBLISHED.iter().find(|row| row[..3] == key);
        let [data, model, activation] = key.map(String::from);
        table.row([
            data,
            model,
            activation,
            group.0.len().to_string(),
            metric(&group),
            published.map_or(MISSING, |row| row[3]).into(),
        ]);
    }
    table.markdown()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::records::parse;

    #[test]
    fn seeds_become_a_mean_beside_the_published_one() {
        let run = |test: &str, activation: &str| {
            let of = r#""summary":true,"dataset":"cora","model":"plain gcn""#;
            format!(r#"{{{of},"activation":"{activation}","test":{test}}}"#)
        };
        let lines = [
            run("0.80", "relu"),
            run("0.82", "relu"),
            run("0.5", "maxk:8:exact"),
            r#"{"epoch":1}"#.into(),
        ];
        let benches: Benches = [(BENCH.to_string(), parse(&lines.join("\n")).unwrap())].into();
        let text = chapter([("X".to_string(), &benches, "p.jsonl".to_string())].into_iter());
        let text = text.expect("records");
        for row in [
            "| cora | plain gcn | relu | 2 | 81.00±1.41 | 81.5 |",
            "| cora | plain gcn | maxk:8:exact | 1 | 50.00 |",
            "Records: `p.jsonl`.",
        ] {
            assert!(text.contains(row), "{row}: {text}");
        }
    }
}
