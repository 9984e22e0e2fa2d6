use cubecl::{
    features::{AtomicUsage, Plane},
    ir::{ElemType, FloatKind, Type, UIntKind},
    prelude::*,
};

use crate::error::KernelError;

const MIN_GPU_UNITS: u32 = 32;

/// None if kernels cannot use planes, or planes differ in size.
///
/// llvmpipe has plane operations, unlisted. Browsers refuse them in divergent branches.
pub(crate) fn plane_size(client: &Client) -> Option<u32> {
    let listed = client.features().plane.contains(Plane::Ops) || is_llvmpipe(client);
    let hardware = &client.properties().hardware;
    let fixed = hardware.plane_size_min == hardware.plane_size_max && hardware.plane_size_max > 1;
    (listed && fixed && !cfg!(target_family = "wasm")).then_some(hardware.plane_size_max)
}

pub(crate) fn plane_or_unit(client: &Client) -> u32 {
    plane_size(client).unwrap_or(1)
}

/// WGSL lacks it; CubeCL's cube barrier there serves cubes of one plane.
pub(crate) fn has_plane_barrier(client: &Client) -> bool {
    client.features().plane.contains(Plane::Sync)
}

pub(crate) fn planes_per_cube(client: &Client, units: u32, plane: u32) -> u32 {
    match plane == 1 || has_plane_barrier(client) {
        true => (units_per_cube(client, units.max(plane)) / plane).max(1),
        false => 1,
    }
}

pub(crate) fn is_gpu(client: &Client) -> bool {
    has_many_units(client) && !is_llvmpipe(client)
}

pub(crate) fn has_many_units(client: &Client) -> bool {
    units_per_cube(client, MIN_GPU_UNITS) >= MIN_GPU_UNITS
}

pub(crate) const LLVMPIPE_REFUSAL: &str =
    "llvmpipe lacks the workgroup memory layouts that it is compiled with";

pub(crate) const BROWSER_REFUSAL: &str =
    "browsers refuse barriers in loops that end when a value in shared memory says so";

/// Iterations after which llvmpipe silently leaves loops.
pub(crate) const LLVMPIPE_JUMPS: usize = 65_535;

/// Mesa's software Vulkan driver.
pub(crate) fn is_llvmpipe(client: &Client) -> bool {
    client.properties().identity.name.contains("llvmpipe")
}

/// Power of two.
pub(crate) fn units_per_cube(client: &Client, wanted: u32) -> u32 {
    let most = client.properties().hardware.max_units_per_cube.max(1);
    let most = most.min(wanted);
    1 << most.ilog2()
}

pub(crate) fn multiprocessors(client: &Client) -> usize {
    let hardware = &client.properties().hardware;
    hardware.num_streaming_multiprocessors.unwrap_or(64) as usize
}

pub(crate) fn require_dtype(client: &Client, dtype: ElemType) -> Result<(), KernelError> {
    if client.properties().supports_type(dtype) {
        Ok(())
    } else {
        Err(KernelError::DtypeOnDevice { dtype, runtime: client.name() })
    }
}

/// For kernels finished by their last cube.
pub(crate) fn require_arrivals(client: &Client) -> Result<(), String> {
    if !client.features().device_memory_scope {
        return Err("cubes do not see what other cubes store".into());
    }
    require_sums(client)
}

/// For atomic adds to u32 words.
pub(crate) fn require_sums(client: &Client) -> Result<(), String> {
    let word = Type::atomic(ElemType::UInt(UIntKind::U32));
    match client.properties().atomic_type_usage(word).contains(AtomicUsage::Add) {
        true => Ok(()),
        false => Err("the device has no atomic sums".into()),
    }
}

/// WebGPU promises 8, one of them CubeCL's.
pub(crate) fn require_buffers(client: &Client, buffers: usize) -> Result<(), KernelError> {
    let limit = client.properties().hardware.max_bindings as usize;
    match buffers <= limit {
        true => Ok(()),
        false => Err(KernelError::TooManyBuffers { buffers, limit, runtime: client.name() }),
    }
}

pub(crate) fn require_logarithms(client: &Client, dtype: ElemType) -> Result<(), KernelError> {
    let runtime = client.name();
    match has_logarithms(client, dtype) {
        true => Ok(()),
        false => Err(KernelError::Functions { functions: "logarithms and powers", dtype, runtime }),
    }
}

/// Whether kernels have logarithms, exponentials and powers of `dtype`.
pub fn has_logarithms(client: &Client, dtype: ElemType) -> bool {
    dtype.size() < 8 || !client.name().starts_with("wgpu")
}

pub(crate) fn require_rounding(client: &Client, dtype: ElemType) -> Result<(), KernelError> {
    let runtime = client.name();
    match dtype {
        ElemType::Float(FloatKind::BF16) if runtime == "cpu" && !host_rounds() => {
            Err(KernelError::Rounding { dtype, runtime })
        }
        _ => Ok(()),
    }
}

/// Whether the host rounds to bf16.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub fn host_rounds() -> bool {
    use std::ffi::{c_char, c_void};
    unsafe extern "C" {
        fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    // SAFETY: null means all loaded libraries; nothing is called.
    let symbol = || unsafe { dlsym(std::ptr::null_mut(), c"__truncsfbf2".as_ptr()) };
    std::arch::is_x86_feature_detected!("avx512bf16") || !symbol().is_null()
}

/// Whether the host rounds to bf16.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub fn host_rounds() -> bool {
    true
}

pub(crate) fn accumulator(client: &Client, dtype: ElemType) -> Result<ElemType, KernelError> {
    let sum = match dtype {
        ElemType::Float(FloatKind::F64) => f64::elem_type_native(),
        ElemType::Float(FloatKind::F32 | FloatKind::F16 | FloatKind::BF16) => {
            f32::elem_type_native()
        }
        dtype => {
            return Err(KernelError::Dtype { dtype, supported: "f32, f16, bf16, f64" });
        }
    };
    require_dtype(client, dtype)?;
    Ok(sum)
}

pub(crate) fn rounded_accumulator(
    client: &Client,
    dtype: ElemType,
) -> Result<ElemType, KernelError> {
    let sum = accumulator(client, dtype)?;
    require_rounding(client, dtype)?;
    Ok(sum)
}

/// Returns the narrowest supported dtype for columns below `width`.
pub fn column_dtype(client: &Client, width: usize) -> ElemType {
    let fitting = [(UIntKind::U8, 1 << 8), (UIntKind::U16, 1 << 16)];
    let narrow = fitting.into_iter().find(|&(kind, limit)| {
        width <= limit && require_dtype(client, ElemType::UInt(kind)).is_ok()
    });
    ElemType::UInt(narrow.map_or(UIntKind::U32, |(kind, _)| kind))
}
