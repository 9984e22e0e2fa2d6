//! Distances on every CubeCL runtime.

use std::ops::Range;

use burn::{
    backend::{
        TensorMetadata,
        cubecl::dtype_to_elem_type,
        ops::{FloatTensorOps, IntTensorOps},
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{DType, Shape},
};
use burn_cubecl::{CubeBackend, kernel::into_contiguous, tensor::CubeTensor};
use cubecl::{prelude::Client, server::Handle};
use sparsek_kernels::{
    KernelError,
    distance::{self, Index, Matrix, Parameter, Prepared, Upstream, without_own},
    topk::{self, Rows, TopkOptions},
};

use super::{expect, tensor};
use crate::ops::{DistanceGradientOps, DistanceOps, DistanceSpec, NearestSpec, Turned};

/// Bytes of distances in memory at a time.
const BATCH_BYTES: usize = 1 << 30;

/// A matrix in three tensors.
struct Tensors {
    indptr: CubeTensor,
    indices: CubeTensor,
    values: CubeTensor,
    cols: usize,
}

impl Tensors {
    fn new(indptr: CubeTensor, indices: CubeTensor, values: CubeTensor, cols: usize) -> Self {
        Self {
            indptr: into_contiguous(indptr),
            indices: into_contiguous(indices),
            values: into_contiguous(values),
            cols,
        }
    }

    fn matrix(&self) -> Matrix<'_> {
        Matrix {
            indptr: &self.indptr.handle,
            indices: &self.indices.handle,
            values: &self.values.handle,
            dtype: dtype_to_elem_type(self.values.dtype),
            rows: self.indptr.shape()[0] - 1,
            cols: self.cols,
            nnz: self.indices.shape()[0],
        }
    }
}

/// Two matrices and the distance between their rows, prepared.
struct Ready {
    index: Index,
    /// Nothing where both are the same.
    x: Option<Prepared>,
}

impl Ready {
    fn new(x: &Tensors, y: &Tensors, spec: &DistanceSpec) -> Result<Self, KernelError> {
        let client = &x.values.client;
        let index = Index::new(client, &y.matrix(), spec.distance, spec.p, spec.routine)?;
        let x = match spec.own {
            true => None,
            false => Some(index.prepare(client, &x.matrix())?),
        };
        Ok(Self { index, x })
    }

    fn left(&self) -> &Prepared {
        self.x.as_ref().unwrap_or(self.index.prepared())
    }

    fn distances(&self, client: &Client, rows: Range<usize>) -> Result<Handle, KernelError> {
        match &self.x {
            Some(x) => self.index.distances(client, x, rows),
            None => self.index.own_distances(client, rows),
        }
    }
}

/// The nearest of a range of rows.
fn nearest(
    ready: &Ready,
    like: &CubeTensor,
    rows: Range<usize>,
    spec: &NearestSpec,
) -> Result<(CubeTensor, CubeTensor), KernelError> {
    let client = &like.client;
    let (first, count) = (rows.start, rows.len());
    let dtype = ready.left().dtype;
    let distances = ready.distances(client, rows)?;
    let across = ready.index.prepared().rows;
    let asked = spec.k + usize::from(spec.exclude_self);
    let options = TopkOptions {
        largest: spec.by.distance.needs().largest,
        sorted: true,
        ..TopkOptions::new(asked)
    };
    let rows = Rows::contiguous(distances, dtype, count, across);
    let index = DType::from(spec.index);
    let index_dtype = dtype_to_elem_type(index);
    let forced = std::env::var("SPARSEK_T").ok().map(|name| *topk::ROUTINES.iter().find(|r| r.name() == name).unwrap());
    let found = topk::topk(client, &rows, &options, index_dtype, forced)?;
    let [values, indices] = match spec.exclude_self {
        true => without_own(
            client,
            [&found.values, &found.indices],
            [count, spec.k, first],
            dtype,
            index_dtype,
        )?,
        false => [found.values, found.indices],
    };
    let shape = Shape::from([count, spec.k]);
    Ok((
        tensor(like, values, shape.clone(), output_dtype(like)),
        tensor(like, indices, shape, index),
    ))
}

fn output_dtype(values: &CubeTensor) -> DType {
    crate::ops::computed(values.dtype)
}

