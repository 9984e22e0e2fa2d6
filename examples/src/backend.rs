//! From `--backend` to a device.
use std::fmt;

use burn::tensor::Device;
#[allow(unused_imports, reason = "which are used depends on what is linked")]
use burn::tensor::{DeviceKind, DeviceType};
use clap::ValueEnum;
use sparsek::io::text::excerpt;

/// What to compute with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Choice {
    /// A GPU if there is one, else Flex.
    Auto,
    /// An NVIDIA GPU through CUDA.
    Cuda,
    /// A Vulkan device, a software one if there is no other.
    Vulkan,
    /// An Apple GPU.
    Metal,
    /// A device of whichever graphics API the platform has.
    Wgpu,
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
            Self::Cpu => "cpu",
            Self::Flex => "flex",
        })
    }
}

/// A device that is there.
#[derive(Clone, Debug)]
pub struct Backend {
    /// What was chosen, never [`Choice::Auto`].
    pub choice: Choice,
    /// The device.
    pub device: Device,
    /// The device's own name.
    pub name: String,
    /// Whether a graphics API computes on the CPU here, as Mesa's llvmpipe does.
    pub software: bool,
}

impl Backend {
    /// Opens a device; tells whether it is a card, too.
    fn new(choice: Choice, device: Device) -> Result<(Self, bool), BackendError> {
        let (name, card) = identify(&device).ok_or(BackendError::Absent(choice))?;
        let software = is_software(&device) || (on_graphics(choice) && is_software_name(&name));
        let backend = Self {
            choice,
            device,
            name,
            software,
        };
        Ok((backend, card))
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.choice, self.name)
    }
}

/// Why there is no such device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendError {
    /// The program was built without the backend.
    NotLinked(Choice),
    /// The machine has no such device, or its driver is missing.
    Absent(Choice),
    /// The machine has fewer such devices.
    Number {
        /// The backend.
        choice: Choice,
        /// The number asked.
        number: usize,
        /// How many there are.
        count: usize,
    },
    /// The device is a software one, which cannot train.
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
            Self::NotLinked(choice) => write!(
                f,
                "backend {choice} is not linked: build with --features {choice}"
            ),
            Self::Absent(choice) => write!(
                f,
                "backend {choice}: no such device, or no driver for it, on this machine"
            ),
            Self::Number {
                choice,
                number,
                count,
            } => write!(
                f,
                "backend {choice}: there is no device {number}, only {count} counted from 0"
            ),
            Self::Software { choice, name } => write!(
                f,
                "backend {choice}: {} computes on the CPU and cannot run what training needs; \
                 use --backend flex",
                excerpt(name)
            ),
        }
    }
}

impl std::error::Error for BackendError {}

/// Finds the device. `Auto` takes the first real GPU of CUDA, Metal, Vulkan and wgpu, and Flex where there is none.
///
/// # Errors
/// [`BackendError`] when the backend is not linked or has no device here.
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
    for choice in [Choice::Cuda, Choice::Metal, Choice::Vulkan, Choice::Wgpu] {
        for device in devices(choice).unwrap_or_default() {
            if is_software(&device) {
                continue;
            }
            if let Ok((backend, true)) = Backend::new(choice, device) {
                return Ok(backend);
            }
        }
    }
    open(if cfg!(feature = "flex") {
        Choice::Flex
    } else {
        Choice::Cpu
    })
    .map_err(|error| match error {
        BackendError::NotLinked(_) => BackendError::NotLinked(Choice::Auto),
        absent => absent,
    })
}

/// Keeps compiled kernels on disk, or says in one line why not.
#[cfg(feature = "cache")]
fn keep_kernels() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        if let Err(error) = sparsek::cache::enable() {
            crate::note!("{error}");
        }
    });
}

/// Finds several devices by their numbers in the backend's list, or its best where there are no numbers.
///
/// # Errors
/// [`BackendError`] as for [`open`], and when there is no device of such a number.
pub fn open_each(choice: Choice, numbers: &[usize]) -> Result<Vec<Backend>, BackendError> {
    let best = open(choice)?;
    if numbers.is_empty() {
        return Ok(vec![best]);
    }
    let choice = best.choice;
    let devices = devices(choice)?;
    let count = devices.len();
    let open = |&number: &usize| {
        let device = devices.get(number).ok_or(BackendError::Number {
            choice,
            number,
            count,
        })?;
        Ok(Backend::new(choice, device.clone())?.0)
    };
    numbers.iter().map(open).collect()
}

/// Refuses devices that cannot run a model: on software devices of graphics APIs, kernels with
/// shared memory end the process, and Burn's matrix product is one.
///
/// # Errors
/// [`BackendError::Software`], for the first of them.
pub fn check_training(backends: &[Backend]) -> Result<(), BackendError> {
    match backends.iter().find(|backend| backend.software) {
        Some(Backend { choice, name, .. }) => Err(BackendError::Software {
            choice: *choice,
            name: name.clone(),
        }),
        None => Ok(()),
    }
}

/// The backend's devices, best first. Listing opens none and needs no driver.
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
        #[cfg(feature = "cpu")]
        Choice::Cpu => Ok(vec![Device::cpu()]),
        #[cfg(feature = "flex")]
        Choice::Flex => Ok(vec![Device::flex()]),
        #[allow(unreachable_patterns, reason = "reached by what is not linked")]
        other => Err(BackendError::NotLinked(other)),
    }
}

/// Whether the backend is a graphics API.
fn on_graphics(choice: Choice) -> bool {
    matches!(choice, Choice::Vulkan | Choice::Metal | Choice::Wgpu)
}

/// Whether a graphics API's device of this name is Mesa's or SwiftShader, which compute on the CPU.
fn is_software_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let known = ["llvmpipe", "lavapipe", "softpipe", "swiftshader"];
    known.iter().any(|known| name.contains(known))
}

/// Whether a graphics API computes this device on the CPU, as lavapipe does; told without opening it.
fn is_software(device: &Device) -> bool {
    let software: &[Device] = &[
        #[cfg(feature = "vulkan")]
        Device::vulkan(DeviceKind::Cpu),
        #[cfg(feature = "metal")]
        Device::metal(DeviceKind::Cpu),
        #[cfg(feature = "wgpu")]
        Device::wgpu(DeviceKind::Cpu),
    ];
    software.contains(device)
}

/// The device's name and whether it is a card; opens it. `None` when it cannot be opened.
fn identify(device: &Device) -> Option<(String, bool)> {
    #[cfg(any(
        feature = "cuda",
        feature = "vulkan",
        feature = "metal",
        feature = "wgpu",
        feature = "cpu"
    ))]
    {
        // A runtime panics where its driver is broken; that is an absent device here.
        let opened = std::panic::catch_unwind(|| device.identity()).ok()?;
        if let Some(identity) = opened {
            return Some((identity.name, identity.physical.is_some()));
        }
    }
    let _ = device;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Some((format!("pure Rust, {threads} threads"), false))
}
