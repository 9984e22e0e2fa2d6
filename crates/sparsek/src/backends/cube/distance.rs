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
use cubecl::{MemoryScope, client::Client, server::Handle};
use sparsek_kernels::{
    KernelError,
    dense::{self, DenseRows, Weight},
    distance::{
        self, DenseForm, Index, Listed, Matrix, Parameter, Prepared, Radius, Routine, Upstream,
        exclude_self, greatest, index_part, radius_blocks,
    },
    topk::{self, Rows, TopkOptions},
};

use super::{
    tensor::{expect, tensor},
    tuning::{BATCH_BYTES, COPIES_BYTES, COPY_BYTES, COUNTER_BYTES, FREE_FRACTION, SMALL_BYTES},
};
use crate::ops::{
    CsrTensors, DistanceGradientOps, DistanceOps, DistanceSpec, GradientSpec, ListedSpec,
    NearestSpec, RadiusSpec, Transposed, TransposedPattern, distance_dtype,
};

/// `all`: bytes of all distances.
fn budget(client: &Client, all: usize, entries: usize) -> [usize; 2] {
    let memory = &client.properties().memory;
    let most = match memory.max_memory() {
        Some(all_memory) if all > SMALL_BYTES => {
            let used = client.memory_report(MemoryScope::Device).usage();
            all_memory.saturating_sub(used.bytes_in_use) / FREE_FRACTION
        }
        _ => u64::MAX,
    };
    let most = most.min(memory.max_page_size) as usize;
    let left = COPIES_BYTES.saturating_sub(entries.saturating_mul(COPY_BYTES));
    let batch = BATCH_BYTES.min(left.max(SMALL_BYTES));
    [batch.min(most), COUNTER_BYTES.min(most)]
}

struct Tensors {
    indptr: CubeTensor,
    indices: CubeTensor,
    values: CubeTensor,
    cols: usize,
    longest: usize,
    greatest: Option<f32>,
}

impl Tensors {
    fn new<const SECOND: usize>(csr: CsrTensors<CubeBackend>, spec: &DistanceSpec) -> Self {
        Self {
            indptr: into_contiguous(csr.indptr),
            indices: into_contiguous(csr.indices),
            values: into_contiguous(csr.values),
            cols: spec.cols,
            longest: spec.longest[SECOND],
            greatest: spec.greatest[SECOND],
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
            longest: self.longest,
            greatest: self.greatest,
            nnz: self.indices.shape()[0],
        }
    }

    /// Offsets stay absolute.
    fn rows(&self, rows: &Range<usize>) -> Self {
        let size = size_of::<i32>();
        let count = self.indptr.shape()[0];
        let handle = self.indptr.handle.clone();
        let handle = handle.offset_start((rows.start * size) as u64);
        let handle = handle.offset_end(((count - rows.end - 1) * size) as u64);
        let shape = Shape::from([rows.len() + 1]);
        Self {
            indptr: tensor(&self.indptr, handle, shape, self.indptr.dtype),
            indices: self.indices.clone(),
            values: self.values.clone(),
            cols: self.cols,
            longest: self.longest,
            greatest: self.greatest,
        }
    }
}

fn dense_distances(
    operands: [CubeTensor; 2],
    candidates: Option<CubeTensor>,
    form: DenseForm,
) -> CubeTensor {
    let [queries, rows] = operands.map(into_contiguous);
    let candidates = candidates.map(into_contiguous);
    let [count, columns] = queries.shape().dims();
    let index_rows = rows.shape()[0];
    let listed = candidates.as_ref().map(|candidates| {
        (&candidates.handle, candidates.shape()[1], dtype_to_elem_type(candidates.dtype))
    });
    let distances = distance::dense_distances(
        &queries.client,
        form,
        [&queries.handle, &rows.handle],
        [count, index_rows, columns],
        listed,
        dtype_to_elem_type(queries.dtype),
    );
    let across = listed.map_or(index_rows, |(_, each, _)| each);
    let shape = Shape::from([count, across]);
    tensor(&queries, expect("kneighbors", distances), shape, queries.dtype)
}

