use std::{any::type_name, fmt, marker::PhantomData};

#[cfg(feature = "kernels")]
use cubecl::prelude::*;

#[cfg(feature = "kernels")]
use super::{
    dense_tile, expand_sort, hybrid, inverted,
    job::Job,
    merge,
    prepare::norms,
    register_tile,
    semiring::Parameter,
    tensor_core,
    types::{Matrix, Prepared, Routine},
};
use super::{
    host::{self, HostPair},
    semiring::{Algebra, HostSemiring, Semiring, Strategy},
};
#[cfg(feature = "kernels")]
use crate::error::KernelError;

/// First row and distances of a batch.
pub type Each<'a, S> = &'a mut dyn FnMut(usize, &[S]);

/// A distance: [`Metric::distance`](crate::distance::Metric::distance), or [`DynMetric::of`] a
/// semiring.
pub trait Distance: Send + Sync + fmt::Debug {
    /// Algebraic properties.
    fn algebra(&self) -> Algebra;

    /// Evaluation strategy.
    fn strategy(&self) -> Strategy;

    #[doc(hidden)]
    #[cfg(feature = "kernels")]
    fn prepare(
        &self,
        client: &Client,
        matrix: &Matrix,
        parameter: Parameter,
    ) -> Result<Prepared, KernelError>;

    #[doc(hidden)]
    #[cfg(feature = "kernels")]
    fn launch(&self, job: &Job, routine: Routine) -> Result<(), KernelError>;

    /// Host distances, `batch` rows at a time.
    fn host_f32(&self, matrices: HostPair<f32>, p: f64, batch: usize, each: Each<f32>);

    /// As [`host_f32`](Self::host_f32).
    fn host_f64(&self, matrices: HostPair<f64>, p: f64, batch: usize, each: Each<f64>);
}

/// [`Distance`] of a semiring.
pub struct DynMetric<M>(PhantomData<fn() -> M>);

impl<M: Semiring + HostSemiring> DynMetric<M> {
    /// Distance of `M`.
    pub const fn of() -> &'static dyn Distance {
        const { &Self(PhantomData) }
    }
}

impl<M> fmt::Debug for DynMetric<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(type_name::<M>())
    }
}

impl<M: Semiring + HostSemiring> Distance for DynMetric<M> {
    fn algebra(&self) -> Algebra {
        <M as Semiring>::ALGEBRA
    }

    fn strategy(&self) -> Strategy {
        <M as Semiring>::STRATEGY
    }

    #[cfg(feature = "kernels")]
    fn prepare(
        &self,
        client: &Client,
        matrix: &Matrix,
        parameter: Parameter,
    ) -> Result<Prepared, KernelError> {
        norms::prepare::<M>(client, matrix, parameter)
    }

    #[cfg(feature = "kernels")]
    fn launch(&self, job: &Job, routine: Routine) -> Result<(), KernelError> {
        match routine {
            Routine::Merge => merge::launch::<M>(job),
            Routine::Inverted => inverted::launch::<M>(job),
            Routine::DenseTile => dense_tile::launch::<M>(job),
            Routine::RegisterTile => register_tile::launch::<M>(job),
            Routine::TensorCore => tensor_core::launch::<M>(job),
            Routine::Hybrid => hybrid::launch::<M>(job),
            Routine::ExpandSort => expand_sort::launch::<M>(job),
        }
    }

    fn host_f32(&self, matrices: HostPair<f32>, p: f64, batch: usize, each: Each<f32>) {
        host::pairwise::<M, f32>(matrices, p as f32, batch, each);
    }

    fn host_f64(&self, matrices: HostPair<f64>, p: f64, batch: usize, each: Each<f64>) {
        host::pairwise::<M, f64>(matrices, p, batch, each);
    }
}
