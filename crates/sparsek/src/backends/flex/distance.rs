//! Distances in plain Rust.

use burn::{
    backend::{
        Flex, TensorMetadata,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{DType, Shape, bf16, f16},
};
use burn_flex::FlexTensor;
use rayon::prelude::*;
use sparsek_kernels::{
    distance::{Each, Gradient, HostMatrix, HostPair, RADIUS_BLOCK, Real, radius_blocks},
    topk::TopkOptions,
};

use super::{
    element::{from_vec, with_index},
    parallel,
    select::{Key, Selector},
    tuning::{BATCH_BYTES, MIRROR_BYTES},
};
use crate::ops::{
    CsrTensors, DistanceGradientOps, DistanceOps, DistanceSpec, NearestSpec, RadiusSpec,
    Transposed, TransposedPattern,
};

fn batch<S>(spec: &DistanceSpec, across: usize) -> usize {
    let bytes = if spec.same_matrix { MIRROR_BYTES } else { BATCH_BYTES };
    let row = across * size_of::<S>();
    let fitting = bytes / row.max(1);
    // Then the larger batch saves no work.
    match fitting >= across {
        true => fitting,
        false => BATCH_BYTES / row,
    }
}

struct Arrays<S> {
    indptr: Vec<u32>,
    indices: Vec<u32>,
    values: Vec<S>,
    cols: usize,
}

impl<S> Arrays<S> {
    fn matrix(&self) -> HostMatrix<'_, S> {
        HostMatrix {
            indptr: &self.indptr,
            indices: &self.indices,
            values: &self.values,
            cols: self.cols,
        }
    }
}

trait Computed: Key + Real + burn::tensor::Element {
    fn values(values: &FlexTensor) -> Vec<Self>;
    fn run(spec: &DistanceSpec, matrices: HostPair<Self>, batch: usize, each: Each<Self>);
}

impl Computed for f32 {
    fn values(values: &FlexTensor) -> Vec<f32> {
        let values = values.to_contiguous();
        match values.dtype() {
            DType::F32 => values.as_slice::<f32>().expect("f32").to_vec(),
            DType::F16 => (values.as_slice::<f16>().expect("f16").iter())
                .map(|value| value.to_f32())
                .collect(),
            DType::BF16 => (values.as_slice::<bf16>().expect("bf16").iter())
                .map(|value| value.to_f32())
                .collect(),
            dtype => panic!("dtype {dtype:?} is not a float that this operation supports"),
        }
    }

    fn run(spec: &DistanceSpec, matrices: HostPair<f32>, batch: usize, each: Each<f32>) {
        spec.distance.host_f32(matrices, spec.p, batch, each);
    }
}

impl Computed for f64 {
    fn values(values: &FlexTensor) -> Vec<f64> {
        let values = values.to_contiguous();
        values.as_slice::<f64>().expect("f64").to_vec()
    }

    fn run(spec: &DistanceSpec, matrices: HostPair<f64>, batch: usize, each: Each<f64>) {
        spec.distance.host_f64(matrices, spec.p, batch, each);
    }
}

/// See `sparsek_kernels::distance::gradient`.
fn gradient<S: Computed>(
    [x, y]: [&Matrix; 2],
    y_transposed: &TransposedPattern<Flex>,
    [upstream, distances]: [&FlexTensor; 2],
    spec: &DistanceSpec,
) -> Vec<S> {
    let slope = (spec.distance.algebra().gradient).expect("only what has a gradient is tracked");
    let [mut x, mut y] = [arrays::<S>(x, spec.cols), arrays::<S>(y, spec.cols)];
    let [columns, rows, entries] =
        [ids(&y_transposed.indptr), ids(&y_transposed.rows), ids(&y_transposed.entries)];
    let (upstream, distances) = (S::values(upstream), S::values(distances));
    let across = y.indptr.len() - 1;
    let (zero, one) = (<S as Real>::new(0.0), <S as Real>::new(1.0));
    let angle = slope == Gradient::Angle;
    let (x_norms, y_norms) = match angle {
        true => (norms(&mut x), norms(&mut y)),
        false => (Vec::new(), Vec::new()),
    };
    let sign = |a: S| match a {
        a if a > zero => one,
        a if a < zero => -one,
        _ => zero,
    };
    let mut output = vec![zero; x.values.len()];
    let mut parts = Vec::new();
    let mut rest = &mut output[..];
    for row in x.indptr.windows(2) {
        let (part, after) = rest.split_at_mut((row[1] - row[0]) as usize);
        parts.push(part);
        rest = after;
    }
    parts.into_par_iter().enumerate().for_each(|(i, part)| {
        // Weights of rows of `y`, and the part of the own value.
        let mut own = zero;
        let weights: Vec<S> = (0..across)
            .map(|j| {
                let at = i * across + j;
                let weight = upstream[at];
                let (weight, share) = match slope {
                    Gradient::Product => (weight, zero),
                    Gradient::Sign => (weight, weight),
                    Gradient::Square => (-(weight + weight), weight + weight),
                    Gradient::Root if distances[at] > zero => {
                        (-(weight / distances[at]), weight / distances[at])
                    }
                    // Rows are normalized here.
                    Gradient::Angle if x_norms[i] > zero && y_norms[j] > zero => {
                        let by_norm = weight / x_norms[i];
                        (-by_norm, by_norm * (one - distances[at]))
                    }
                    Gradient::Root | Gradient::Angle => (zero, zero),
                };
                own += share;
                weight
            })
            .collect();
        let first = x.indptr[i] as usize;
        for (slot, output) in part.iter_mut().enumerate() {
            let (a, column) = (x.values[first + slot], x.indices[first + slot] as usize);
            let mut sum = zero;
            for place in columns[column] as usize..columns[column + 1] as usize {
                let b = y.values[entries[place] as usize];
                let weight = weights[rows[place] as usize];
                sum += weight
                    * match slope {
                        Gradient::Sign => sign(a - b) - sign(a),
                        _ => b,
                    };
            }
            let slope_of_own = if slope == Gradient::Sign { sign(a) } else { a };
            *output = sum + slope_of_own * own;
        }
    });
    output
}

