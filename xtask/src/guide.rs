//! `cargo xtask guide`.

use std::process::Command;

use crate::process::{Result, root, run, succeeds};

const INSTALL: &str = "install it with `cargo install --locked mdbook`";

/// Builds the guide into `target/guide`.
pub fn command() -> Result {
    match is_installed() {
        true => build(),
        false => Err(format!("mdbook is missing: {INSTALL}")),
    }
}

/// Builds the guide where mdbook is installed. Doc tests of `sparsek-tests` run its listings.
pub fn check() -> Result {
    if !is_installed() {
        say!("mdbook: skipped, {INSTALL}");
        return Ok(());
    }
    build()
}

fn is_installed() -> bool {
    succeeds(Command::new("mdbook").arg("--version"))
}

fn build() -> Result {
    run(Command::new("mdbook").args(["build", "docs/guide"]).current_dir(root()))
}
