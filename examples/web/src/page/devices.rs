//! The devices of the page.

use std::{
    cell::OnceCell,
    sync::{Arc, Mutex, PoisonError},
};

use burn::tensor::Device;
use wasm_bindgen::prelude::*;

thread_local! {
    static WEBGPU: OnceCell<Device> = const { OnceCell::new() };
}

/// What WebGPU complained of and nobody caught.
static ERRORS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// What the page runs on.
#[wasm_bindgen(getter_with_clone)]
pub struct Backend {
    /// Whether WebGPU runs.
    pub webgpu: bool,
    /// Limits of the device, or why there is none.
    pub about: String,
}

/// Asks the browser for a GPU.
#[wasm_bindgen]
pub async fn open_webgpu() -> Backend {
    let options = Device::wgpu_options();
    let (device, setup) = match options.init_with_setup_async().await {
        Ok(opened) => opened,
        Err(error) => return Backend { webgpu: false, about: error.to_string() },
    };
    setup.device.on_uncaptured_error(Arc::new(|error| {
        let mut errors = ERRORS.lock().unwrap_or_else(PoisonError::into_inner);
        errors.push(format!("{error}"));
    }));
    let (info, limits) = (setup.adapter.get_info(), setup.device.limits());
    let about = format!(
        "{} KiB of workgroup memory, {} units, {} buffers, subgroups of {} to {}",
        limits.max_compute_workgroup_storage_size >> 10,
        limits.max_compute_invocations_per_workgroup,
        limits.max_storage_buffers_per_shader_stage,
        info.subgroup_min_size,
        info.subgroup_max_size,
    );
    WEBGPU.with(|webgpu| webgpu.set(device)).expect("the page opens WebGPU once");
    Backend { webgpu: true, about }
}

/// Errors of WebGPU since the last call.
#[wasm_bindgen]
pub fn take_errors() -> Vec<String> {
    std::mem::take(&mut *ERRORS.lock().unwrap_or_else(PoisonError::into_inner))
}

pub(super) fn webgpu() -> Option<Device> {
    WEBGPU.with(|webgpu| webgpu.get().cloned())
}

pub(super) fn flex() -> Device {
    Device::flex()
}
