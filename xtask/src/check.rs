//! Source checks that no other tool makes.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::process::{Result, cargo, root};

/// Maximum line width in code and comments.
const COLUMNS: usize = 100;

/// Fails if a line of a Rust file is too wide.
pub fn sources() -> Result {
    let list = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "*.rs"])
        .current_dir(root())
        .output()
        .map_err(|e| format!("git ls-files: {e}"))?;
    if !list.status.success() {
        let reason = String::from_utf8_lossy(&list.stderr);
        return Err(format!("git ls-files: {}", reason.trim_end()));
    }
    let files = String::from_utf8_lossy(&list.stdout);
    let mut long = Vec::new();
    for file in files.lines().filter(|file| root().join(file).is_file()) {
        let text = fs::read_to_string(root().join(file)).map_err(|e| format!("{file}: {e}"))?;
        let lines = text.lines().enumerate();
        long.extend(
            lines
                .filter(|(_, line)| line.chars().count() > COLUMNS)
                .map(|(at, _)| format!("{file}:{}", at + 1)),
        );
    }
    match long.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "{} lines have more than {COLUMNS} columns:\n{}",
            long.len(),
            long.join("\n")
        )),
    }
}

/// Fails if plain `cargo test` leaves out a target with tests.
pub fn test_targets() -> Result {
    let output = cargo(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .map_err(|e| format!("cargo metadata: {e}"))?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo metadata: {}", reason.trim_end()));
    }
    let metadata: Value =
        serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo metadata: {e}"))?;
    let mut left_out = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        for target in package["targets"].as_array().into_iter().flatten() {
            let path = target["src_path"].as_str().unwrap_or_default();
            let kinds = target["kind"].as_array().cloned().unwrap_or_default();
            let is = |wanted: &str| kinds.iter().any(|kind| kind == wanted);
            let tested = target["test"] == true && target.get("required-features").is_none();
            if !is("custom-build") && !tested && (is("test") || has_tests(path)?) {
                left_out.push(path.to_string());
            }
        }
    }
    match left_out.is_empty() {
        true => Ok(()),
        false => Err(format!("`cargo test` leaves out {}", left_out.join(", "))),
    }
}

/// Whether a target's root file has tests.
fn has_tests(path: &str) -> Result<bool> {
    let text = fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    let marks = ["#[test]", "#[rstest]", "#[cfg(test)]"];
    Ok(marks.iter().any(|mark| text.contains(mark)))
}
