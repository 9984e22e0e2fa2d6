//! Table 3 of Nolet et al., and records in its form.

use crate::record::NeighborRecord;

/// The data sets: what names of cases that stand for them have in them, and the paper's name.
const SETS: [(&[&str], &str); 4] = [
    (&["movielens"], "MovieLens"),
    (&["scrna"], "scRNA"),
    (&["nytimes", "kos"], "NY Times"),
    (&["edgar"], "SEC Edgar"),
];

/// A distance: its name here, the paper's, whether products suffice, and the seconds of baseline and RAFT for each data set on a
/// V100, as published.
struct Row {
    method: &'static str,
    name: &'static str,
    products: bool,
    seconds: [[f64; 2]; 4],
}

const fn row(
    method: &'static str,
    name: &'static str,
    products: bool,
    seconds: [[f64; 2]; 4],
) -> Row {
    Row {
        method,
        name,
        products,
        seconds,
    }
}

#[rustfmt::skip]
const ROWS: [Row; 14] = [
    row("correlation", "Correlation", true, [[130.57, 111.20], [207.00, 235.00], [257.36, 337.11], [134.79, 87.99]]),
    row("cosine", "Cosine", true, [[131.39, 110.01], [206.00, 233.00], [257.73, 334.86], [127.63, 87.96]]),
    row("dice", "Dice", true, [[130.52, 110.94], [206.00, 233.00], [130.35, 335.49], [134.36, 88.19]]),
    row("euclidean", "Euclidean", true, [[131.93, 111.38], [206.00, 233.00], [258.38, 336.63], [134.75, 87.77]]),
    row("hellinger", "Hellinger", true, [[129.79, 110.82], [205.00, 232.00], [258.22, 334.80], [134.11, 87.83]]),
    row("jaccard", "Jaccard", true, [[130.51, 110.67], [206.00, 233.00], [258.24, 336.01], [134.55, 87.73]]),
    row("russell-rao", "Russel-Rao", true, [[130.35, 109.68], [206.00, 232.00], [257.58, 332.93], [134.31, 87.94]]),
    row("canberra", "Canberra", false, [[3014.34, 268.11], [4027.00, 598.00], [4164.98, 819.80], [505.71, 102.79]]),
    row("chebyshev", "Chebyshev", false, [[1621.00, 336.05], [3907.00, 546.00], [2709.30, 1072.35], [253.00, 146.41]]),
    row("hamming", "Hamming", false, [[1635.30, 229.59], [3902.00, 481.00], [2724.86, 728.05], [258.27, 97.65]]),
    row("jensen-shannon", "Jensen-Shannon", false, [[7187.27, 415.12], [4257.00, 1052.00], [10869.32, 1331.37], [1248.83, 142.96]]),
    row("kl", "KL Divergence", false, [[5013.65, 170.06], [4117.00, 409.00], [7099.08, 525.32], [753.56, 87.72]]),
    row("manhattan", "Manhattan", false, [[1632.05, 227.98], [3904.00, 477.00], [2699.91, 715.78], [254.69, 98.05]]),
    row("minkowski:3", "Minkowski", false, [[1632.05, 367.17], [4051.00, 838.00], [5855.79, 1161.31], [646.71, 129.47]]),
];

/// The paper's routine.
const HYBRID: &str = "hybrid";
/// What records of the routine that is chosen say.
const CHOSEN: &str = "auto";

/// Prints a row for each distance of the paper that has a record, in its order: for each case the seconds of the paper's routine
/// and of the one that is chosen, the less in bold, and the paper's own.
pub fn print(records: &[NeighborRecord]) {
    for line in lines(records) {
        say!("{line}");
    }
}

fn lines(records: &[NeighborRecord]) -> Vec<String> {
    let mut cases: Vec<(&str, usize)> = Vec::new();
    for record in records {
        let holds = |(keys, _): &(&[&str], &str)| keys.iter().any(|key| record.case.contains(key));
        let set = SETS.iter().position(holds);
        if let Some(set) = set.filter(|_| !cases.iter().any(|(case, _)| *case == record.case)) {
            cases.push((&record.case, set));
        }
    }
    cases.sort_by_key(|&(_, set)| set);
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let mut head = vec!["distance".to_string()];
    for (case, set) in &cases {
        let name = SETS[*set].1;
        head.extend([
            format!("{case}: hybrid, s"),
            "chosen, s".into(),
            format!("{name} in the paper: baseline, s"),
            "RAFT, s".into(),
        ]);
    }
    let rule = vec!["---".to_string(); head.len()];
    let mut lines = vec![line(head), line(rule)];
    for row in &ROWS {
        let found = |case: &str, routine: &str| {
            let mut same = records.iter();
            let same =
                same.find(|r| r.case == case && r.method == row.method && r.routine == routine);
            same.map(|record| record.ms / 1e3)
        };
        if !records.iter().any(|record| record.method == row.method) {
            continue;
        }
        let mut cells = vec![match row.products {
            true => format!("*{}*", row.name),
            false => row.name.to_string(),
        }];
        for &(case, set) in &cases {
            let ours = [found(case, HYBRID), found(case, CHOSEN)];
            let least = ours.iter().flatten().copied().fold(f64::INFINITY, f64::min);
            let cell = |time: &Option<f64>| match time {
                Some(time) if *time == least => format!("**{}**", seconds(*time)),
                Some(time) => seconds(*time),
                None => "–".into(),
            };
            cells.extend(ours.iter().map(cell));
            cells.extend(row.seconds[set].map(|time| format!("{time:.2}")));
        }
        lines.push(line(cells));
    }
    lines
}

/// Three digits or more.
fn seconds(time: f64) -> String {
    let digits = (2.0 - time.max(1e-6).log10().floor()).clamp(0.0, 6.0);
    format!("{time:.0$}", digits as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_three_digits() {
        let written = [234.6, 12.345, 0.012345, 0.00091].map(seconds);
        assert_eq!(written, ["235", "12.3", "0.0123", "0.000910"]);
    }

    #[test]
    fn every_metric_of_the_paper_is_one_of_ours() {
        for row in &ROWS {
            assert!(row.method.parse::<sparsek::distance::Metric>().is_ok());
        }
    }
}
