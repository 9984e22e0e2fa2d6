//! `cargo xtask python`: the package of python/, tested with pytest.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{
    process::{Result, built, cargo, root, run, succeeds},
    test::Plan,
};

#[derive(clap::Args)]
pub struct Options {
    /// Builds the wheel with maturin, and tests it as installed. Else the module that the builds
    /// of `cargo xtask test` share is tested in place.
    #[arg(long)]
    wheel: bool,
    /// Arguments of pytest.
    #[arg(last = true)]
    pytest: Vec<String>,
}

const REQUIREMENTS: &str = "python/tests/requirements.txt";

/// Exits with 1 if the version is too old, and fails if a module is missing.
const PROBE: &str = "import ensurepip, sys, sysconfig, venv; sys.exit(sys.version_info < (3, 11))";

pub fn command(options: &Options) -> Result {
    if let Some(reason) = lacks_python() {
        return Err(reason);
    }
    let folder = folder()?;
    let python = environment(&folder)?;
    let package = match options.wheel {
        true => {
            install_wheel(&folder, &python)?;
            None
        }
        false => {
            // An installed wheel is not what was built.
            run(Command::new(&python).args(["-m", "pip", "uninstall", "-qy", "sparsek"]))?;
            run(cargo(Plan::new(&[])?.cargo("build")).arg("--lib"))?;
            Some(stage(&folder)?)
        }
    };
    test(&python, package.as_deref(), &options.pytest)
}

/// Tests the library that the build of the workspace linked, where Python is installed and its
/// packages can be.
pub fn check() -> Result {
    if let Some(reason) = lacks_python() {
        say!("python: skipped, {reason}");
        return Ok(());
    }
    let folder = folder()?;
    match environment(&folder) {
        Ok(python) => test(&python, Some(&stage(&folder)?), &[]),
        Err(reason) => {
            say!("python: skipped, {REQUIREMENTS} cannot be installed: {reason}");
            Ok(())
        }
    }
}

/// Folder of the environment, the package and the wheel.
fn folder() -> Result<PathBuf> {
    Ok(built("sparsek")?.with_file_name("python"))
}

/// The interpreter, or that of `PYTHON`.
fn interpreter() -> PathBuf {
    let usual = if cfg!(windows) { "python" } else { "python3" };
    env::var_os("PYTHON").map_or_else(|| usual.into(), PathBuf::from)
}

fn lacks_python() -> Option<String> {
    let python = interpreter();
    match succeeds(Command::new(&python).args(["-c", PROBE])) {
        true => None,
        false => Some(format!(
            "{} of version 3.11 or later with venv and pip is needed (python3-venv on Debian)",
            python.display()
        )),
    }
}

/// A virtual environment with the pinned packages; returns its interpreter.
fn environment(folder: &Path) -> Result<PathBuf> {
    let place = folder.join("venv");
    let python = match cfg!(windows) {
        true => place.join("Scripts/python.exe"),
        false => place.join("bin/python"),
    };
    if !succeeds(Command::new(&python).args(["-m", "pip", "--version"])) {
        run(Command::new(interpreter()).args(["-m", "venv", "--clear"]).arg(&place))?;
    }
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
    run(Command::new(&python).args(install).arg(root().join(REQUIREMENTS)))?;
    Ok(python)
}

/// Puts the package together as a wheel has it: Python files and library.
fn stage(folder: &Path) -> Result<PathBuf> {
    let place = folder.join("package");
    let package = place.join("sparsek");
    if package.exists() {
        fs::remove_dir_all(&package).map_err(|e| format!("{}: {e}", package.display()))?;
    }
    fs::create_dir_all(&package).map_err(|e| format!("{}: {e}", package.display()))?;
    let source = root().join("python/sparsek");
    let files = fs::read_dir(&source).map_err(|e| format!("{}: {e}", source.display()))?;
    for file in files.flatten().filter(|file| file.path().is_file()) {
        copy(&file.path(), &package.join(file.file_name()))?;
    }
    let (prefix, suffix) = (env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
    let library = built("sparsek")?.with_file_name(format!("{prefix}sparsek_python{suffix}"));
    let module = if cfg!(windows) { "_native.pyd" } else { "_native.abi3.so" };
    copy(&library, &package.join(module))?;
    Ok(place)
}

fn copy(from: &Path, to: &Path) -> Result {
    fs::copy(from, to).map(drop).map_err(|e| format!("{}: {e}", from.display()))
}

fn install_wheel(folder: &Path, python: &Path) -> Result {
    let wheels = folder.join("wheels");
    if wheels.exists() {
        fs::remove_dir_all(&wheels).map_err(|e| format!("{}: {e}", wheels.display()))?;
    }
    let build = ["-m", "maturin", "build", "--release", "--locked", "--interpreter"];
    run(Command::new(python)
        .args(build)
        .arg(python)
        .arg("--out")
        .arg(&wheels)
        .current_dir(root()))?;
    let install = ["-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps"];
    let found = fs::read_dir(&wheels).map_err(|e| format!("{}: {e}", wheels.display()))?;
    let found = found.flatten().map(|wheel| wheel.path());
    run(Command::new(python).args(install).args(found))
}

/// Runs pytest on the package in a folder, or on the installed one.
fn test(python: &Path, package: Option<&Path>, arguments: &[String]) -> Result {
    let mut command = Command::new(python);
    command.args(["-P", "-m", "pytest", "-p", "no:cacheprovider"]).args(arguments);
    command.current_dir(root()).env_remove("PYTHONPATH");
    if let Some(package) = package {
        command.env("PYTHONPATH", package);
    }
    run(&mut command)
}
