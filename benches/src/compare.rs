//! Compares the times of two files of records.
//!
//! A case is slower if its median time grew by more than the noise. Noise is the sum of the spreads
//! of both measurements, at least 1 %; 3 % if neither has a spread.

use std::{fs, path::PathBuf};

use anyhow::{Context, ensure};

use crate::report::records::{Group, Line, groups, parse};

/// Runs differ by more than the samples of one run.
const LEAST_NOISE: f64 = 0.01;
const UNKNOWN_NOISE: f64 = 0.03;

/// Fields that name a case. Lines that lack a field match lines that lack it too.
const CASE: [&str; 15] = [
    "bench", "case", "backend", "device", "method", "routine", "dtype", "form", "dist", "k",
    "width", "topk", "cache", "dataset", "peer",
];

/// Compares the median times of the cases that are in two files of records. Fails if one became
/// slower beyond noise.
#[derive(clap::Args)]
pub struct Arguments {
    /// A file written by `--json`.
    old: PathBuf,
    /// A later file of the same cases on the same device.
    new: PathBuf,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let read = |path: &PathBuf| -> anyhow::Result<Vec<Line>> {
        let name = || path.display().to_string();
        parse(&fs::read_to_string(path).with_context(name)?).with_context(name)
    };
    let compared = compare(&read(&arguments.old)?, &read(&arguments.new)?);
    ensure!(!compared.is_empty(), "no case is in both files");
    say!("| case | old, ms | new, ms | new / old | noise | |");
    say!("| --- | --- | --- | --- | --- | --- |");
    for row in &compared {
        say!("{}", row.line());
    }
    let slower = compared.iter().filter(|row| row.is_slower()).count();
    ensure!(slower == 0, "{slower} of {} cases are slower", compared.len());
    Ok(())
}

struct Compared {
    name: String,
    old: f64,
    new: f64,
    noise: f64,
}

impl Compared {
    fn ratio(&self) -> f64 {
        self.new / self.old
    }

    fn is_slower(&self) -> bool {
        self.ratio() > 1.0 + self.noise
    }

    fn is_faster(&self) -> bool {
        self.ratio() < 1.0 / (1.0 + self.noise)
    }

    fn line(&self) -> String {
        let verdict = match (self.is_slower(), self.is_faster()) {
            (true, _) => "slower",
            (_, true) => "faster",
            _ => "",
        };
        format!(
            "| {} | {:.4} | {:.4} | {:.3} | {:.1} % | {verdict} |",
            self.name,
            self.old,
            self.new,
            self.ratio(),
            100.0 * self.noise,
        )
    }
}

/// The cases with a time in both, in the order of `old`.
fn compare(old: &[Line], new: &[Line]) -> Vec<Compared> {
    let timed = |line: &&Line| line.number("ms").is_some_and(|ms| ms > 0.0);
    let name = |group: &Group| {
        let fields = CASE.iter().filter_map(|field| group.0[0].shown(field));
        fields.collect::<Vec<_>>().join(" ")
    };
    let new = groups(new.iter().filter(timed), &CASE);
    let compared = groups(old.iter().filter(timed), &CASE).into_iter();
    compared
        .filter_map(|old| {
            let new = new.iter().find(|new| old.0[0].agrees(new.0[0], &CASE))?;
            let spreads = [spread(&old), spread(new)];
            let noise = match spreads {
                [None, None] => UNKNOWN_NOISE,
                _ => spreads.into_iter().flatten().sum::<f64>().max(LEAST_NOISE),
            };
            Some(Compared {
                name: name(&old),
                old: old.median("ms")?,
                new: new.median("ms")?,
                noise,
            })
        })
        .collect()
}