impl DistanceOps for CubeBackend {
    fn pairwise(
        x_indptr: IntTensor<Self>,
        x_indices: IntTensor<Self>,
        x_values: FloatTensor<Self>,
        y_indptr: IntTensor<Self>,
        y_indices: IntTensor<Self>,
        y_values: FloatTensor<Self>,
        _turned: Turned<Self>,
        spec: DistanceSpec,
    ) -> FloatTensor<Self> {
        let x = Tensors::new(x_indptr, x_indices, x_values, spec.cols);
        let y = Tensors::new(y_indptr, y_indices, y_values, spec.cols);
        let ready = expect("pairwise_distances", Ready::new(&x, &y, &spec));
        let rows = ready.left().rows;
        let output = ready.distances(&x.values.client, 0..rows);
        let output = expect("pairwise_distances", output);
        let shape = Shape::from([rows, ready.index.prepared().rows]);
        tensor(&x.values, output, shape, output_dtype(&x.values))
    }

    fn nearest(
        x_indptr: IntTensor<Self>,
        x_indices: IntTensor<Self>,
        x_values: FloatTensor<Self>,
        y_indptr: IntTensor<Self>,
        y_indices: IntTensor<Self>,
        y_values: FloatTensor<Self>,
        spec: NearestSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        let x = Tensors::new(x_indptr, x_indices, x_values, spec.by.cols);
        let y = Tensors::new(y_indptr, y_indices, y_values, spec.by.cols);
        let ready = expect("kneighbors", Ready::new(&x, &y, &spec.by));
        let (mut values, mut indices) = (Vec::new(), Vec::new());
        let rows = ready.left().rows;
        let row = ready.index.prepared().rows * ready.left().dtype.size();
        let page = x.values.client.properties().memory.max_page_size as usize;
        let fitting = BATCH_BYTES.min(page) / row.max(1);
        let batch = spec.batch.unwrap_or(fitting).max(1);
        // Without rows as well there is one batch.
        for start in (0..rows.max(1)).step_by(batch) {
            let end = rows.min(start + batch);
            let found = expect("kneighbors", nearest(&ready, &x.values, start..end, &spec));
            values.push(found.0);
            indices.push(found.1);
        }
        if values.len() == 1 {
            return (values.remove(0), indices.remove(0));
        }
        (Self::float_cat(values, 0), Self::int_cat(indices, 0))
    }
}

impl DistanceGradientOps for CubeBackend {
    fn pairwise_gradient(
        x_indptr: IntTensor<Self>,
        x_indices: IntTensor<Self>,
        x_values: FloatTensor<Self>,
        y_indptr: IntTensor<Self>,
        y_indices: IntTensor<Self>,
        y_values: FloatTensor<Self>,
        turned_indptr: IntTensor<Self>,
        turned_rows: IntTensor<Self>,
        turned_entries: IntTensor<Self>,
        upstream: FloatTensor<Self>,
        distances: FloatTensor<Self>,
        spec: DistanceSpec,
    ) -> FloatTensor<Self> {
        let x = Tensors::new(x_indptr, x_indices, x_values, spec.cols);
        let y = Tensors::new(y_indptr, y_indices, y_values, spec.cols);
        let [indptr, rows, entries] =
            [turned_indptr, turned_rows, turned_entries].map(into_contiguous);
        let turned = distance::Turned {
            indptr: &indptr.handle,
            rows: &rows.handle,
            entries: &entries.handle,
        };
        let [upstream, distances] = [upstream, distances].map(into_contiguous);
        let upstream = Upstream {
            gradient: &upstream.handle,
            distances: &distances.handle,
        };
        let client = &x.values.client;
        let norms = |tensors: &Tensors| {
            let parameter = Parameter::of(spec.p);
            let prepared = spec.distance.prepare(client, &tensors.matrix(), parameter);
            expect("the gradient of pairwise_distances", prepared)
        };
        let gradient = distance::gradient(
            client,
            [&x.matrix(), &y.matrix()],
            [&norms(&x), &norms(&y)],
            &turned,
            &upstream,
            (spec.distance.needs().gradient).expect("only what has a gradient is tracked"),
        );
        let gradient = expect("the gradient of pairwise_distances", gradient);
        tensor(&x.values, gradient, x.values.shape(), x.values.dtype)
    }
}
