//! Nolet et al., Table 3: seconds for the nearest neighbors of four data sets.

use super::distance_figures::{ROWS, SETS};
use crate::{chart::significant, record::NeighborRecord};

const HYBRID: &str = "hybrid";
/// The routine in records of automatic choice.
const CHOSEN: &str = "auto";

/// Prints a row for each distance of the paper that has a record: the seconds of the paper's
/// routine and of the chosen one, the smaller in bold, and the published seconds.
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
                Some(time) if *time == least => format!("**{}**", significant(*time)),
                Some(time) => significant(*time),
                None => "–".into(),
            };
            cells.extend(ours.iter().map(cell));
            cells.extend(row.seconds[set].map(|time| format!("{time:.2}")));
        }
        lines.push(line(cells));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_of_the_paper_is_one_of_ours() {
        for row in &ROWS {
            assert!(row.method.parse::<sparsek::distance::Metric>().is_ok());
        }
    }
}
