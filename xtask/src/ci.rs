//! `cargo xtask ci`.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{
    check, guide,
    process::{Result, built, cargo, root, run, show, succeeds},
    python,
    test::{self, Plan},
    web,
};

/// Runs all checks of a change, the quick ones first.
pub fn command() -> Result {
    let plan = Plan::new(&[])?;
    run(&mut cargo(["fmt", "--all", "--check"]))?;
    check::sources()?;
    check::test_targets()?;
    run(cargo(plan.cargo("clippy")).args(["--all-targets", "--", "-D", "warnings"]))?;
    run(&mut cargo(CLIPPY_XTASK))?;
    run(&mut cargo(CLIPPY_FLEX))?;
    // What docs.rs gets needs no LLVM.
    run(cargo(CHECK_OTHERS).env("DOCS_RS", "1"))?;
    run(cargo(CLIPPY_PYTHON_CUDA).env("DOCS_RS", "1"))?;
    run(cargo(plan.cargo("doc")).arg("--no-deps").env("RUSTDOCFLAGS", "-D warnings"))?;
    run(&mut cargo(PACKAGE))?;
    // The fault tests and the examples run the programs; Python loads its module.
    run(cargo(plan.cargo("build")).args(["--bins", "--lib"]))?;
    // docs/performance.md is what the records say.
    run(Command::new(built("sparsek-bench")?).args(["report", "--check"]).current_dir(root()))?;
    examples()?;
    // Each case of `cargo bench` runs once, checked.
    run(cargo(plan.cargo("bench"))
        .args(["--benches", "--", "--test"])
        .env("SPARSEK_BACKENDS", "flex"))?;
    deny()?;
    guide::check()?;
    web::check()?;
    python::check()?;
    test::run_plan(&plan, &test::Options::all())?;
    plan.print_skipped();
    say!("\nall checks passed");
    Ok(())
}

/// Checks licenses and sources of dependencies; advisories need the network.
fn deny() -> Result {
    if !succeeds(&mut cargo(["deny", "--version"])) {
        say!("cargo deny: skipped, install it with `cargo install --locked cargo-deny`");
        return Ok(());
    }
    run(&mut cargo(["deny", "check", "licenses", "sources", "bans"]))
}

/// Packs the crates as crates.io gets them. Their own tests compile them.
const PACKAGE: [&str; 8] = [
    "package",
    "--package=sparsek-kernels",
    "--package=sparsek",
    "--package=sparsek-gnn",
    "--no-verify",
    "--allow-dirty",
    "--quiet",
    "--locked",
];

const CLIPPY_XTASK: [&str; 8] =
    ["clippy", "--release", "--package", "xtask", "--all-targets", "--", "-D", "warnings"];

/// Flex alone, without CubeCL: what the README's first command builds.
const CLIPPY_FLEX: [&str; 14] = [
    "clippy",
    "--release",
    "--package",
    "sparsek-gnn",
    "--package",
    "sparsek-examples",
    "--lib",
    "--bins",
    "--no-default-features",
    "--features",
    "sparsek-gnn/flex,sparsek-examples/flex",
    "--",
    "-D",
    "warnings",
];

/// The exchange of CUDA arrays, which no machine without a card runs.
const CLIPPY_PYTHON_CUDA: [&str; 10] = [
    "clippy",
    "--release",
    "--package",
    "sparsek-python",
    "--no-default-features",
    "--features",
    "flex,vulkan,cuda",
    "--",
    "-D",
    "warnings",
];

/// Runtimes that no test runs on.
const CHECK_OTHERS: [&str; 7] = [
    "check",
    "--release",
    "--package",
    "sparsek-gnn",
    "--no-default-features",
    "--features",
    "sparsek-gnn/flex,sparsek-gnn/rocm,sparsek-gnn/webgpu",
];

/// Runs the examples, and checks that they refuse bad requests.
fn examples() -> Result {
    let folder = env::temp_dir().join(format!("sparsek-ci-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let result = smoke(&folder);
    fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    result
}

fn smoke(folder: &Path) -> Result {
    say!("\n== examples");
    run(&mut maxk(folder, "--backend flex --epochs 3 --log run.jsonl --plot run.svg")?)?;
    for (file, needle) in [("run.jsonl", "\"summary\":true"), ("run.svg", "<svg")] {
        let text = fs::read_to_string(folder.join(file)).map_err(|e| format!("{file}: {e}"))?;
        if !text.replace(": ", ":").contains(needle) {
            return Err(format!("{file} lacks {needle}"));
        }
    }
    let small = "--format karate --k 4 --hidden 16 --layers 2 --epochs 5 --backend flex";
    run(&mut maxk(folder, &format!("train {small} --topk early:4 --checkpoint saved"))?)?;
    run(&mut maxk(folder, "eval --format karate --checkpoint saved --backend flex")?)?;

    let outputs = "--log bad.jsonl --plot bad.svg --checkpoint bad --backend flex";
    let refused = [
        ("train --data no-such-folder --format graphsaint", "no-such-folder"),
        ("train --format karate --k 17 --hidden 16", "17"),
        ("train --format karate --topk early:x", "early:x"),
    ];
    for (arguments, word) in refused {
        refuses(folder, &format!("{arguments} {outputs}"), word)?;
    }
    refuses(folder, "eval --format karate --checkpoint nowhere --backend flex", "nowhere")
}

fn maxk(folder: &Path, arguments: &str) -> Result<Command> {
    let mut command = Command::new(built("maxk")?);
    command.current_dir(folder).args(arguments.split(' '));
    Ok(command)
}

/// Checks that the program exits with status 2, prints one line with `word`, and writes no file.
fn refuses(folder: &Path, arguments: &str, word: &str) -> Result {
    let before = count(folder)?;
    let mut command = maxk(folder, arguments)?;
    say!("$ {}", show(&command));
    let output = command.output().map_err(|e| format!("maxk: {e}"))?;
    let message = String::from_utf8_lossy(&output.stderr);
    say!("  {}", message.trim_end());
    let lines = message.lines().filter(|line| !line.is_empty()).count();
    if output.status.code() != Some(2) || lines != 1 || !message.contains(word) {
        return Err(format!("expected one line with {word} and exit status 2: {}", output.status));
    }
    if count(folder)? != before {
        return Err("a refused run left files behind".into());
    }
    Ok(())
}

fn count(folder: &Path) -> Result<usize> {
    fs::read_dir(folder)
        .map(|entries| entries.count())
        .map_err(|e| format!("{}: {e}", folder.display()))
}
