//! Arrays in the memory of a CUDA device, exchanged with other libraries by DLPack.
//!
//! Results are shared without a copy. CubeCL computes in memory of its own alone, so an array of
//! another library is copied once, on the device.

use std::{
    collections::HashMap,
    mem, ptr,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use burn::tensor::{BackendPrimitive, DType, Device, Tensor, kind::Basic};
use burn_cubecl::{CubeBackend, kernel::into_contiguous, tensor::CubeTensor};
use cubecl::{cuda::CudaRuntime, server::ServerStorage};
use cubecl_runtime::{
    runtime::Runtime,
    storage::{ComputeStorage, ManagedResource},
};
use cudarc::driver::{CudaContext, DriverError, result};
use dlpark::{
    AllocationDeleter, DlpackFlags, Managed, ManagedTensorBase,
    ffi::{DLDataType, DLDevice, DLDeviceType, DLManagedTensor, DLManagedTensorVersioned},
    metadata::Dynamic,
    python::{
        DlpackExporter, DlpackStream, ExportRequest, ImportRequest, StreamArg, consumer::stream,
        export_dlpack,
    },
};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyTuple};

use crate::error::Failure;

type Server = <CudaRuntime as Runtime>::Server;
type Storage = <Server as ServerStorage>::Storage;
type Resource = ManagedResource<<Storage as ComputeStorage>::Resource>;

/// Elements that CubeCL holds.
pub trait Kind: Basic + BackendPrimitive<CubeBackend, Primitive = CubeTensor> {}

impl<K: Basic + BackendPrimitive<CubeBackend, Primitive = CubeTensor>> Kind for K {}

/// Dtypes of both sides.
const DTYPES: [(DType, DLDataType); 7] = [
    (DType::F16, DLDataType::F16),
    (DType::BF16, DLDataType::BF16),
    (DType::F32, DLDataType::F32),
    (DType::F64, DLDataType::F64),
    (DType::I32, DLDataType::I32),
    (DType::U32, DLDataType::U32),
    (DType::I64, DLDataType::I64),
];

/// An array of another library, kept alive.
pub struct Import {
    address: u64,
    bytes: usize,
    pub dtype: DType,
    ordinal: usize,
    _owner: AllocationDeleter,
}

/// The default stream, on which an array must be ready.
struct DefaultStream;

// SAFETY: the null stream always exists, and `stream::cuda` encodes it.
unsafe impl DlpackStream for DefaultStream {
    fn as_python_arg(&self, _py: Python<'_>, _device: DLDevice) -> PyResult<StreamArg> {
        Ok(stream::cuda(ptr::null_mut()))
    }
}

impl Import {
    /// Takes an array in row-major order that lies on a CUDA device.
    pub fn new(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let request = ImportRequest::new(array.as_borrowed())?;
        let device = request.device()?;
        if device.device_type != DLDeviceType::CUDA {
            let kind = device.device_type.0;
            let reason = format!("the array is on a device of DLPack's kind {kind}; CUDA is 2");
            return Err(Failure::Type(reason).into());
        }
        let imported = request.import(Some(&DefaultStream), None)?;
        let (address, bytes, dtype) = {
            let tensor = imported.validate().map_err(Failure::value)?;
            let dtype = tensor.dtype();
            let known = DTYPES.into_iter().find(|&(_, theirs)| theirs == dtype);
            let Some((dtype, _)) = known else {
                let reason = "the array's dtype is not supported (supported: float16, bfloat16, \
                              float32, float64, int32, uint32, int64)";
                return Err(Failure::Type(reason.into()).into());
            };
            if !tensor.is_compact().map_err(Failure::value)? {
                let reason = "the array is not contiguous; copy it into row-major order first";
                return Err(PyValueError::new_err(reason));
            }
            let address = tensor.data_ptr().addr() as u64 + tensor.byte_offset();
            (address, tensor.num_bytes(), dtype)
        };
        let ordinal = device.device_id as usize;
        Ok(Self { address, bytes, dtype, ordinal, _owner: imported.into_deleter() })
    }

    /// A copy in memory of a device.
    pub fn copy<const D: usize, K: Kind>(
        self,
        shape: [usize; D],
        device: &Device,
    ) -> Result<Tensor<D, K>, Failure> {
        let elements = shape.iter().product::<usize>();
        let copy = Tensor::<1, K>::empty([elements], (device, self.dtype));
        if self.bytes > 0 {
            assert_eq!(self.bytes, elements * self.dtype.size(), "the array has its shape");
            let resource = resource(&primitive(copy.clone())?)?;
            // What was queued for this memory before must not write into it later.
            device.sync().map_err(Failure::runtime)?;
            in_context(&*context(self.ordinal)?, || {
                // SAFETY: both hold as many bytes, and nothing else uses the copy.
                unsafe {
                    result::memcpy_dtod_sync(resource.resource().ptr, self.address, self.bytes)
                }?;
                // Copies within a device may return early.
                result::ctx::synchronize()
            })
            .map_err(failed)?;
        }
        Ok(copy.reshape(shape))
    }
}

/// An array on a CUDA device that other libraries take by DLPack, without a copy.
///
/// Freeing the last one waits for the device, as others may still read the memory.
#[pyclass(frozen)]
pub struct DeviceArray {
    memory: Arc<Memory>,
    shape: Vec<i64>,
    dtype: DLDataType,
}