/// Normalizes rows and returns their norms; zero rows stay.
fn norms<S: Computed>(matrix: &mut Arrays<S>) -> Vec<S> {
    let (zero, one) = (<S as Real>::new(0.0), <S as Real>::new(1.0));
    let rows = matrix.indptr.windows(2).map(|row| {
        let row = &mut matrix.values[row[0] as usize..row[1] as usize];
        let greatest = row.iter().map(|a| a.abs());
        let greatest = greatest.fold(zero, |most, a| if a > most { a } else { most });
        // Keeps squares in range.
        let divisor = if greatest > zero { greatest } else { one };
        let squares = row.iter().fold(zero, |sum, &a| {
            let a = a / divisor;
            sum + a * a
        });
        let root = squares.sqrt();
        if root > zero {
            row.iter_mut().for_each(|a| *a = *a / divisor / root);
        }
        root * divisor
    });
    rows.collect()
}

fn ids(tensor: &FlexTensor) -> Vec<u32> {
    let tensor = tensor.to_contiguous();
    let ids = tensor.as_slice::<i32>().expect("patterns are i32 tensors");
    ids.iter().map(|&id| id as u32).collect()
}

type Matrix = CsrTensors<Flex>;

fn arrays<S: Computed>(matrix: &Matrix, cols: usize) -> Arrays<S> {
    Arrays {
        indptr: ids(&matrix.indptr),
        indices: ids(&matrix.indices),
        values: S::values(&matrix.values),
        cols,
    }
}

/// The first is `None` if equal to the second.
fn pair<S: Computed>([x, y]: [&Matrix; 2], spec: &DistanceSpec) -> (Option<Arrays<S>>, Arrays<S>) {
    let x = (!spec.same_matrix).then(|| arrays::<S>(x, spec.cols));
    (x, arrays::<S>(y, spec.cols))
}

fn pairwise<S: Computed>(matrices: [&Matrix; 2], spec: &DistanceSpec) -> FlexTensor {
    let (x, y) = pair::<S>(matrices, spec);
    let (x, y) = (x.as_ref().map(Arrays::matrix), y.matrix());
    let (rows, across) = (x.as_ref().unwrap_or(&y).rows(), y.rows());
    let mut output = Vec::with_capacity(rows * across);
    let batch = batch::<S>(spec, across);
    S::run(spec, (x.as_ref(), &y), batch, &mut |_, distances| {
        output.extend_from_slice(distances);
    });
    from_vec(output, Shape::from([rows, across]))
}

fn nearest<S: Computed>(matrices: [&Matrix; 2], spec: &NearestSpec) -> (FlexTensor, FlexTensor) {
    let (x, y) = pair::<S>(matrices, &spec.by);
    let (x, y) = (x.as_ref().map(Arrays::matrix), y.matrix());
    let (k, rows, across) = (spec.k, x.as_ref().unwrap_or(&y).rows(), y.rows());
    let select = TopkOptions::new(k + usize::from(spec.exclude_self))
        .with_largest(spec.by.distance.algebra().largest)
        .with_sorted(true);
    let mut values = vec![<S as Key>::ZERO; rows * k];
    let mut places = vec![0i64; rows * k];
    if k > 0 {
        let batch = spec.batch.unwrap_or(batch::<S>(&spec.by, across)).max(1);
        S::run(&spec.by, (x.as_ref(), &y), batch, &mut |first, distances| {
            let from = first * k;
            let both = from..from + distances.len() / across * k;
            let both = (&mut values[both.clone()], &mut places[both]);
            parallel::row_pairs(both, k, Selector::new, |selector, i, values, places| {
                let row = &distances[i * across..][..across];
                let itself = spec.exclude_self.then_some(first + i);
                let found = selector.select(row, &select).iter();
                let found = found.filter(|&&j| itself != Some(j));
                for (slot, &j) in found.take(k).enumerate() {
                    values[slot] = row[j];
                    places[slot] = j as i64;
                }
            });
        });
    }
    let shape = Shape::from([rows, k]);
    let places = with_index!(DType::from(spec.index), I => {
        let places: Vec<I> = places.iter().map(|&place| place as I).collect();
        from_vec(places, shape.clone())
    });
    (from_vec(values, shape), places)
}

