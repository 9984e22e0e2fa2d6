//! Copy and read rates: the bound of memory-bound kernels.

use cubecl::{client::Client, prelude::*};
use rayon::prelude::*;
use sparsek_tests::backend::{Backend, Kind};

use crate::timing::{measure, median, wall_clock};

/// Elements of a measured copy on devices, and on runtimes that compute on the host.
const DEVICE_COPY: usize = 1 << 28;
const SLOW_COPY: usize = 1 << 22;
const HOST_COPY: usize = 1 << 26;
const CHUNK: usize = 1 << 18;

/// A copy is measured again, at most this often, while its time drops below [`STEADY`] of the time
/// before: the clocks were still rising.
const REPEATS: usize = 5;
const STEADY: f64 = 0.97;

/// Elements of a measured copy on a backend.
pub fn elements(backend: &Backend) -> usize {
    if backend.is_llvmpipe() || backend.kind == Kind::Cpu { SLOW_COPY } else { DEVICE_COPY }
}

/// GB/s of a copy on the backend's device; on Flex by all cores.
pub fn backend_rate(backend: &Backend) -> anyhow::Result<f64> {
    match &backend.client {
        None => host_rate(HOST_COPY),
        Some(client) => rate(client, elements(backend)),
    }
}

/// A grid of at least `cubes` cubes.
fn folded(cubes: usize) -> CubeCount {
    CubeCount::Static(cubes.min(32_768) as u32, cubes.div_ceil(32_768) as u32, 1)
}

#[cube(launch_unchecked)]
fn copy_kernel<N: Size>(source: &[Vector<f32, N>], target: &mut [Vector<f32, N>]) {
    if ABSOLUTE_POS < source.len() {
        target[ABSOLUTE_POS] = source[ABSOLUTE_POS];
    }
}

/// GB/s of a copy of `elements` f32, bytes read plus bytes written.
pub fn rate(client: &Client, elements: usize) -> anyhow::Result<f64> {
    let bytes = elements * size_of::<f32>();
    let source = client.create_from_slice(&vec![1u8; bytes]);
    let target = client.empty(bytes);
    let cubes = folded((elements / 4).div_ceil(256));
    let measured = || {
        measure(client, || {
            // SAFETY: both buffers hold `elements` and the kernel checks each position.
            unsafe {
                copy_kernel::launch_unchecked(
                    client,
                    cubes.clone(),
                    CubeDim::new_1d(256),
                    4,
                    BufferArg::from_raw_parts(source.clone(), elements),
                    BufferArg::from_raw_parts(target.clone(), elements),
                );
            }
        })
        .map(|median| median.ms)
    };
    let mut ms = measured()?;
    for _ in 0..REPEATS {
        let before = std::mem::replace(&mut ms, measured()?);
        if ms > STEADY * before {
            break;
        }
    }
    Ok(2.0 * bytes as f64 / ms / 1e6)
}

const LOADS: usize = 8;
const UNITS: usize = 256;

#[cube(launch_unchecked)]
fn read_kernel<N: Size>(source: &[Vector<f32, N>], target: &mut [f32]) {
    let first = CUBE_POS * comptime!(UNITS * LOADS) + UNIT_POS as usize;
    let mut sum = Vector::<f32, N>::zeroed();
    #[unroll]
    for load in 0..LOADS {
        sum += source[first + comptime!(load * UNITS)];
    }
    let mut total = 0.0f32;
    #[unroll]
    for item in 0..N::value().comptime() {
        total += sum.extract(item);
    }
    // Never true. Without a use the compiler would drop the reads.
    if total < 0.0 {
        target[0] = total;
    }
}

/// GB/s of a read of `elements` f32.
pub fn read_rate(client: &Client, elements: usize) -> anyhow::Result<f64> {
    let bytes = elements * size_of::<f32>();
    let source = client.create_from_slice(&vec![1u8; bytes]);
    let target = client.empty(size_of::<f32>());
    let cubes = folded(elements / (4 * UNITS * LOADS));
    let ms = measure(client, || {
        // SAFETY: the cubes read exactly `elements`, and the target holds one element.
        unsafe {
            read_kernel::launch_unchecked(
                client,
                cubes.clone(),
                CubeDim::new_1d(UNITS as u32),
                4,
                BufferArg::from_raw_parts(source.clone(), elements),
                BufferArg::from_raw_parts(target.clone(), 1),
            );
        }
    })?
    .ms;
    Ok(bytes as f64 / ms / 1e6)
}

/// GB/s of a copy of `elements` f32 by all cores, bytes read plus bytes written.
fn host_rate(elements: usize) -> anyhow::Result<f64> {
    let source = vec![1.0f32; elements];
    let mut target = vec![0.0f32; elements];
    let ms = median(|| {
        wall_clock(|| {
            target
                .par_chunks_mut(CHUNK)
                .zip(source.par_chunks(CHUNK))
                .for_each(|(target, source)| target.copy_from_slice(source));
            Ok(())
        })
    })?;
    let bytes = elements * size_of::<f32>();
    Ok(2.0 * bytes as f64 / ms / 1e6)
}
