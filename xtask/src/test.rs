//! `cargo xtask test`.

use clap::{Args, ValueEnum};

use crate::{
    environment::{can_build_cpu, ensure_vulkan, set_up_llvm},
    process::{Result, cargo, run},
};

/// A backend of the suite, and a feature of the crates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    Flex,
    Vulkan,
    Wgpu,
    #[value(name = "webgpu")]
    WebGpu,
    Metal,
    Cuda,
    Rocm,
    Cpu,
}

impl Backend {
    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

#[derive(Args)]
pub struct Options {
    /// Backends that must be present. Default: flex, vulkan, and cpu if it can be built.
    #[arg(long, value_enum, value_delimiter = ',')]
    backend: Vec<Backend>,
    /// Runs only without fusion.
    #[arg(long)]
    fusion_off: bool,
    /// Tries every fault instead of a sample.
    #[arg(long)]
    all_faults: bool,
    /// Runs only cases whose name contains this.
    filter: Option<String>,
}

impl Options {
    /// Every backend, and every fault where faults can be made.
    pub fn all() -> Self {
        Self {
            backend: Vec::new(),
            fusion_off: false,
            all_faults: cfg!(target_os = "linux"),
            filter: None,
        }
    }
}

/// Backends of a run, and the features that link them.
pub struct Plan {
    backends: Vec<Backend>,
    /// The skipped backend and the reason.
    skipped: Option<String>,
}

impl Plan {
    /// Chooses the backends and prepares the machine.
    pub fn new(requested: &[Backend]) -> Result<Self> {
        let mut backends = requested.to_vec();
        let mut skipped = None;
        if requested.is_empty()
            || requested.iter().any(|b| matches!(b, Backend::Cpu | Backend::Cuda))
        {
            set_up_llvm()?;
        }
        if requested.is_empty() {
            backends = vec![Backend::Flex, Backend::Vulkan];
            match can_build_cpu() {
                Ok(()) => backends.push(Backend::Cpu),
                Err(reason) => {
                    skipped = Some(format!("cpu (CubeCL's CPU runtime): skipped, {reason}"))
                }
            }
        } else if requested.contains(&Backend::Cpu) {
            can_build_cpu().map_err(|reason| format!("--backend cpu: {reason}"))?;
        }
        if backends.contains(&Backend::Vulkan) {
            ensure_vulkan()?;
        }
        Ok(Self { backends, skipped })
    }

    /// Prints the skipped backend.
    pub fn print_skipped(&self) {
        self.skipped.iter().for_each(|line| say!("{line}"));
    }

    /// Arguments of a cargo command on the workspace. All commands share them, and so their builds.
    pub fn cargo(&self, command: &str) -> Vec<String> {
        let mut features = Vec::new();
        for package in ["sparsek-tests", "sparsek-examples", "sparsek-bench"] {
            features.extend(self.features(package));
            features.push(format!("{package}/fusion"));
        }
        features.push("sparsek-examples/download".into());
        features.extend(self.python());
        workspace(command, &features)
    }

    /// The same without fusion, for the suite; the programs are linked with Flex only.
    fn without_fusion(&self, command: &str) -> Vec<String> {
        let mut features = self.features("sparsek-tests");
        features.push("sparsek-examples/flex".into());
        features.push("sparsek-bench/flex".into());
        features.push("sparsek-python/flex".into());
        workspace(command, &features)
    }

    fn features(&self, package: &str) -> Vec<String> {
        let mut linked: Vec<String> = self.backends.iter().map(|b| b.name()).collect();
        // Unit tests and examples need Flex.
        linked.push("flex".into());
        linked.sort();
        linked.dedup();
        let features = linked.iter().map(|name| format!("{package}/{name}"));
        features.collect()
    }

    /// Features of the Python module, which has few backends. All are on for the other packages.
    fn python(&self) -> impl Iterator<Item = String> {
        let features = self.features("sparsek-python").into_iter();
        features.filter(|name| ["/flex", "/vulkan", "/cuda"].iter().any(|end| name.ends_with(end)))
    }

    /// Value of `SPARSEK_BACKENDS`.
    fn names(backends: &[Backend]) -> String {
        let names: Vec<String> = backends.iter().map(|backend| backend.name()).collect();
        names.join(",")
    }
}

/// `cargo bench` has the release profile by itself and refuses the flag.
fn workspace(command: &str, features: &[String]) -> Vec<String> {
    let features = features.join(",");
    let profile: &[&str] = if command == "bench" { &[] } else { &["--release"] };
    let rest =
        ["--workspace", "--exclude", "xtask", "--no-default-features", "--features", &features];
    [&[command], profile, &rest].concat().into_iter().map(str::to_string).collect()
}

/// Runs all tests of the workspace, then the suite's tensor cases without fusion.
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
            Some(filter) => run(cargo(plan.cargo("test"))
                .args(["--test", "suite", "--", filter])
                .env("SPARSEK_BACKENDS", backends))?,
        }
    }
    let mut fused: Vec<Backend> =
        plan.backends.iter().copied().filter(|b| *b != Backend::Flex).collect();
    // Kernels do not depend on fusion. The CPU runtime is slow: only on request.
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
            run(cargo(plan.without_fusion("test"))
                .args(["--test", "suite", "--", filter.unwrap_or("tensor/")])
                .env("SPARSEK_BACKENDS", Plan::names(&fused)))
        }
    }
}

/// Runs `cargo xtask test`.
pub fn command(options: &Options) -> Result {
    let plan = Plan::new(&options.backend)?;
    run_plan(&plan, options)?;
    plan.print_skipped();
    Ok(())
}