fn is_near<S: Computed>(spec: &RadiusSpec, radius: S) -> impl Fn(usize, usize, S) -> bool {
    let (largest, first) = (spec.largest, spec.exclude_self);
    move |row, place, distance| {
        let near = match largest {
            true => distance >= radius,
            false => distance <= radius,
        };
        near && first.map(|first| first + row) != Some(place)
    }
}

fn count_within<S: Computed>(distances: &FlexTensor, spec: &RadiusSpec, radius: S) -> FlexTensor {
    let across = distances.shape()[1];
    let shape = Shape::from([distances.shape()[0], radius_blocks(across)]);
    let near = is_near(spec, radius);
    let values = S::values(distances);
    let rows = values.par_chunks_exact(across.max(1)).enumerate();
    let counts = rows.flat_map_iter(|(i, row)| {
        let near = &near;
        row.chunks(RADIUS_BLOCK).enumerate().map(move |(number, part)| {
            let places = number * RADIUS_BLOCK..;
            let near = places.zip(part).filter(|&(j, &d)| near(i, j, d));
            near.count() as i32
        })
    });
    from_vec(counts.collect::<Vec<i32>>(), shape)
}

fn list_within<S: Computed>(
    distances: &FlexTensor,
    spec: &RadiusSpec,
    radius: S,
) -> (FlexTensor, FlexTensor) {
    let across = distances.shape()[1];
    let near = is_near(spec, radius);
    let values = S::values(distances);
    let rows = values.par_chunks_exact(across.max(1)).enumerate();
    let found = rows.flat_map_iter(|(i, row)| {
        let near = &near;
        let places = row.iter().enumerate();
        let places = places.filter(move |&(j, &d)| near(i, j, d));
        places.map(|(j, &d)| (d, j as i32))
    });
    let (values, places): (Vec<S>, Vec<i32>) = found.unzip();
    let shape = Shape::from([spec.total]);
    (from_vec(values, shape.clone()), from_vec(places, shape))
}

impl DistanceOps for Flex {
    fn greatest(_values: FloatTensor<Self>) -> FloatTensor<Self> {
        from_vec(vec![f32::INFINITY], [1].into())
    }

    fn pairwise(
        x: CsrTensors<Self>,
        y: CsrTensors<Self>,
        _transposed: Transposed<Self>,
        spec: DistanceSpec,
    ) -> FloatTensor<Self> {
        let wide = x.values.dtype() == DType::F64;
        match wide {
            true => pairwise::<f64>([&x, &y], &spec),
            false => pairwise::<f32>([&x, &y], &spec),
        }
    }

    fn nearest(
        x: CsrTensors<Self>,
        y: CsrTensors<Self>,
        spec: NearestSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        let wide = x.values.dtype() == DType::F64;
        match wide {
            true => nearest::<f64>([&x, &y], &spec),
            false => nearest::<f32>([&x, &y], &spec),
        }
    }

    fn count_within(distances: FloatTensor<Self>, spec: RadiusSpec) -> IntTensor<Self> {
        match distances.dtype() {
            DType::F64 => count_within(&distances, &spec, spec.radius),
            _ => count_within(&distances, &spec, spec.radius as f32),
        }
    }

    fn list_within(
        distances: FloatTensor<Self>,
        _offsets: IntTensor<Self>,
        spec: RadiusSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        match distances.dtype() {
            DType::F64 => list_within(&distances, &spec, spec.radius),
            _ => list_within(&distances, &spec, spec.radius as f32),
        }
    }
}

impl DistanceGradientOps for Flex {
    fn pairwise_gradient(
        x: CsrTensors<Self>,
        y: CsrTensors<Self>,
        y_transposed: TransposedPattern<Self>,
        upstream: FloatTensor<Self>,
        distances: FloatTensor<Self>,
        spec: DistanceSpec,
    ) -> FloatTensor<Self> {
        let dtype = x.values.dtype();
        let behind = [&upstream, &distances];
        if dtype == DType::F64 {
            let gradient = gradient::<f64>([&x, &y], &y_transposed, behind, &spec);
            let shape = Shape::from([gradient.len()]);
            return from_vec(gradient, shape);
        }
        let gradient = gradient::<f32>([&x, &y], &y_transposed, behind, &spec);
        let shape = Shape::from([gradient.len()]);
        match dtype {
            DType::F16 => from_vec(gradient.into_iter().map(f16::from_f32).collect(), shape),
            DType::BF16 => from_vec(gradient.into_iter().map(bf16::from_f32).collect(), shape),
            _ => from_vec(gradient, shape),
        }
    }
}
