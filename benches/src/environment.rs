//! The commit, versions and date of a record.

use std::{
    env, fs,
    path::PathBuf,
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};

use serde::Serialize;

const LOCK: &str = include_str!("../../Cargo.lock");

/// Fields that every line of a record ends with.
#[derive(Serialize)]
pub struct Environment {
    /// UTC, `YYYY-MM-DD`.
    date: String,
    /// The commit measured, `-dirty` with local changes. From `SPARSEK_COMMIT`, else from Git.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    burn: &'static str,
    cubecl: &'static str,
    /// The NVIDIA driver, on Linux.
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<String>,
}

impl Environment {
    pub fn now() -> Self {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH);
        let days = seconds.map_or(0, |since| since.as_secs() / 86_400);
        Self {
            date: date(days),
            commit: env::var("SPARSEK_COMMIT").ok().or_else(git_commit),
            burn: locked_version("burn"),
            cubecl: locked_version("cubecl"),
            driver: driver(),
        }
    }
}

/// Folder of this package in the checkout that cargo runs this for. The compiled-in path is only a
/// fallback: checkouts may share a target directory.
pub fn package() -> PathBuf {
    env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into()).into()
}

fn git_commit() -> Option<String> {
    let words = ["describe", "--always", "--dirty", "--exclude", "*"];
    let mut git = Command::new("git");
    let output = git.args(words).current_dir(package());
    let output = output.output().ok()?;
    let commit = String::from_utf8(output.stdout).ok()?.trim().to_string();
    (output.status.success() && !commit.is_empty()).then_some(commit)
}

/// The version of a package in Cargo.lock; empty if it has none.
fn locked_version(package: &str) -> &'static str {
    let head = format!("name = \"{package}\"\nversion = \"");
    let rest = LOCK.split_once(&head).map(|(_, rest)| rest);
    let version = rest.and_then(|rest| rest.split('"').next());
    version.unwrap_or_default()
}

fn driver() -> Option<String> {
    let text = fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    let mut words = text.split_whitespace();
    let version =
        |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    words.find(version).map(Into::into)
}

/// The Gregorian date of a day since 1970-01-01.
fn date(days: u64) -> String {
    // Days since 0000-03-01, so that the leap day ends a year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (carry, month) = if month < 10 { (0, month + 3) } else { (1, month - 9) };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + carry)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::epoch(0, "1970-01-01")]
    #[case::no_leap_day(59, "1970-03-01")]
    #[case::leap_day(11_016, "2000-02-29")]
    #[case(20_784, "2026-11-27")]
    fn dates_are_gregorian(#[case] days: u64, #[case] expected: &str) {
        assert_eq!(date(days), expected);
    }

    #[rstest]
    #[case::locked("cubecl", "0.11.3")]
    #[case::unknown("no such package", "")]
    fn versions_come_from_the_lock_file(#[case] package: &str, #[case] version: &str) {
        assert_eq!(locked_version(package), version);
    }
}
