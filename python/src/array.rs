//! Buffers from Python, and arrays for it.

use std::any::Any;

use burn::tensor::{DType, Device, Element, Int, Tensor, TensorData, kind::Basic};
use half::f16;
use pyo3::{
    buffer::{Element as BufferElement, PyBuffer},
    prelude::*,
    types::{PyDict, PyTuple},
};

use crate::error::Failure;
#[cfg(feature = "cuda")]
use crate::exchange::{DeviceArray, Import, Kind};

/// Elements of a tensor.
#[cfg(not(feature = "cuda"))]
pub trait Kind: Basic {}
#[cfg(not(feature = "cuda"))]
impl<K: Basic> Kind for K {}

/// An array that numpy views without a copy, by its array interface.
#[pyclass(frozen)]
pub struct Array {
    address: usize,
    typestr: &'static str,
    shape: Vec<usize>,
    /// Holds the memory at `address`; Rust never touches it again.
    _memory: Box<dyn Any + Send + Sync>,
}

#[pymethods]
impl Array {
    /// Version 3 of numpy's array interface.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", self.typestr)?;
        interface.set_item("shape", PyTuple::new(py, &self.shape)?)?;
        interface.set_item("data", (self.address, false))?;
        Ok(interface)
    }
}

/// A dtype of both sides.
pub trait Number: Element + Send + Sync + 'static {
    /// Its letter and size in numpy's type strings.
    const TYPESTR: &'static str;
}

macro_rules! numbers {
    ($($number:ty: $little:literal, $big:literal;)*) => {
        $(impl Number for $number {
            const TYPESTR: &'static str =
                if cfg!(target_endian = "little") { $little } else { $big };
        })*
    };
}

numbers! {
    f16: "<f2", ">f2";
    f32: "<f4", ">f4";
    f64: "<f8", ">f8";
    i32: "<i4", ">i4";
    u32: "<u4", ">u4";
    i64: "<i8", ">i8";
}

impl Array {
    /// Takes a vector in C order.
    pub fn new<T: Number>(mut values: Vec<T>, shape: Vec<usize>) -> Self {
        assert_eq!(values.len(), shape.iter().product::<usize>(), "a value for each place");
        let address = values.as_mut_ptr().expose_provenance();
        Self { address, typestr: T::TYPESTR, shape, _memory: Box::new(values) }
    }

    /// Takes the elements of a tensor under a shape.
    pub fn from_data(data: TensorData, shape: Vec<usize>) -> Result<Self, Failure> {
        Ok(match data.dtype() {
            DType::F16 => Self::new::<f16>(vector(data)?, shape),
            DType::F32 => Self::new::<f32>(vector(data)?, shape),
            DType::F64 => Self::new::<f64>(vector(data)?, shape),
            DType::I32 => Self::new::<i32>(vector(data)?, shape),
            DType::U32 => Self::new::<u32>(vector(data)?, shape),
            DType::I64 => Self::new::<i64>(vector(data)?, shape),
            other => return Err(Failure::Type(format!("numpy has no {other:?}"))),
        })
    }

    /// The same of indices, as i64.
    pub fn from_indices(data: TensorData, shape: Vec<usize>) -> Result<Self, Failure> {
        Self::from_data(data.convert::<i64>(), shape)
    }
}

/// Dtype name of arrays that are exchanged by DLPack.
#[cfg(feature = "cuda")]
const EXCHANGED: &str = "dlpack";

/// An array from Python.
pub enum Input {
    /// In the memory of the CPU.
    Host(TensorData),
    /// On a CUDA device.
    #[cfg(feature = "cuda")]
    Device(Import),
}

impl Input {
    /// Takes a buffer of a dtype, or an array by DLPack if the dtype is "dlpack".
    pub fn read(array: &Bound<'_, PyAny>, dtype: &str) -> PyResult<Self> {
        #[cfg(feature = "cuda")]
        if dtype == EXCHANGED {
            return Ok(Self::Device(Import::new(array)?));
        }
        Ok(Self::Host(read_data(array, dtype)?))
    }

    /// The dtype.
    pub fn dtype(&self) -> DType {
        match self {
            Self::Host(data) => data.dtype(),
            #[cfg(feature = "cuda")]
            Self::Device(array) => array.dtype,
        }
    }

    /// Where results go.
    pub fn place(&self) -> Place {
        match self {
            Self::Host(_) => Place::Host,
            #[cfg(feature = "cuda")]
            Self::Device(_) => Place::Device,
        }
    }

