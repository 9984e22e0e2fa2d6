//! `cargo xtask test`.

use clap::{Args, ValueEnum};

use crate::environment::{can_build_cpu, ensure_vulkan};
use crate::process::{Result, cargo, run};

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

#[derive(Args)]
pub struct Options {
    /// Backends that must be there; flex, vulkan, and cpu where it can be built, if not given.
    #[arg(long, value_enum, value_delimiter = ',')]
    backend: Vec<Backend>,
    /// Only the run without fusion.
    #[arg(long)]
    fusion_off: bool,
    /// Tries every fault, not a sample.
    #[arg(long)]
    all_faults: bool,
    /// Only cases whose name contains this.
    filter: Option<String>,
}

impl Options {
    /// Everything: each backend, and every fault where faults can be made.
    pub fn all() -> Self {
        Self {
            backend: Vec::new(),
            fusion_off: false,
            all_faults: cfg!(target_os = "linux"),
            filter: None,
        }
    }
}

/// The backends of a run, and the features that link them.
pub struct Plan {
    backends: Vec<Backend>,
    /// The backend that was left out, and why.
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

    /// Prints the backend that was left out, at the end, where it is seen.
    pub fn print_skipped(&self) {
        self.skipped.iter().for_each(|line| say!("{line}"));
    }

    /// Arguments for a cargo command on the whole workspace. All commands share them, so that they
    /// share what they build.
    pub fn cargo(&self, command: &str) -> Vec<String> {
        let packages = ["sparsek-tests", "sparsek-examples", "sparsek-bench"];
        let mut arguments = strings(&[command, "--workspace", "--exclude", "xtask"]);
        arguments.extend(self.features(&packages, true));
        arguments
    }

    /// Arguments for a cargo command on the suite's package alone, with fusion or without.
    fn suite(&self, command: &str, fusion: bool) -> Vec<String> {
        let mut arguments = strings(&[command, "--package", "sparsek-tests", "--test", "suite"]);
        arguments.extend(self.features(&["sparsek-tests"], fusion));
        arguments
    }

    fn features(&self, packages: &[&str], fusion: bool) -> Vec<String> {
        let mut linked: Vec<String> = self.backends.iter().map(|b| b.name()).collect();
        // Unit tests and examples need one backend that is always there.
        linked.push("flex".into());
        if fusion {
            linked.push("fusion".into());
        }
        linked.sort();
        linked.dedup();
        let pairs = packages
            .iter()
            .flat_map(|package| linked.iter().map(move |name| format!("{package}/{name}")));
        let features: Vec<String> = pairs.collect();
        let mut arguments = strings(&["--no-default-features", "--features"]);
        arguments.push(features.join(","));
        arguments
    }

    /// The backends as the suite takes them.
    fn names(backends: &[Backend]) -> String {
        let names: Vec<String> = backends.iter().map(|backend| backend.name()).collect();
        names.join(",")
    }
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_string()).collect()
}

/// Runs every test of the workspace, then the suite's tensor cases without fusion.
pub fn run_plan(plan: &Plan, options: &Options) -> Result {
    if !options.fusion_off {
        let backends = Plan::names(&plan.backends);
        match &options.filter {
            None => {
                let mut command = cargo(plan.cargo("test"));
                command.env("SPARSEK_BACKENDS", backends);
                if options.all_faults {
                    command.env("FAULTS", "all");
                }
                run(&mut command)?;
            }
            Some(filter) => run(cargo(plan.suite("test", true))
                .args(["--", filter])
                .env("SPARSEK_BACKENDS", backends))?,
        }
    }
    let mut fused: Vec<Backend> = plan
        .backends
        .iter()
        .copied()
        .filter(|b| *b != Backend::Flex)
        .collect();
    // The kernels are the same without fusion. The CPU runtime is the slowest: only if asked for.
    if options.backend.is_empty() {
        fused.retain(|b| *b != Backend::Cpu);
    }
    if fused.is_empty() {
        say!("nothing to run without fusion: flex does not fuse");
        return match options.fusion_off {
            true => Err("nothing ran".into()),
            false => Ok(()),
        };
    }
    match options.filter.as_deref() {
        Some(filter) if !options.fusion_off && !filter.contains("tensor") => Ok(()),
        filter => {
            say!("\n== the suite without fusion");
            run(cargo(plan.suite("test", false))
                .args(["--", filter.unwrap_or("tensor/")])
                .env("SPARSEK_BACKENDS", Plan::names(&fused)))
        }
    }
}

/// The command.
pub fn command(options: &Options) -> Result {
    let plan = Plan::new(&options.backend)?;
    run_plan(&plan, options)?;
    plan.print_skipped();
    Ok(())
}
