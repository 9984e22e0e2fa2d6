//! Opens the device that `--backend` names.
use std::fmt;

use burn::tensor::Device;
#[allow(unused_imports, reason = "which are used depends on what is linked")]
use burn::tensor::{DeviceKind, DeviceType};
use clap::ValueEnum;
use sparsek::io::text::excerpt;

/// A backend to compute with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Choice {
    /// A GPU if there is one, else Flex.
    Auto,
    /// An NVIDIA GPU through CUDA.
    Cuda,
    /// A Vulkan device, a software one if no other.
    Vulkan,
    /// An Apple GPU.
    Metal,
    /// The platform's graphics API.
    Wgpu,
    /// As `wgpu`, whose shaders are WGSL unless `vulkan` or `metal` is linked.
    #[value(name = "webgpu")]
    WebGpu,
    /// An AMD GPU through ROCm.
    Rocm,
    /// CubeCL's CPU runtime.
    Cpu,
    /// Burn's pure-Rust CPU backend.
    Flex,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Cuda => "cuda",
            Self::Vulkan => "vulkan",
            Self::Metal => "metal",
            Self::Wgpu => "wgpu",
            Self::WebGpu => "webgpu",
            Self::Rocm => "rocm",
            Self::Cpu => "cpu",
            Self::Flex => "flex",
        })
    }
}

/// An open device.
#[derive(Clone, Debug)]
pub struct Backend {
    /// Its backend, never [`Choice::Auto`].
    pub choice: Choice,
    /// The device.
    pub device: Device,
    /// The device's name.
    pub name: String,
    /// Whether a graphics API computes on the CPU, as Mesa's llvmpipe.
    pub software: bool,
}

impl Backend {
    /// Opens a device; also returns whether it is a card.
    fn new(choice: Choice, device: Device) -> Result<(Self, bool), BackendError> {
        let (name, card) = identify(&device).ok_or(BackendError::Absent(choice))?;
        let software = is_software(&device) || (on_graphics(choice) && is_software_name(&name));
        let backend = Self { choice, device, name, software };
        Ok((backend, card))
    }

    /// Whether the device computes beside the host, in memory of its own.
    pub fn has_own_memory(&self) -> bool {
        !self.software && !matches!(self.choice, Choice::Flex | Choice::Cpu)
    }

    /// Bytes that the device has left beside ours, if it knows its capacity.
    pub fn free_memory(&self) -> Option<u64> {
        #[cfg(feature = "kernels")]
        if let burn::backend::DispatchDevice::Cube(device) = self.device.as_dispatch() {
            let all = device.client().properties().memory.max_memory()?;
            let used = self.device.memory_pool_usage().map_or(0, |pools| pools.bytes_in_use);
            return Some(all.saturating_sub(used));
        }
        None
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.choice, self.name)
    }
}

/// Why a device cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendError {
    /// The program was built without the backend.
    NotLinked(Choice),
    /// No such device or driver.
    Absent(Choice),
    /// A device number out of range.
    Number {
        /// The backend.
        choice: Choice,
        /// The number asked.
        number: usize,
        /// How many there are.
        count: usize,
    },
    /// A software device, which cannot train.
    Software {
        /// The backend.
        choice: Choice,
        /// The device's own name.
        name: String,
    },
}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLinked(Choice::Auto) => f.write_str("no backend: build with --features flex"),
            Self::NotLinked(choice) => {
                write!(f, "backend {choice} is not linked: build with --features {choice}")
            }
            Self::Absent(choice) => {
                write!(f, "backend {choice}: no such device or driver on this machine")
            }
            Self::Number { choice, number, count } => {
                write!(f, "backend {choice}: no device {number}; there are {count}, counted from 0")
            }
            Self::Software { choice, name } => write!(
                f,
                "backend {choice}: {} computes on the CPU and cannot train; \
                 use --backend flex",
                excerpt(name)
            ),
        }
    }
}

impl std::error::Error for BackendError {}

/// Opens a device. `Auto` takes the first real GPU of CUDA, ROCm, Metal, Vulkan and wgpu, else
/// Flex.
///
/// # Errors
/// [`BackendError`] when the backend is not linked or has no device.
pub fn open(choice: Choice) -> Result<Backend, BackendError> {
    #[cfg(feature = "cache")]
    if choice != Choice::Flex {
        keep_kernels();
    }
    if choice != Choice::Auto {
        let device = devices(choice)?.into_iter().next();
        let device = device.ok_or(BackendError::Absent(choice))?;
        return Ok(Backend::new(choice, device)?.0);
    }
    let gpus =
        [Choice::Cuda, Choice::Rocm, Choice::Metal, Choice::Vulkan, Choice::Wgpu, Choice::WebGpu];
    for choice in gpus {
        for device in devices(choice).unwrap_or_default() {
            if is_software(&device) {
                continue;
            }
            if let Ok((backend, true)) = Backend::new(choice, device) {
                return Ok(backend);
            }
        }
    }
    open(if cfg!(feature = "flex") { Choice::Flex } else { Choice::Cpu }).map_err(|error| {
        match error {
            BackendError::NotLinked(_) => BackendError::NotLinked(Choice::Auto),
            absent => absent,
        }
    })
}

