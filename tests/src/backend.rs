//! Backends under test: a Burn device each, and a CubeCL client except for Flex.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use burn::tensor::{Device, Tensor};
use cubecl::client::Client;
use cubecl::device::{DeviceUnavailable, WgpuDeviceKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Plain Rust on the CPU.
    Flex,
    /// Vulkan through SPIR-V.
    Vulkan,
    /// wgpu's default graphics API (WGSL unless Vulkan or Metal is linked).
    Wgpu,
    /// As `wgpu`, but refuses devices that do not compile WGSL, WebGPU's language. The browser's
    /// own API exists only on wasm.
    #[value(name = "webgpu")]
    WebGpu,
    /// Metal.
    Metal,
    /// CUDA.
    Cuda,
    /// AMD's ROCm.
    Rocm,
    /// CubeCL's CPU runtime.
    Cpu,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Flex => "flex",
            Self::Vulkan => "vulkan",
            Self::Wgpu => "wgpu",
            Self::WebGpu => "webgpu",
            Self::Metal => "metal",
            Self::Cuda => "cuda",
            Self::Rocm => "rocm",
            Self::Cpu => "cpu",
        };
        f.write_str(name)
    }
}

#[derive(Clone)]
pub struct Backend {
    pub kind: Kind,
    pub device: Device,
    /// CubeCL client of the same device; `None` for Flex.
    pub client: Option<Client>,
    /// Device name and plane size.
    pub label: String,
    /// Whether kernels may use shared memory; see [`Backend::without_shared_memory`].
    pub shared_memory: bool,
}

/// Name of the runtime that compiles to WGSL.
const WGSL: &str = "wgpu<wgsl>";
/// Skip reason: shared memory.
const NO_SHARED: &str =
    "the driver crashes on CubeCL 0.11.3's shared memory (it lacks explicit workgroup layouts)";
/// Skip reason: long rows.
const LOOP_LIMIT: &str = "llvmpipe stops a shader's loops after 65,535 iterations";

impl Backend {
    /// Returns why the backend cannot compute with a dtype, if so.
    pub fn lacks(&self, dtype: burn::tensor::DType) -> Option<String> {
        if !self.device.supports_dtype(dtype) {
            return Some(format!("the device has no {dtype:?}"));
        }
        let rounds = self.kind != Kind::Cpu || sparsek_kernels::host_rounds();
        let bf16 = dtype == burn::tensor::DType::BF16;
        (bf16 && !rounds).then(|| "the host cannot round to bf16 for the CPU runtime".into())
    }

    /// Lists all devices of the kind without opening them.
    pub fn devices(&self) -> Vec<Device> {
        #[allow(unused_imports)]
        use burn::tensor::DeviceType;
        match self.kind {
            #[cfg(feature = "vulkan")]
            Kind::Vulkan => Device::enumerate(DeviceType::Vulkan).into_vec(),
            #[cfg(feature = "wgpu")]
            Kind::Wgpu => Device::enumerate(DeviceType::Wgpu).into_vec(),
            #[cfg(feature = "webgpu")]
            Kind::WebGpu => Device::enumerate(DeviceType::Wgpu).into_vec(),
            #[cfg(feature = "rocm")]
            Kind::Rocm => Device::enumerate(DeviceType::Rocm).into_vec(),
            #[cfg(feature = "metal")]
            Kind::Metal => Device::enumerate(DeviceType::Metal).into_vec(),
            #[cfg(feature = "cuda")]
            Kind::Cuda => Device::enumerate(DeviceType::Cuda).into_vec(),
            _ => vec![self.device.clone()],
        }
    }

    /// Clients that act as several devices: all CUDA devices, or the same client twice.
    pub fn clients(&self) -> Vec<Client> {
        let Some(client) = &self.client else {
            return Vec::new();
        };
        let numbers = 1..self.devices().len();
        let mut clients = vec![client.clone()];
        if self.kind == Kind::Cuda {
            clients.extend(numbers.filter_map(|n| Some(cubecl::Device::cuda(n).ok()?.client())));
        }
        if clients.len() == 1 {
            clients.push(client.clone());
        }
        clients
    }

    /// Marks shared memory as defective: a probe process crashed.
    pub fn without_shared_memory(self) -> Self {
        Self { shared_memory: false, ..self }
    }

    /// Whether this is Mesa's software driver.
    pub fn is_llvmpipe(&self) -> bool {
        self.label.contains("llvmpipe")
    }

    pub fn shared_memory_defect(&self) -> Option<String> {
        (!self.shared_memory).then(|| NO_SHARED.to_string())
    }

    /// Reason to skip long rows that one unit searches alone: 84 passes must stay below the limit.
    pub fn loop_limit(&self, cols: usize) -> Option<String> {
        (self.is_llvmpipe() && cols > 512).then(|| LOOP_LIMIT.to_string())
    }
}