    /// A tensor of the elements, on a device that has the dtype.
    pub fn upload<const D: usize, K: Kind>(
        self,
        shape: [usize; D],
        device: &Device,
    ) -> Result<Tensor<D, K>, Failure> {
        let dtype = self.dtype();
        check_dtype(dtype, device)?;
        match self {
            Self::Host(data) => {
                let data = TensorData::from_bytes(data.into_bytes(), shape, dtype);
                Ok(Tensor::from_data(data, (device, dtype)))
            }
            #[cfg(feature = "cuda")]
            Self::Device(array) => array.copy(shape, device),
        }
    }
}

/// Refuses a dtype that a device lacks.
pub fn check_dtype(dtype: DType, device: &Device) -> Result<(), Failure> {
    match device.supports_dtype(dtype) {
        true => Ok(()),
        false => {
            let reason = format!("the device {device:?} has no {dtype:?}; convert the array");
            Err(Failure::Type(reason))
        }
    }
}

/// Where an array lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the memory of the CPU.
    Host,
    /// On a CUDA device.
    #[cfg(feature = "cuda")]
    Device,
}

/// An array for Python.
#[derive(IntoPyObject)]
pub enum Output {
    /// In the memory of the CPU.
    Host(Array),
    /// On a CUDA device.
    #[cfg(feature = "cuda")]
    Device(DeviceArray),
}

impl Place {
    /// Waits for a tensor, and gives its elements under a shape.
    pub fn give<const D: usize, K: Kind>(
        self,
        tensor: Tensor<D, K>,
        shape: Vec<usize>,
    ) -> Result<Output, Failure> {
        Ok(match self {
            Self::Host => Output::Host(Array::from_data(read_back(tensor)?, shape)?),
            #[cfg(feature = "cuda")]
            Self::Device => Output::Device(DeviceArray::new(tensor, &shape)?),
        })
    }

    /// As [`give`](Self::give), with indices as i64.
    pub fn give_indices<const D: usize>(
        self,
        tensor: Tensor<D, Int>,
        shape: Vec<usize>,
    ) -> Result<Output, Failure> {
        match self {
            Self::Host => Ok(Output::Host(Array::from_indices(read_back(tensor)?, shape)?)),
            #[cfg(feature = "cuda")]
            Self::Device => self.give(tensor.cast(DType::I64), shape),
        }
    }
}

/// Waits for a result. What only the device knows is an error here.
pub fn read_back<const D: usize, K: Basic>(tensor: Tensor<D, K>) -> Result<TensorData, Failure> {
    tensor.try_into_data().map_err(|error| {
        let text = error.to_string();
        // Burn's first two lines name no reason.
        let reason = text.split_once("Caused by:\n").map_or(text.as_str(), |(_, reason)| reason);
        Failure::runtime(reason.trim())
    })
}

/// The elements of a tensor.
pub fn vector<T: Element>(data: TensorData) -> Result<Vec<T>, Failure> {
    data.try_into_vec::<T>().map_err(|error| Failure::runtime(format!("{error:?}")))
}

/// A copy of a buffer of a dtype, in C order.
pub fn read<T: BufferElement>(array: &Bound<'_, PyAny>) -> PyResult<Vec<T>> {
    PyBuffer::<T>::get(array)?.to_vec(array.py())
}

/// A copy of a buffer of one of the dtypes; f16 arrives as u16.
pub fn read_data(array: &Bound<'_, PyAny>, dtype: &str) -> PyResult<TensorData> {
    Ok(match dtype {
        "float16" => {
            let bits = read::<u16>(array)?;
            one_dimensional(bits.into_iter().map(f16::from_bits).collect::<Vec<_>>())
        }
        "float32" => one_dimensional(read::<f32>(array)?),
        "float64" => one_dimensional(read::<f64>(array)?),
        "int32" => one_dimensional(read::<i32>(array)?),
        "uint32" => one_dimensional(read::<u32>(array)?),
        "int64" => one_dimensional(read::<i64>(array)?),
        other => {
            let known = "float16, float32, float64, int32, uint32, int64";
            let reason = format!("dtype {other} is not supported (supported: {known})");
            return Err(Failure::Type(reason).into());
        }
    })
}

fn one_dimensional<T: Element>(values: Vec<T>) -> TensorData {
    let length = values.len();
    TensorData::new(values, [length])
}