/// Says how to link a GPU, if no GPU backend is linked.
pub fn hint() -> Option<&'static str> {
    let linked = cfg!(any(
        feature = "cuda",
        feature = "rocm",
        feature = "metal",
        feature = "vulkan",
        feature = "wgpu",
        feature = "webgpu"
    ));
    (!linked).then_some("no GPU backend is linked: add --features vulkan, metal or cuda for one")
}

/// Enables the kernel cache, or prints why not.
#[cfg(feature = "cache")]
fn keep_kernels() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        if let Err(error) = sparsek::cache::enable() {
            crate::note!("{error}");
        }
    });
}

/// Opens devices by number, or the best one without numbers.
///
/// # Errors
/// [`BackendError`] as [`open`], and for a number out of range.
pub fn open_each(choice: Choice, numbers: &[usize]) -> Result<Vec<Backend>, BackendError> {
    let best = open(choice)?;
    if numbers.is_empty() {
        return Ok(vec![best]);
    }
    let choice = best.choice;
    let devices = devices(choice)?;
    let count = devices.len();
    let open = |&number: &usize| {
        let device = devices.get(number).ok_or(BackendError::Number { choice, number, count })?;
        Ok(Backend::new(choice, device.clone())?.0)
    };
    numbers.iter().map(open).collect()
}

/// Refuses software devices for training: there, shared-memory kernels such as Burn's matrix
/// product crash the process.
///
/// # Errors
/// [`BackendError::Software`] for the first one.
pub fn check_training(backends: &[Backend]) -> Result<(), BackendError> {
    match backends.iter().find(|backend| backend.software) {
        Some(Backend { choice, name, .. }) => {
            Err(BackendError::Software { choice: *choice, name: name.clone() })
        }
        None => Ok(()),
    }
}

/// Lists devices, best first, without opening them.
fn devices(choice: Choice) -> Result<Vec<Device>, BackendError> {
    match choice {
        #[cfg(feature = "cuda")]
        Choice::Cuda => Ok(Device::enumerate(DeviceType::Cuda).into_vec()),
        #[cfg(feature = "vulkan")]
        Choice::Vulkan => Ok(Device::enumerate(DeviceType::Vulkan).into_vec()),
        #[cfg(feature = "metal")]
        Choice::Metal => Ok(Device::enumerate(DeviceType::Metal).into_vec()),
        #[cfg(feature = "wgpu")]
        Choice::Wgpu => Ok(Device::enumerate(DeviceType::Wgpu).into_vec()),
        #[cfg(feature = "webgpu")]
        Choice::WebGpu => Ok(Device::enumerate(DeviceType::Wgpu).into_vec()),
        #[cfg(feature = "rocm")]
        Choice::Rocm => Ok(Device::enumerate(DeviceType::Rocm).into_vec()),
        #[cfg(feature = "cpu")]
        Choice::Cpu => Ok(vec![Device::cpu()]),
        #[cfg(feature = "flex")]
        Choice::Flex => Ok(vec![Device::flex()]),
        #[allow(unreachable_patterns, reason = "reached by what is not linked")]
        other => Err(BackendError::NotLinked(other)),
    }
}

/// Whether it is a graphics API.
fn on_graphics(choice: Choice) -> bool {
    matches!(choice, Choice::Vulkan | Choice::Metal | Choice::Wgpu | Choice::WebGpu)
}

/// Whether Mesa or SwiftShader computes on the CPU under this name.
fn is_software_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let known = ["llvmpipe", "lavapipe", "softpipe", "swiftshader"];
    known.iter().any(|known| name.contains(known))
}

/// Whether a graphics API computes on the CPU, without opening the device.
fn is_software(device: &Device) -> bool {
    let software: &[Device] = &[
        #[cfg(feature = "vulkan")]
        Device::vulkan(DeviceKind::Cpu),
        #[cfg(feature = "metal")]
        Device::metal(DeviceKind::Cpu),
        #[cfg(any(feature = "wgpu", feature = "webgpu"))]
        Device::wgpu(DeviceKind::Cpu),
    ];
    software.contains(device)
}

/// Opens the device; returns its name and whether it is a card.
fn identify(device: &Device) -> Option<(String, bool)> {
    #[cfg(feature = "kernels")]
    {
        // A broken driver panics; treat it as absent.
        let opened = std::panic::catch_unwind(|| device.identity()).ok()?;
        if let Some(identity) = opened {
            return Some((identity.name, identity.physical.is_some()));
        }
    }
    let _ = device;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Some((format!("pure Rust, {threads} threads"), false))
}
