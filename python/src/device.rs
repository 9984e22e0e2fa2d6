//! Devices by name.

use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex, PoisonError},
};

use burn::tensor::Device;
#[cfg(feature = "vulkan")]
use burn::tensor::DeviceKind;
#[cfg(feature = "cache")]
use burn::tensor::DeviceType;
use pyo3::prelude::*;

use crate::{error::Failure, worker};

/// Devices that were opened.
static OPENED: LazyLock<Mutex<HashMap<String, Device>>> = LazyLock::new(Mutex::default);

/// Opens `auto`, `cpu`, `vulkan` or `cuda`, the latter two also with a number, such as `cuda:1`.
/// `auto` is the first GPU of CUDA and Vulkan, else the CPU.
pub fn open(name: &str) -> Result<Device, Failure> {
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = opened.get(name) {
        return Ok(device.clone());
    }
    let device = find(name)?;
    opened.insert(name.into(), device.clone());
    Ok(device)
}

/// Whether Flex computes, on the CPU.
pub fn is_host(device: &Device) -> bool {
    #[cfg(feature = "flex")]
    return *device == Device::flex();
    #[cfg(not(feature = "flex"))]
    {
        let _ = device;
        false
    }
}

/// Names that `device` takes here, besides `auto`.
#[pyfunction]
pub fn devices(py: Python<'_>) -> PyResult<Vec<String>> {
    worker::run(py, |_| {
        let mut names = Vec::new();
        for api in ["cuda", "vulkan"] {
            let found = list(api).unwrap_or_default();
            names.extend((0..found.len()).map(|number| format!("{api}:{number}")));
        }
        names.extend(host().map(|_| "cpu".to_string()));
        Ok(names)
    })
}

fn find(name: &str) -> Result<Device, Failure> {
    let (api, number) = match name.split_once(':') {
        Some((api, number)) => (api, Some(number)),
        None => (name, None),
    };
    match (api, number) {
        ("auto", None) => {
            let mut gpus = ["cuda", "vulkan"].into_iter().flat_map(|api| {
                let found = list(api).unwrap_or_default();
                found.into_iter().filter(|device| !is_software(device) && is_card(device))
            });
            gpus.next().or_else(host).ok_or_else(|| Failure::runtime("no device was found"))
        }
        ("cpu", None) => host().ok_or_else(|| not_linked("flex")),
        ("cuda" | "vulkan", number) => {
            let found = list(api)?;
            let number = number.unwrap_or("0");
            let count = found.len();
            let number: usize = number.parse().map_err(|_| unknown(name))?;
            found.into_iter().nth(number).ok_or_else(|| {
                let reason = format!("device {name}: this machine has {count}, counted from 0");
                Failure::Runtime(reason)
            })
        }
        _ => Err(unknown(name)),
    }
}

fn unknown(name: &str) -> Failure {
    Failure::Value(format!(
        "no device is called {name}; there are auto, cpu, vulkan, vulkan:0, cuda and cuda:0"
    ))
}

fn not_linked(feature: &str) -> Failure {
    Failure::Runtime(format!("this build of sparsek lacks the feature {feature}"))
}

fn host() -> Option<Device> {
    #[cfg(feature = "flex")]
    return Some(Device::flex());
    #[cfg(not(feature = "flex"))]
    None
}

/// The devices of an interface, without opening them.
fn list(api: &str) -> Result<Vec<Device>, Failure> {
    keep_kernels();
    match api {
        #[cfg(feature = "cuda")]
        "cuda" => enumerate(DeviceType::Cuda),
        #[cfg(feature = "vulkan")]
        "vulkan" => enumerate(DeviceType::Vulkan),
        other => Err(not_linked(other)),
    }
}

/// A broken driver panics: it has no devices.
#[cfg(feature = "cache")]
fn enumerate(kind: DeviceType) -> Result<Vec<Device>, Failure> {
    let devices = std::panic::catch_unwind(|| Device::enumerate(kind).into_vec());
    Ok(devices.unwrap_or_default())
}

/// Enables the kernel cache; without it, kernels are compiled again in each process.
fn keep_kernels() {
    #[cfg(feature = "cache")]
    {
        static ONCE: std::sync::Once = std::sync::Once::new();
        // Python has no place for a warning on this thread, and results do not depend on it.
        ONCE.call_once(|| drop(sparsek::cache::enable()));
    }
}

/// Whether Vulkan computes on the CPU, as Mesa's llvmpipe.
fn is_software(device: &Device) -> bool {
    #[cfg(feature = "vulkan")]
    return *device == Device::vulkan(DeviceKind::Cpu);
    #[cfg(not(feature = "vulkan"))]
    {
        let _ = device;
        false
    }
}

/// Whether a device opens and is a card.
pub fn is_card(device: &Device) -> bool {
    #[cfg(feature = "cache")]
    {
        let software = ["llvmpipe", "lavapipe", "softpipe", "swiftshader"];
        let opened = std::panic::catch_unwind(|| device.identity()).ok().flatten();
        opened.is_some_and(|identity| {
            let name = identity.name.to_ascii_lowercase();
            identity.physical.is_some() && !software.iter().any(|known| name.contains(known))
        })
    }
    #[cfg(not(feature = "cache"))]
    {
        let _ = device;
        false
    }
}