struct Memory {
    address: usize,
    /// `None` only while it is dropped.
    resource: Mutex<Option<Resource>>,
    context: Arc<CudaContext>,
}

impl Drop for Memory {
    fn drop(&mut self) {
        let waited = in_context(&self.context, result::ctx::synchronize);
        let resource = self.resource.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if waited.is_err() {
            // Others may still read it, such as a graph that is being captured.
            mem::forget(resource);
        }
    }
}

impl DeviceArray {
    /// Waits for a tensor of a CUDA device, and shares it under a shape.
    pub fn new<const D: usize, K: Kind>(
        tensor: Tensor<D, K>,
        shape: &[usize],
    ) -> Result<Self, Failure> {
        let device = tensor.device();
        let tensor = into_contiguous(primitive(tensor)?);
        let dtype = DTYPES.into_iter().find(|&(ours, _)| ours == tensor.dtype);
        let (_, dtype) = dtype.ok_or_else(|| {
            Failure::Type(format!("arrays of {:?} cannot be exchanged", tensor.dtype))
        })?;
        let ordinal = match tensor.device {
            cubecl::Device::Cuda(ref device) => device.index,
            ref other => return Err(Failure::runtime(format!("{other:?} is no CUDA device"))),
        };
        let context = context(ordinal)?;
        device.sync().map_err(Failure::runtime)?;
        let resource = resource(&tensor)?;
        let address = resource.resource().ptr as usize;
        let memory = Memory { address, resource: Mutex::new(Some(resource)), context };
        let shape = shape.iter().map(|&size| size as i64).collect();
        Ok(Self { memory: Arc::new(memory), shape, dtype })
    }

    fn managed<M: ManagedTensorBase>(&self) -> PyResult<Managed<M>> {
        let metadata = Dynamic::compact(self.shape.as_slice());
        let managed = metadata.initialize_as::<M>(Arc::clone(&self.memory));
        let mut managed = managed.map_err(|error| PyValueError::new_err(error.to_string()))?;
        managed
            .set_data(ptr::with_exposed_provenance_mut(self.memory.address))
            .set_device(self.device())
            .set_dtype(self.dtype);
        // SAFETY: the memory lives as long as the tensor, which owns a share of it, and shape and
        // strides are those of a row-major array.
        Ok(unsafe { managed.finish() })
    }
}

impl DlpackExporter for DeviceArray {
    fn device(&self) -> DLDevice {
        DLDevice::cuda(self.memory.context.ordinal() as i32)
    }

    fn flags(&self) -> DlpackFlags {
        DlpackFlags::empty()
    }

    fn prepare_export(&self, _py: Python<'_>, _request: &ExportRequest<'_>) -> PyResult<()> {
        // `new` has waited.
        Ok(())
    }

    fn export_legacy(&self, _py: Python<'_>) -> PyResult<Managed<DLManagedTensor>> {
        self.managed()
    }

    fn export_versioned(&self, _py: Python<'_>) -> PyResult<Managed<DLManagedTensorVersioned>> {
        self.managed()
    }
}

#[pymethods]
impl DeviceArray {
    /// DLPack's kind and number of the device.
    fn __dlpack_device__(&self) -> (u32, i32) {
        self.device().into()
    }

    /// A capsule of the array.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(u32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        let request = ExportRequest::parse(stream.as_ref(), max_version, dl_device, copy)?;
        export_dlpack(self, py, request)
    }

    /// Sizes of the dimensions.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }
}

fn primitive<const D: usize, K: Kind>(tensor: Tensor<D, K>) -> Result<CubeTensor, Failure> {
    let found = tensor.try_into_primitive::<CubeBackend>();
    found.map_err(|error| Failure::runtime(format!("{error:?}")))
}

fn resource(tensor: &CubeTensor) -> Result<Resource, Failure> {
    let found = tensor.client.get_resource::<Server>(tensor.handle.clone());
    found.map_err(|error| Failure::runtime(format!("{error:?}")))
}

/// The context of a device. It is never dropped, as opening and dropping one makes it current; call
/// this on the worker, whose current context is nobody's.
fn context(ordinal: usize) -> Result<Arc<CudaContext>, Failure> {
    static OPENED: LazyLock<Mutex<HashMap<usize, Arc<CudaContext>>>> =
        LazyLock::new(Mutex::default);
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(context) = opened.get(&ordinal) {
        return Ok(context.clone());
    }
    let context = CudaContext::new(ordinal).map_err(failed)?;
    opened.insert(ordinal, context.clone());
    Ok(context)
}

/// Runs on a device; the thread's own context, if any, is current again afterwards.
fn in_context(
    context: &CudaContext,
    run: impl FnOnce() -> Result<(), DriverError>,
) -> Result<(), DriverError> {
    let before = result::ctx::get_current()?;
    context.bind_to_thread()?;
    let done = run();
    // SAFETY: it was current a moment ago; null stands for none.
    unsafe { result::ctx::set_current(before.unwrap_or(ptr::null_mut())) }?;
    done
}

fn failed(error: DriverError) -> Failure {
    Failure::runtime(format!("CUDA: {error}"))
}
