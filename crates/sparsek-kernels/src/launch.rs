use cubecl::{
    ir::{AddressType, ElemType},
    prelude::*,
    server::{Handle, MemoryLayoutDescriptor},
};

use crate::{device::units_per_cube, error::KernelError};

const WIDEST_VECTOR: usize = 32;
/// Limit of WebGPU and most Vulkan drivers.
const FOLD: u32 = 65_535;

pub(crate) struct Grid {
    pub count: CubeCount,
    pub dim: CubeDim,
    pub address: AddressType,
}

impl Grid {
    /// Folds cubes into three dimensions; buffers have ≤ `elements`.
    pub fn new(
        client: &Client,
        cubes: usize,
        dim: CubeDim,
        elements: usize,
    ) -> Result<Self, KernelError> {
        let (x, y, z) = client.properties().hardware.max_cube_count;
        let x = (x.min(FOLD)) as usize;
        let y = (y.min(FOLD)) as usize;
        let z = (z.min(FOLD)) as usize;
        // Equal layers waste few cubes.
        let rows = cubes.div_ceil(x).max(1);
        let layers = rows.div_ceil(y);
        if layers > z {
            return Err(KernelError::GridTooLarge { cubes, limit: x * y * z });
        }
        let rows = rows.div_ceil(layers);
        let length = cubes.div_ceil(rows * layers);
        let count = CubeCount::Static(length as u32, rows as u32, layers as u32);
        // Positions may exceed buffers by a row of cubes.
        let launched = length * rows * layers * dim.num_elems() as usize;
        Ok(Self { count, dim, address: address(client, elements.max(launched))? })
    }

    pub fn elementwise(
        client: &Client,
        units: usize,
        elements: usize,
    ) -> Result<Self, KernelError> {
        let size = units_per_cube(client, 256) as usize;
        let dim = CubeDim::new_1d(size as u32);
        Self::new(client, units.div_ceil(size).max(1), dim, elements.max(units))
    }
}

fn address(client: &Client, elements: usize) -> Result<AddressType, KernelError> {
    let address = AddressType::from_len(elements);
    if client.properties().supports_address(address) {
        Ok(address)
    } else {
        Err(KernelError::AddressWidth { elements, runtime: client.name() })
    }
}

pub(crate) fn aligned(handle: &Handle, bytes: usize) -> bool {
    let offset = handle.offset_start.unwrap_or(0) as usize;
    offset.is_multiple_of(bytes)
}

pub(crate) fn device_failed(client: &Client, reason: String) -> KernelError {
    KernelError::Device { device: client.properties().identity.name.clone(), reason }
}

/// Uninitialized and contiguous.
pub(crate) fn allocate(
    client: &Client,
    name: &'static str,
    elements: usize,
    dtype: ElemType,
) -> Result<Handle, KernelError> {
    let bytes = elements as u64 * dtype.size() as u64;
    let limit = client.properties().memory.max_page_size;
    if bytes > limit {
        return Err(KernelError::BufferTooLarge { name, bytes, limit });
    }
    // Some runtimes reject empty buffers.
    Ok(client.empty(bytes.max(dtype.size() as u64) as usize))
}

/// Freed together.
pub(crate) fn allocate_together<const N: usize>(
    client: &Client,
    buffers: [(&'static str, usize, ElemType); N],
) -> Result<[Handle; N], KernelError> {
    let limit = client.properties().memory.max_page_size;
    let mut layouts = Vec::with_capacity(N);
    for (name, elements, dtype) in buffers {
        let bytes = elements as u64 * dtype.size() as u64;
        // All must fit into one page.
        if bytes > limit / (2 * N as u64) {
            let limit = limit / (2 * N as u64);
            return Err(KernelError::BufferTooLarge { name, bytes, limit });
        }
        let shape = [elements.max(1)].into();
        layouts.push(MemoryLayoutDescriptor::contiguous(shape, dtype.size()));
    }
    let layouts = client.empty_tensors(layouts).into_iter();
    let handles: Vec<Handle> = layouts.map(|layout| layout.memory).collect();
    Ok(handles.try_into().expect("a buffer for each layout"))
}

/// For unused arguments. WebGPU refuses bindings shorter than an element, here a vector.
pub(crate) fn placeholder(client: &Client) -> Handle {
    client.empty(WIDEST_VECTOR)
}

pub(crate) fn argument(
    handle: &Handle,
    name: &'static str,
    dtype: ElemType,
    needed: usize,
) -> Result<BufferArg, KernelError> {
    let found = handle.size_in_used() as usize / dtype.size();
    if found < needed {
        return Err(KernelError::BufferTooShort { name, needed, found });
    }
    // SAFETY: the handle holds `needed` elements.
    Ok(unsafe { BufferArg::from_raw_parts(handle.clone(), needed) })
}

pub(crate) fn fill_zero(
    client: &Client,
    output: &Handle,
    dtype: ElemType,
    elements: usize,
) -> Result<(), KernelError> {
    if elements == 0 {
        return Ok(());
    }
    let width = client
        .io_optimized_vector_sizes(dtype.size())
        .filter(|width| elements.is_multiple_of(*width))
        .max()
        .unwrap_or(1);
    let grid = Grid::elementwise(client, elements / width, elements)?;
    // SAFETY: `argument` checks the length, the kernel positions.
    unsafe {
        fill_zero_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            width,
            argument(output, "output", dtype, elements)?,
            dtype,
        );
    }
    Ok(())
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn fill_zero_kernel<E: Numeric, N: Size>(
    output: &mut [Vector<E, N>],
    #[define(E)] _dtype: ElemType,
) {
    if ABSOLUTE_POS < output.len() {
        output[ABSOLUTE_POS] = Vector::<E, N>::zeroed();
    }
}