fn near_distances(
    [factors, index, offsets, limits, queries, rows]: [CubeTensor; 6],
    spec: ListedSpec,
) -> (CubeTensor, CubeTensor) {
    let client = &queries.client;
    let [count, inputs] = factors.shape().dims();
    let outputs = index.shape()[0];
    let dtype = dtype_to_elem_type(queries.dtype);
    let x = DenseRows { handle: &factors.handle, dtype, rows: count, width: inputs };
    let matrix = Weight { handle: &index.handle, inputs, outputs, strides: [1, inputs] };
    let (bias, limits, capacity) = (&offsets.handle, &limits.handle, spec.capacity);
    let lists = dense::filtered_columns(client, &x.into(), &matrix, bias, limits, capacity);
    let lists = expect("kneighbors", lists);
    let found = distance::listed_distances(
        client,
        spec.form,
        [&queries.handle, &rows.handle],
        [count, outputs, queries.shape()[1]],
        Listed { numbers: &lists.columns, counts: &lists.counts, capacity },
        [dtype, dtype_to_elem_type(spec.index.into())],
    );
    let (distances, numbers) = expect("kneighbors", found);
    let shape = Shape::from([count, capacity]);
    let numbers = tensor(&queries, numbers, shape.clone(), spec.index.into());
    (tensor(&queries, distances, shape, queries.dtype), numbers)
}

fn routine(client: &Client, [x, y]: [&Tensors; 2], spec: &DistanceSpec) -> Routine {
    let compared = Some(&x.matrix());
    let chosen = || distance::choose(client, spec.distance, compared, &y.matrix(), spec.density);
    spec.routine.unwrap_or_else(chosen)
}

struct Pair {
    index: Index,
    x: Option<Prepared>,
}

impl Pair {
    fn new(
        [x, y]: [&Tensors; 2],
        spec: &DistanceSpec,
        routine: Routine,
    ) -> Result<Self, KernelError> {
        let client = &x.values.client;
        let index = Index::new(client, &y.matrix(), spec.distance, spec.p, Some(routine))?;
        let x = match spec.same_matrix {
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

type Found = (CubeTensor, CubeTensor);

struct Search<'a> {
    like: &'a CubeTensor,
    spec: &'a NearestSpec,
    bytes: usize,
}

impl Search<'_> {
    fn selected(&self) -> usize {
        self.spec.k + usize::from(self.spec.exclude_self)
    }

    fn run(&self, pair: &Pair, k: usize, exclude_self: bool) -> Result<Found, KernelError> {
        let client = &self.like.client;
        let (rows, across) = (pair.left().rows, pair.index.prepared().rows);
        let row = across * pair.left().dtype.size();
        let batch = self.spec.batch.unwrap_or(self.bytes / row.max(1)).max(1);
        let (mut values, mut indices) = (Vec::new(), Vec::new());
        for start in (0..rows.max(1)).step_by(batch) {
            let queries = start..rows.min(start + batch);
            let count = queries.len();
            let distances = pair.distances(client, queries)?;
            let mut found = self.select(distances, [count, across], k)?;
            if exclude_self {
                found = self.exclude_self(found, start)?;
            }
            values.push(found.0);
            indices.push(found.1);
        }
        if values.len() == 1 {
            return Ok((values.remove(0), indices.remove(0)));
        }
        Ok((CubeBackend::float_cat(values, 0), CubeBackend::int_cat(indices, 0)))
    }

    /// Makes counters fit in memory.
    fn run_in_parts(&self, [x, y]: [&Tensors; 2], part: usize) -> Result<Found, KernelError> {
        let client = &self.like.client;
        let by = &self.spec.by;
        let rows = y.matrix().rows;
        let k = self.selected();
        let mut best: Option<Found> = None;
        for first in (0..rows).step_by(part) {
            let some = first..rows.min(first + part);
            let y = y.rows(&some);
            // Parts must not choose another routine.
            let routine = Some(Routine::Inverted);
            let index = Index::new(client, &y.matrix(), by.distance, by.p, routine)?;
            let x = Some(index.prepare(client, &x.matrix())?);
            let (values, places) = self.run(&Pair { index, x }, k.min(some.len()), false)?;
            let places = CubeBackend::int_add_scalar(places, (first as i64).into());
            best = Some(match best {
                None => (values, places),
                Some(best) => self.merge(best, (values, places), k)?,
            });
        }
        let found = best.expect("a part has rows");
        match self.spec.exclude_self {
            true => self.exclude_self(found, 0),
            false => Ok(found),
        }
    }

    fn select(
        &self,
        distances: Handle,
        [count, across]: [usize; 2],
        k: usize,
    ) -> Result<Found, KernelError> {
        let options = TopkOptions {
            largest: self.spec.by.distance.algebra().largest,
            sorted: true,
            ..TopkOptions::new(k)
        };
        let dtype = output_dtype(self.like);
        let rows = Rows::contiguous(distances, dtype_to_elem_type(dtype), count, across);
        let index = DType::from(self.spec.index);
        let found =
            topk::topk(&self.like.client, &rows, &options, dtype_to_elem_type(index), None)?;
        let shape = Shape::from([count, k]);
        Ok((
            tensor(self.like, found.values, shape.clone(), dtype),
            tensor(self.like, found.indices, shape, index),
        ))
    }

    /// `first`: first query's index row.
    fn exclude_self(&self, (values, indices): Found, first: usize) -> Result<Found, KernelError> {
        let (values, indices) = (into_contiguous(values), into_contiguous(indices));
        let (count, k) = (values.shape()[0], self.spec.k);
        let [dtype, index] = [values.dtype, indices.dtype];
        let [kept, kept_indices] = exclude_self(
            &values.client,
            [&values.handle, &indices.handle],
            [count, k, first],
            dtype_to_elem_type(dtype),
            dtype_to_elem_type(index),
        )?;
        let shape = Shape::from([count, k]);
        Ok((
            tensor(&values, kept, shape.clone(), dtype),
            tensor(&values, kept_indices, shape, index),
        ))
    }

    /// `other` holds later rows.
    fn merge(&self, one: Found, other: Found, k: usize) -> Result<Found, KernelError> {
        let values = into_contiguous(CubeBackend::float_cat(vec![one.0, other.0], 1));
        let places = CubeBackend::int_cat(vec![one.1, other.1], 1);
        let [rows, across] = [values.shape()[0], values.shape()[1]];
        let handle = values.handle.clone();
        let (values, at) = self.select(handle, [rows, across], k.min(across))?;
        Ok((values, CubeBackend::int_gather(1, places, at)))
    }
}

fn output_dtype(values: &CubeTensor) -> DType {
    distance_dtype(values.dtype)
}

fn radius<'a>(distances: &'a CubeTensor, spec: &RadiusSpec) -> Radius<'a> {
    Radius {
        distances: &distances.handle,
        dtype: dtype_to_elem_type(distances.dtype),
        rows: distances.shape()[0],
        across: distances.shape()[1],
        radius: spec.radius,
        largest: spec.largest,
        exclude_self: spec.exclude_self,
    }
}

