//! `cargo xtask web`: the page of examples/web.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{Result, built, cargo, root, run, succeeds};

#[derive(clap::Args)]
pub struct Options {
    /// Tests the page in headless Chromium.
    #[arg(long)]
    test: bool,
    /// Serves the page on this machine.
    #[arg(long)]
    serve: bool,
}

const TARGET: &str = "wasm32-unknown-unknown";

/// All browsers with WebGPU have it; Flex's loops use it.
const FLAGS: &str = "-C target-feature=+simd128";

const MODULE: [&str; 6] = ["build", "--profile=web", "--lib", "--target", TARGET, PACKAGE];
const TOOL: [&str; 5] = ["build", "--release", "--features=tool", "--bin=sparsek-web", PACKAGE];
const PACKAGE: &str = "--package=sparsek-web";

pub fn command(options: &Options) -> Result {
    let folder = build()?;
    if options.test {
        if let Some(reason) = lacks_chromium() {
            return Err(reason);
        }
        test(&folder)?;
    }
    match options.serve {
        true => run(Command::new(built("sparsek-web")?).arg("serve").arg(folder)),
        false => Ok(()),
    }
}

/// Builds and tests the page where Rust's target and Chromium are installed.
pub fn check() -> Result {
    if let Some(reason) = lacks_target().or_else(lacks_chromium) {
        say!("web page: skipped, {reason}");
        return Ok(());
    }
    let lints = ["clippy", "--release", "--features=tool", "--bins", "--tests", PACKAGE];
    run(cargo(lints).args(["--", "-D", "warnings"]))?;
    run(&mut cargo(["test", "--release", "--features=tool", PACKAGE]))?;
    test(&build()?)
}

fn test(folder: &Path) -> Result {
    let shots = folder.with_file_name("web-screenshots");
    run(Command::new(built("sparsek-web")?).arg("test").args([folder, &shots]))
}

/// Returns the folder of the page.
fn build() -> Result<PathBuf> {
    if let Some(reason) = lacks_target() {
        return Err(reason);
    }
    run(&mut wasm(MODULE))?;
    run(&mut cargo(TOOL))?;
    let tool = built("sparsek-web")?;
    let release = tool.parent().and_then(Path::parent).ok_or("no target folder")?;
    let module = release.join(TARGET).join("web/sparsek_web.wasm");
    let folder = release.join("web-page");
    run(Command::new(tool).arg("bundle").args([&root(), &module, &folder]))?;
    Ok(folder)
}

fn wasm<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = cargo(arguments);
    command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", FLAGS);
    command
}

fn lacks_target() -> Option<String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let place = Command::new(rustc).args(["--print=target-libdir", "--target", TARGET]).output();
    let place = place.map(|place| String::from_utf8_lossy(&place.stdout).trim_end().to_string());
    match place.is_ok_and(|place| Path::new(&place).is_dir()) {
        true => None,
        false => Some(format!("`rustup target add {TARGET}` installs Rust's target")),
    }
}

fn lacks_chromium() -> Option<String> {
    match succeeds(Command::new("chromedriver").arg("--version")) {
        true => None,
        false => Some(
            "Chromium and chromedriver are needed (chromium and chromium-driver on Debian)".into(),
        ),
    }
}