/// The greater of the recorded spreads and of that between repeated lines; none for a single line
/// without spread.
fn spread(group: &Group) -> Option<f64> {
    let recorded = group.0.iter().filter_map(|line| line.number("spread"));
    let times = || group.0.iter().filter_map(|line| line.number("ms"));
    let range = times().reduce(f64::max)? - times().reduce(f64::min)?;
    let repeated = (group.0.len() > 1).then_some(range / 2.0 / group.median("ms")?);
    recorded.chain(repeated).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn compared(old: &str, new: &str) -> Vec<(String, &'static str)> {
        let rows = compare(&parse(old).unwrap(), &parse(new).unwrap());
        let verdict = |row: &Compared| match (row.is_slower(), row.is_faster()) {
            (true, false) => "slower",
            (false, true) => "faster",
            (false, false) => "same",
            (true, true) => "both",
        };
        rows.iter().map(|row| (row.name.clone(), verdict(row))).collect()
    }

    fn one(old: &str, new: &str) -> &'static str {
        let line = |rest: &str| format!(r#"{{"bench":"topk","case":"a",{rest}}}"#);
        compared(&line(old), &line(new))[0].1
    }

    #[rstest]
    #[case(r#""ms":102.9"#, "same")]
    #[case(r#""ms":103.1"#, "slower")]
    #[case(r#""ms":97.2"#, "same")]
    #[case(r#""ms":97"#, "faster")]
    fn noise_is_3_percent_without_spread(#[case] new: &str, #[case] verdict: &str) {
        assert_eq!(one(r#""ms":100"#, new), verdict);
    }

    const NOISY: &str = r#""ms":100,"spread":0.04"#;
    const EXACT: &str = r#""ms":100,"spread":0.0"#;

    #[rstest]
    #[case::both(NOISY, r#""ms":109,"spread":0.06"#, "same")]
    #[case::both(NOISY, r#""ms":111,"spread":0.06"#, "slower")]
    #[case::one(NOISY, r#""ms":104.1"#, "slower")]
    #[case::least(EXACT, r#""ms":100.9,"spread":0.0"#, "same")]
    #[case::least(EXACT, r#""ms":101.1,"spread":0.0"#, "slower")]
    fn spreads_add_and_have_a_least_value(
        #[case] old: &str,
        #[case] new: &str,
        #[case] verdict: &str,
    ) {
        assert_eq!(one(old, new), verdict);
    }

    #[rstest]
    #[case(109, "same")]
    #[case(111, "slower")]
    fn repeated_lines_have_a_median_and_a_spread(#[case] ms: u32, #[case] verdict: &str) {
        let old = "{\"case\":\"a\",\"ms\":90}\n{\"case\":\"a\",\"ms\":110}";
        let new = format!("{{\"case\":\"a\",\"ms\":{ms}}}");
        assert_eq!(compared(old, &new)[0].1, verdict);
    }

    fn old() -> String {
        let place = r#""case":"a","backend":"cuda","device":"d","ms":1"#;
        format!(
            r#"{{"bench":"topk",{place},"method":"exact"}}
{{"bench":"distance",{place},"method":"cosine","routine":"merge","k":16}}
{{"bench":"suite","passed":3}}"#
        )
    }

    #[test]
    fn equal_cases_match() {
        let rows = compared(&old(), &old());
        let names: Vec<&str> = rows.iter().map(|(name, _)| name.as_str()).collect();
        let expected = ["topk a cuda d exact", "distance a cuda d cosine merge 16"];
        assert_eq!(names, expected);
        let new = old().replace("merge", "inverted");
        assert_eq!(compared(&old(), &new).len(), 1);
    }

    #[rstest]
    #[case::backend("cuda", "vulkan")]
    #[case::device("\"d\"", "\"e\"")]
    #[case::method("exact", "early:2")]
    #[case::name("\"a\"", "\"b\"")]
    fn only_equal_cases_match(#[case] field: &str, #[case] other: &str) {
        let old = old();
        let new = old.lines().next().unwrap().replace(field, other);
        assert!(compared(&old, &new).is_empty());
    }
}
