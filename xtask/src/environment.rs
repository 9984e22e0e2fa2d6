//! Requirements of the machine: a Vulkan driver, and LLVM for CubeCL's CPU runtime.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{Result, root, run, succeeds};

const VULKAN_PACKAGES: [&str; 2] = ["mesa-vulkan-drivers", "libvulkan1"];

/// Ensures a Vulkan loader and driver; on Debian as root it installs Mesa's software driver.
pub fn ensure_vulkan() -> Result {
    // Elsewhere the graphics driver brings the loader; the suite reports if it is missing.
    if !cfg!(target_os = "linux") || has_vulkan() {
        return Ok(());
    }
    let packages = VULKAN_PACKAGES.join(" ");
    if is_root() && succeeds(Command::new("apt-get").arg("--version")) {
        say!("no Vulkan driver was found: installing {packages}");
        run(Command::new("apt-get").args(["update", "-qq"]))?;
        let install = ["install", "-y", "-qq", "--no-install-recommends"];
        run(Command::new("apt-get")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(install)
            .args(VULKAN_PACKAGES))?;
        if has_vulkan() {
            return Ok(());
        }
    }
    Err(format!(
        "no Vulkan loader or driver was found. Install your GPU's Vulkan driver, or Mesa's \
         software driver ({packages} on Debian and Ubuntu, mesa-vulkan-drivers and vulkan-loader \
         on Fedora, vulkan-swrast on Arch), or leave Vulkan out with --backend flex"
    ))
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn has_vulkan() -> bool {
    let named =
        ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"].iter().any(|name| env::var_os(name).is_some());
    let mut folders = vec![
        "/usr/share/vulkan/icd.d".into(),
        "/usr/local/share/vulkan/icd.d".into(),
        "/etc/vulkan/icd.d".into(),
    ];
    folders.extend(data_home().map(|data| data.join("vulkan/icd.d")));
    let driver = named || folders.iter().any(|folder: &PathBuf| has_json(folder));
    let listed = |program: &str| {
        let output = Command::new(program).arg("-p").output();
        output.map(|output| output.stdout.windows(14).any(|word| word == b"libvulkan.so.1"))
    };
    // Without ldconfig, assume the loader.
    let loader = listed("ldconfig").or_else(|_| listed("/sbin/ldconfig")).unwrap_or(true);
    driver && loader
}

fn has_json(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else {
        return false;
    };
    entries
        .flatten()
        .any(|entry| entry.path().extension().is_some_and(|extension| extension == "json"))
}

fn data_home() -> Option<PathBuf> {
    let home = || env::var_os("HOME").map(PathBuf::from);
    if cfg!(target_os = "windows") {
        env::var_os("LOCALAPPDATA").map(PathBuf::from)
    } else if cfg!(target_os = "macos") {
        home().map(|home| home.join("Library/Application Support"))
    } else {
        env::var_os("XDG_DATA_HOME")
            .map(PathBuf::from)
            .or_else(|| home().map(|home| home.join(".local/share")))
    }
}

/// Names a script that installs CubeCL's LLVM bundle where it cannot be downloaded.
const LLVM_SETUP: &str = "SPARSEK_LLVM_SETUP";

/// Runs the script that `SPARSEK_LLVM_SETUP` names, if it is set.
pub fn set_up_llvm() -> Result {
    match env::var_os(LLVM_SETUP).filter(|script| !script.is_empty()) {
        Some(script) => run(Command::new("bash").arg(script)),
        None => Ok(()),
    }
}

/// Checks that CubeCL's CPU runtime can be built: its build script finds or downloads LLVM, and a
/// C++ compiler links it. The error is the reason.
pub fn can_build_cpu() -> Result {
    if !can_link_llvm() {
        return Err(
            "the C++ compiler does not link LLVM's dependencies (zlib, zstd, libxml2)".into()
        );
    }
    let version = llvm_version()?;
    let place = data_home().map(|data| data.join(format!("tracel/tracel-llvm-{version}")));
    if place.is_some_and(|place| place.join(".tracel-llvm-installed").exists()) {
        return Ok(());
    }
    let url = format!("https://github.com/tracel-ai/tracel-llvm/releases/tag/v{version}");
    if succeeds(Command::new("curl").args([
        "-sfIL",
        "--max-time",
        "20",
        "-o",
        if cfg!(windows) { "NUL" } else { "/dev/null" },
        &url,
    ])) {
        return Ok(());
    }
    Err(format!("LLVM {version} is not installed and {url} cannot be reached"))
}

/// Whether the C++ compiler finds the libraries that LLVM needs.
fn can_link_llvm() -> bool {
    if cfg!(not(target_os = "linux")) {
        return true;
    }
    let output = env::temp_dir().join(format!("sparsek-link-{}", std::process::id()));
    let mut probe = Command::new("c++");
    probe.args(["-shared", "-x", "c++", "/dev/null", "-lz", "-lzstd", "-lxml2", "-o"]);
    let linked = succeeds(probe.arg(&output));
    let _ = fs::remove_file(&output);
    linked
}

/// Version of the LLVM bundle in `Cargo.lock`.
fn llvm_version() -> Result<String> {
    let lock = root().join("Cargo.lock");
    let text = fs::read_to_string(&lock).map_err(|e| format!("{}: {e}", lock.display()))?;
    let mut lines = text.lines().skip_while(|line| *line != "name = \"tracel-llvm-bundler\"");
    let version = lines
        .nth(1)
        .and_then(|line| line.strip_prefix("version = \""))
        .and_then(|rest| rest.strip_suffix('"'));
    version
        .map(str::to_string)
        .ok_or_else(|| "Cargo.lock does not name the LLVM bundle".to_string())
}
