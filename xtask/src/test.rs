//! `cargo xtask test`.

use std::process::Command;

use clap::{Args, ValueEnum};

use crate::environment::{can_build_cpu, ensure_vulkan};
use crate::process::{Result, built, cargo, run, run_together};

/// A backend of the suite, which is a feature of the crates as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    Flex,
    Vulkan,
    Wgpu,
    Metal,
    Cuda,
    Cpu,
}

impl Backend {
    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

#[derive(Args, Default)]
pub struct Options {
    /// Backends that must be there; flex, vulkan, and cpu where it can be built, if not given.
    #[arg(long, value_enum, value_delimiter = ',')]
    backend: Vec<Backend>,
    /// Only the run without fusion.
    #[arg(long)]
    fusion_off: bool,
    /// Only cases whose name contains this.
    filter: Option<String>,
}

/// The backends that a run has, and the features that link them.
pub struct Plan {
    backends: Vec<Backend>,
    /// What was left out, and why.
    skipped: Option<String>,
}

impl Plan {
    /// Chooses the backends and prepares the machine for them.
    pub fn new(asked: &[Backend]) -> Result<Self> {
        let mut backends = asked.to_vec();
        let mut skipped = None;
        if asked.is_empty() {
            backends = vec![Backend::Flex, Backend::Vulkan];
            match can_build_cpu() {
                Ok(()) => backends.push(Backend::Cpu),
                Err(reason) => {
                    skipped = Some(format!("cpu (CubeCL's CPU runtime): skipped, {reason}"))
                }
            }
        } else if asked.contains(&Backend::Cpu) {
            can_build_cpu().map_err(|reason| format!("--backend cpu: {reason}"))?;
        }
        if backends.contains(&Backend::Vulkan) {
            ensure_vulkan()?;
        }
        Ok(Self { backends, skipped })
    }

    /// Says what was left out, at the end, where it is seen.
    pub fn print_skipped(&self) {
        self.skipped.iter().for_each(|line| say!("{line}"));
    }

    /// The same arguments for every cargo command, so that they share what they build.
    pub fn cargo(&self, command: &str, fusion: bool) -> Vec<String> {
        let mut linked: Vec<String> = self.backends.iter().map(|b| b.name()).collect();
        // The crates' own tests and examples need one backend that is always there.
        linked.push("flex".into());
        linked.sort();
        linked.dedup();
        if fusion {
            linked.push("fusion".into());
        }
        let features: Vec<String> = ["sparsek-tests", "sparsek-examples", "sparsek-bench"]
            .iter()
            .flat_map(|package| {
                linked
                    .iter()
                    .map(move |feature| format!("{package}/{feature}"))
            })
            .collect();
        let features = features.join(",");
        [
            command,
            "--release",
            "--workspace",
            "--exclude",
            "xtask",
            "--no-default-features",
            "--features",
            &features,
        ]
        .map(str::to_string)
        .to_vec()
    }
}

/// Runs the unit tests and the suite.
pub fn run_plan(plan: &Plan, options: &Options) -> Result {
    if !options.fusion_off {
        if options.filter.is_none() {
            run(cargo(plan.cargo("test", true)).arg("--lib"))?;
        }
        suite(plan, &plan.backends, true, options.filter.as_deref())?;
    }
    let mut fused: Vec<Backend> = plan
        .backends
        .iter()
        .copied()
        .filter(|b| *b != Backend::Flex)
        .collect();
    // Kernels are the same without fusion, and the CPU runtime is the slowest to run them: only where it is asked for.
    if options.backend.is_empty() {
        fused.retain(|b| *b != Backend::Cpu);
    }
    if fused.is_empty() {
        say!("without fusion there is nothing to run: flex has none");
        return if options.fusion_off {
            Err("nothing ran".into())
        } else {
            Ok(())
        };
    }
    match options.filter.as_deref() {
        Some(filter) if !options.fusion_off && !filter.contains("tensor") => Ok(()),
        filter => suite(plan, &fused, false, Some(filter.unwrap_or("tensor/"))),
    }
}

fn suite(plan: &Plan, backends: &[Backend], fusion: bool, filter: Option<&str>) -> Result {
    say!(
        "\n== the suite {} fusion",
        if fusion { "with" } else { "without" }
    );
    run(cargo(plan.cargo("build", fusion)).args(["--bin", "suite"]))?;
    // A process for each backend: a case compiles kernels with one thread most of the time.
    let program = built("suite")?;
    let commands = backends.iter().map(|backend| {
        let mut command = Command::new(&program);
        command.args(["--backend", &backend.name()]).args(filter);
        command
    });
    run_together(commands.collect())
}

/// The command.
pub fn command(options: &Options) -> Result {
    let plan = Plan::new(&options.backend)?;
    run_plan(&plan, options)?;
    plan.print_skipped();
    Ok(())
}