impl DistanceOps for CubeBackend {
    fn greatest(values: FloatTensor<Self>) -> FloatTensor<Self> {
        let values = into_contiguous(values);
        let client = &values.client;
        let dtype = dtype_to_elem_type(values.dtype);
        let handle = match distance::multiplies(client) && dtype.size() <= 4 {
            true => greatest(client, &values.handle, dtype, values.shape()[0]),
            false => Ok(client.create_from_slice(&f32::INFINITY.to_ne_bytes())),
        };
        let handle = expect("the greatest value", handle);
        tensor(&values, handle, Shape::from([1]), DType::F32)
    }

    fn pairwise(
        x: CsrTensors<Self>,
        y: CsrTensors<Self>,
        _transposed: Transposed<Self>,
        spec: DistanceSpec,
    ) -> FloatTensor<Self> {
        let x = Tensors::new::<0>(x, &spec);
        let y = Tensors::new::<1>(y, &spec);
        let client = &x.values.client;
        let routine = routine(client, [&x, &y], &spec);
        let pair = expect("pairwise_distances", Pair::new([&x, &y], &spec, routine));
        let rows = pair.left().rows;
        let output = pair.distances(client, 0..rows);
        let output = expect("pairwise_distances", output);
        let shape = Shape::from([rows, pair.index.prepared().rows]);
        tensor(&x.values, output, shape, output_dtype(&x.values))
    }

    fn nearest(
        x: CsrTensors<Self>,
        y: CsrTensors<Self>,
        spec: NearestSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        let x = Tensors::new::<0>(x, &spec.by);
        let y = Tensors::new::<1>(y, &spec.by);
        let client = &x.values.client;
        let by = &spec.by;
        let routine = routine(client, [&x, &y], by);
        let matrix = y.matrix();
        let pairs = x.matrix().rows.saturating_mul(matrix.rows);
        let size = output_dtype(&x.values).size();
        let [bytes, counters] = budget(client, pairs.saturating_mul(size), matrix.nnz);
        // Some keep two sums per pair.
        let bytes = bytes >> u32::from(by.distance.algebra().other_in_parts());
        let part = index_part(client, &matrix, by.distance, routine, counters);
        let part = expect("kneighbors", part);
        let search = Search { like: &x.values, spec: &spec, bytes };
        let found = match part < matrix.rows && pairs > 0 && spec.k > 0 {
            true => search.run_in_parts([&x, &y], part),
            false => Pair::new([&x, &y], by, routine)
                .and_then(|pair| search.run(&pair, search.selected(), spec.exclude_self)),
        };
        expect("kneighbors", found)
    }