impl Kind {
    pub fn linked() -> Vec<Self> {
        let all = [
            (Self::Flex, cfg!(feature = "flex")),
            (Self::Vulkan, cfg!(feature = "vulkan")),
            (Self::Wgpu, cfg!(feature = "wgpu")),
            (Self::WebGpu, cfg!(feature = "webgpu")),
            (Self::Metal, cfg!(feature = "metal")),
            (Self::Cuda, cfg!(feature = "cuda")),
            (Self::Rocm, cfg!(feature = "rocm")),
            (Self::Cpu, cfg!(feature = "cpu")),
        ];
        all.into_iter().filter(|(_, linked)| *linked).map(|(kind, _)| kind).collect()
    }

    pub fn advice(self) -> &'static str {
        match self {
            Self::Flex => "add `--features flex`",
            Self::Vulkan => {
                "install the GPU's Vulkan driver, or Mesa's software driver: mesa-vulkan-drivers \
                 and libvulkan1 on Debian"
            }
            Self::Wgpu => "install a driver for Vulkan, Metal or Direct3D 12",
            Self::WebGpu => {
                "build it without vulkan and metal, and install a driver for Vulkan, Metal or \
                 Direct3D 12"
            }
            Self::Metal => "needs a Mac",
            Self::Rocm => "needs an AMD GPU and ROCm",
            Self::Cuda => "needs an NVIDIA GPU and CUDA 12 or later",
            Self::Cpu => "needs LLVM, which its build downloads",
        }
    }

    /// As [`open`](Self::open), with an error that says how to get the backend.
    pub fn find(self) -> Result<Backend, String> {
        let missing = |reason| format!("backend {self} is missing: {reason} ({})", self.advice());
        self.open().map_err(missing)
    }

    /// Opens the default device and computes on it.
    pub fn open(self) -> Result<Backend, String> {
        let open = || -> Result<Backend, String> {
            let client = self.cubecl().transpose().map_err(|e| e.to_string())?.map(|d| d.client());
            if let (Self::WebGpu, Some(client)) = (self, &client)
                && client.name() != WGSL
            {
                return Err(format!("kernels are compiled by {}, not to WGSL", client.name()));
            }
            let device = self.burn()?;
            let one = Tensor::<1>::from_floats([1.0], &device);
            let sum: f32 = (one + 2.0).into_scalar();
            if sum != 3.0 {
                return Err(format!("computed 1 + 2 = {sum}"));
            }
            let label = match &client {
                None => format!(
                    "{} threads",
                    std::thread::available_parallelism().map_or(1, |n| n.get())
                ),
                Some(client) => {
                    let properties = client.properties();
                    let name = &properties.identity.name;
                    format!("{name}, plane {}", properties.hardware.plane_size_max)
                }
            };
            Ok(Backend { kind: self, device, client, label, shared_memory: true })
        };
        catch_unwind(AssertUnwindSafe(open))
            .unwrap_or_else(|panic| Err(crate::panics::message(&*panic)))
    }

    fn cubecl(self) -> Option<Result<cubecl::Device, DeviceUnavailable>> {
        let any = WgpuDeviceKind::default;
        match self {
            Self::Flex => None,
            Self::Vulkan => Some(cubecl::Device::vulkan(any())),
            Self::Wgpu | Self::WebGpu => Some(cubecl::Device::wgpu(any())),
            Self::Metal => Some(cubecl::Device::metal_msl(any())),
            Self::Cuda => Some(cubecl::Device::cuda(0)),
            Self::Rocm => Some(cubecl::Device::rocm(0)),
            Self::Cpu => Some(cubecl::Device::cpu()),
        }
    }

    fn burn(self) -> Result<Device, String> {
        #[allow(unused_imports)]
        use burn::tensor::DeviceKind;
        match self {
            #[cfg(feature = "flex")]
            Self::Flex => Ok(Device::flex()),
            #[cfg(feature = "vulkan")]
            Self::Vulkan => Ok(Device::vulkan(DeviceKind::DefaultDevice)),
            #[cfg(feature = "wgpu")]
            Self::Wgpu => Ok(Device::wgpu(DeviceKind::DefaultDevice)),
            #[cfg(feature = "webgpu")]
            Self::WebGpu => Ok(Device::wgpu(DeviceKind::DefaultDevice)),
            #[cfg(feature = "rocm")]
            Self::Rocm => Ok(Device::rocm(0usize)),
            #[cfg(feature = "metal")]
            Self::Metal => Ok(Device::metal(DeviceKind::DefaultDevice)),
            #[cfg(feature = "cuda")]
            Self::Cuda => Ok(Device::cuda(0usize)),
            #[cfg(feature = "cpu")]
            Self::Cpu => Ok(Device::cpu()),
            #[allow(unreachable_patterns)]
            other => Err(format!("not linked: add the feature `{other}`")),
        }
    }
}