    fn count_within(distances: FloatTensor<Self>, spec: RadiusSpec) -> IntTensor<Self> {
        let distances = into_contiguous(distances);
        let within = radius(&distances, &spec);
        let counts = expect("radius_neighbors", within.count(&distances.client));
        let shape = Shape::from([within.rows, radius_blocks(within.across)]);
        tensor(&distances, counts, shape, DType::I32)
    }

    fn list_within(
        distances: FloatTensor<Self>,
        offsets: IntTensor<Self>,
        spec: RadiusSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        let (distances, offsets) = (into_contiguous(distances), into_contiguous(offsets));
        let listed = radius(&distances, &spec).list(&distances.client, &offsets.handle, spec.total);
        let [values, places] = expect("radius_neighbors", listed);
        let shape = Shape::from([spec.total]);
        (
            tensor(&distances, values, shape.clone(), distances.dtype),
            tensor(&distances, places, shape, DType::I32),
        )
    }

    fn unit_rows(rows: FloatTensor<Self>, centered: bool) -> FloatTensor<Self> {
        let rows = into_contiguous(rows);
        let dtype = dtype_to_elem_type(rows.dtype);
        let counts = rows.shape().dims();
        let unit = distance::unit_rows(&rows.client, &rows.handle, counts, centered, dtype);
        tensor(&rows, expect("kneighbors", unit), rows.shape(), rows.dtype)
    }

    fn dense_distances(
        queries: FloatTensor<Self>,
        rows: FloatTensor<Self>,
        form: DenseForm,
    ) -> FloatTensor<Self> {
        dense_distances([queries, rows], None, form)
    }

    fn candidate_distances(
        queries: FloatTensor<Self>,
        rows: FloatTensor<Self>,
        candidates: IntTensor<Self>,
        form: DenseForm,
    ) -> FloatTensor<Self> {
        dense_distances([queries, rows], Some(candidates), form)
    }

    fn near_distances(
        factors: FloatTensor<Self>,
        index: FloatTensor<Self>,
        offsets: FloatTensor<Self>,
        limits: FloatTensor<Self>,
        queries: FloatTensor<Self>,
        rows: FloatTensor<Self>,
        spec: ListedSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        let operands = [factors, index, offsets, limits, queries, rows].map(into_contiguous);
        near_distances(operands, spec)
    }
}

impl DistanceGradientOps for CubeBackend {
    fn pairwise_gradient(
        x: CsrTensors<Self>,
        y: CsrTensors<Self>,
        y_transposed: TransposedPattern<Self>,
        upstream: FloatTensor<Self>,
        distances: FloatTensor<Self>,
        divisors: FloatTensor<Self>,
        GradientSpec { by: spec, slope }: GradientSpec,
    ) -> FloatTensor<Self> {
        let x = Tensors::new::<0>(x, &spec);
        let y = Tensors::new::<1>(y, &spec);
        let [indptr, rows, entries] =
            [y_transposed.indptr, y_transposed.rows, y_transposed.entries].map(into_contiguous);
        let transposed = distance::Transposed {
            places: &x.indices.handle,
            cols: indptr.shape()[0] - 1,
            indptr: &indptr.handle,
            rows: &rows.handle,
            entries: &entries.handle,
        };
        let [upstream, distances, divisors] = [upstream, distances, divisors].map(into_contiguous);
        let upstream = Upstream {
            gradient: &upstream.handle,
            distances: &distances.handle,
            divisors: &divisors.handle,
        };
        let client = &x.values.client;
        let parameter = Parameter::of(spec.p);
        let norms = |tensors: &Tensors| {
            let prepared = spec.distance.prepare(client, &tensors.matrix(), parameter);
            expect("the gradient of pairwise_distances", prepared)
        };
        let gradient = distance::gradient(
            client,
            [&x.matrix(), &y.matrix()],
            [&norms(&x), &norms(&y)],
            &transposed,
            &upstream,
            slope,
            parameter,
        );
        let gradient = expect("the gradient of pairwise_distances", gradient);
        tensor(&x.values, gradient, x.values.shape(), x.values.dtype)
    }
}
