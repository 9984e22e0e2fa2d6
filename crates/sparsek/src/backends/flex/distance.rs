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
    distance::{
        DenseForm, Each, Gradient, HostMatrix, HostPair, RADIUS_BLOCK, Real, radius_blocks,
        slopes_of_columns as slopes,
    },
    topk::TopkOptions,
};

use super::{
    dense_rows,
    element::{from_vec, with_index},
    parallel,
    select::{Key, Selector},
    tuning::{BATCH_BYTES, MIRROR_BYTES},
};
use crate::ops::{
    CsrTensors, DistanceGradientOps, DistanceOps, DistanceSpec, GradientSpec, ListedSpec,
    NearestSpec, RadiusSpec, Transposed, TransposedPattern,
};

fn batch<S>(same: bool, across: usize) -> usize {
    let bytes = if same { MIRROR_BYTES } else { BATCH_BYTES };
    let row = across * size_of::<S>();
    let fitting = bytes / row.max(1);
    // Only whole outputs are mirrored.
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

impl<S: bytemuck::Pod> Arrays<S> {
    /// By bits: NaN equals itself, and -0 differs from 0.
    fn equals(&self, other: &Self) -> bool {
        let values = [self, other].map(|arrays| bytemuck::cast_slice::<S, u8>(&arrays.values));
        self.indptr == other.indptr && self.indices == other.indices && values[0] == values[1]
    }

    fn matrix(&self) -> HostMatrix<'_, S> {
        HostMatrix {
            indptr: &self.indptr,
            indices: &self.indices,
            values: &self.values,
            cols: self.cols,
        }
    }
}

trait Computed: Key + Real + burn::tensor::Element + bytemuck::Pod {
    fn of_f64(value: f64) -> Self;
    fn values(values: &FlexTensor) -> Vec<Self>;
    fn run(spec: &DistanceSpec, matrices: HostPair<Self>, batch: usize, each: Each<Self>);
}

impl Computed for f32 {
    fn of_f64(value: f64) -> f32 {
        value as f32
    }

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
    fn of_f64(value: f64) -> f64 {
        value
    }

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
    pairs: [&FlexTensor; 3],
    GradientSpec { by: spec, slope }: &GradientSpec,
) -> Vec<S> {
    let (zero, one) = (<S as Real>::new(0.0), <S as Real>::new(1.0));
    let [mut x, mut y] = [arrays::<S>(x, spec.cols), arrays::<S>(y, spec.cols)];
    let [columns, rows, entries] =
        [ids(&y_transposed.indptr), ids(&y_transposed.rows), ids(&y_transposed.entries)];
    let [upstream, distances, divisors] = pairs.map(S::values);
    let across = y.indptr.len() - 1;
    let p = S::of_f64(spec.p);
    let [x_norms, y_norms] = [&mut x, &mut y].map(|matrix| normalize(matrix, *slope));
    let mut output = vec![zero; x.values.len()];
    let mut parts = Vec::new();
    let mut rest = &mut output[..];
    for row in x.indptr.windows(2) {
        let (part, after) = rest.split_at_mut((row[1] - row[0]) as usize);
        parts.push(part);
        rest = after;
    }
    parts.into_par_iter().enumerate().for_each(|(i, part)| {
        // `own` scales the own slope; `constant` is added.
        let (mut own, mut constant) = (zero, zero);
        let own_norm = x_norms[i];
        let distances = &distances[i * across..][..across];
        let weights: Vec<S> = (0..across)
            .map(|j| {
                let (weight, distance) = (upstream[i * across + j], distances[j]);
                let (weight, share, rest) = match slope {
                    Gradient::Product | Gradient::Canberra => (weight, zero, zero),
                    Gradient::Sign => (weight, weight, zero),
                    Gradient::Square => (-(weight + weight), weight + weight, zero),
                    Gradient::Root if distance > zero => {
                        (-(weight / distance), weight / distance, zero)
                    }
                    Gradient::Angle | Gradient::Correlation
                        if own_norm.size > zero
                            && y_norms[j].size > zero
                            && distance.partial_cmp(&distance).is_some() =>
                    {
                        let by_norm = weight / own_norm.size;
                        let alone = by_norm * (one - distance);
                        (-by_norm, alone, by_norm * y_norms[j].mean - alone * own_norm.mean)
                    }
                    Gradient::Hellinger if distance > zero && distance <= one => {
                        let by_sum = weight / (<S as Real>::new(4.0) * distance) / own_norm.size;
                        (-by_sum, zero, by_sum * (one - distance * distance))
                    }
                    Gradient::JensenShannon if distance > zero && distance <= one => {
                        let by_sum = weight / (<S as Real>::new(4.0) * distance) / own_norm.size;
                        (by_sum, zero, zero)
                    }
                    Gradient::Kl | Gradient::KlOfSecond | Gradient::SymmetricKl
                        if distance < one / zero =>
                    {
                        (weight, zero, zero)
                    }
                    Gradient::BrayCurtis if divisors[i * across + j] > zero => {
                        let weight = weight / divisors[i * across + j];
                        (weight, weight * (one - distance), zero)
                    }
                    Gradient::Minkowski if distance > zero && distance < one / zero => {
                        (weight, zero, zero)
                    }
                    _ => (zero, zero, zero),
                };
                own += share;
                constant += rest;
                weight
            })
            .collect();
        let first = x.indptr[i] as usize;
        for (slot, output) in part.iter_mut().enumerate() {
            let (a, column) = (x.values[first + slot], x.indices[first + slot] as usize);
            let mut sum = zero;
            for place in columns[column] as usize..columns[column + 1] as usize {
                let (b, j) = (y.values[entries[place] as usize], rows[place] as usize);
                let (weight, distance) = (weights[j], distances[j]);
                // Their distances may be NaN.
                if weight == zero {
                    continue;
                }
                sum += weight
                    * match slope {
                        Gradient::Sign => slopes::sign(a - b) - slopes::sign(a),
                        Gradient::Canberra => slopes::canberra(a, b),
                        Gradient::BrayCurtis => slopes::bray_curtis(a, b, distance),
                        Gradient::Minkowski => {
                            slopes::minkowski(a - b, distance, p) - absent(a, distance, p)
                        }
                        Gradient::Hellinger => slopes::hellinger(a, b),
                        Gradient::JensenShannon => slopes::jensen_shannon(a, b),
                        Gradient::Kl => slopes::kl(a, b),
                        Gradient::KlOfSecond => slopes::kl_of_second(a, b),
                        Gradient::SymmetricKl => slopes::symmetric_kl(a, b),
                        Gradient::Product
                        | Gradient::Square
                        | Gradient::Root
                        | Gradient::Angle
                        | Gradient::Correlation => b,
                    };
            }
            sum += match slope {
                Gradient::Sign | Gradient::BrayCurtis => slopes::sign(a) * own,
                // As if the column were absent everywhere.
                Gradient::Minkowski => {
                    let pairs = weights.iter().zip(distances);
                    let pairs = pairs.filter(|(weight, _)| **weight != zero);
                    pairs.fold(zero, |sum, (&weight, &distance)| {
                        sum + weight * absent(a, distance, p)
                    })
                }
                Gradient::Hellinger if a > zero => constant,
                Gradient::Hellinger => -sum,
                _ => a * own + constant,
            };
            *output = sum;
        }
        if *slope == Gradient::JensenShannon {
            let shares = &x.values[first..first + part.len()];
            let mean =
                (shares.iter().zip(&*part)).fold(zero, |mean, (&p, &slope)| mean + p * slope);
            for (&share, output) in shares.iter().zip(part) {
                *output = if share > zero { *output - mean } else { zero };
            }
        }
    });
    output
}

fn absent<S: Computed>(a: S, distance: S, p: S) -> S {
    match slopes::may_be_absent(a, distance) > <S as Real>::new(0.0) {
        true => slopes::minkowski(a, distance, p),
        false => <S as Real>::new(0.0),
    }
}

/// Row divisor; mean after dividing.
#[derive(Clone, Copy)]
struct Norm<S> {
    size: S,
    mean: S,
}

/// Divides by norm, centered norm or sum; zero rows stay.
fn normalize<S: Computed>(matrix: &mut Arrays<S>, slope: Gradient) -> Vec<Norm<S>> {
    let (zero, one) = (<S as Real>::new(0.0), <S as Real>::new(1.0));
    let cols = S::of_f64(matrix.cols as f64);
    let rows = matrix.indptr.windows(2).map(|row| {
        let row = &mut matrix.values[row[0] as usize..row[1] as usize];
        if !slope.takes_prepared_values() {
            return Norm { size: one, mean: zero };
        }
        let greatest = row.iter().map(|a| a.abs());
        let greatest = greatest.fold(zero, |most, a| if a > most { a } else { most });
        // Keeps squares in range.
        let divisor = if greatest > zero { greatest } else { one };
        let sum_of = |row: &[S], term: &dyn Fn(S) -> S| {
            row.iter().fold(zero, |sum, &a| sum + term(a / divisor))
        };
        let sum = sum_of(row, &|a| a);
        let mean = sum / cols;
        let size = match slope {
            Gradient::Angle => sum_of(row, &|a| a * a).sqrt(),
            Gradient::Correlation => {
                let absent = cols - S::of_f64(row.len() as f64);
                let squares = sum_of(row, &|a| (a - mean) * (a - mean));
                (squares + absent * mean * mean).sqrt()
            }
            _ => sum,
        };
        if size > zero {
            row.iter_mut().for_each(|a| *a = *a / divisor / size);
        }
        if slope == Gradient::Hellinger {
            row.iter_mut().for_each(|a| *a = a.sqrt());
        }
        let centered = slope == Gradient::Correlation && size > zero;
        Norm { size: size * divisor, mean: if centered { mean / size } else { zero } }
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

/// The first is `None` if both are equal, even copies: that may halve the work.
fn pair<S: Computed>([x, y]: [&Matrix; 2], spec: &DistanceSpec) -> (Option<Arrays<S>>, Arrays<S>) {
    let y = arrays::<S>(y, spec.cols);
    let x = (!spec.same_matrix).then(|| arrays::<S>(x, spec.cols));
    (x.filter(|x| !x.equals(&y)), y)
}

fn pairwise<S: Computed>(matrices: [&Matrix; 2], spec: &DistanceSpec) -> FlexTensor {
    let (x, y) = pair::<S>(matrices, spec);
    let (x, y) = (x.as_ref().map(Arrays::matrix), y.matrix());
    let (rows, across) = (x.as_ref().unwrap_or(&y).rows(), y.rows());
    let mut output = Vec::with_capacity(rows * across);
    let batch = batch::<S>(x.is_none(), across);
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
        let batch = spec.batch.unwrap_or(batch::<S>(x.is_none(), across)).max(1);
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

    fn unit_rows(rows: FloatTensor<Self>, centered: bool) -> FloatTensor<Self> {
        dense_rows::unit_rows(&rows, centered)
    }

    fn dense_distances(
        queries: FloatTensor<Self>,
        rows: FloatTensor<Self>,
        form: DenseForm,
    ) -> FloatTensor<Self> {
        dense_rows::distances([&queries, &rows], None, form)
    }

    fn candidate_distances(
        queries: FloatTensor<Self>,
        rows: FloatTensor<Self>,
        candidates: IntTensor<Self>,
        form: DenseForm,
    ) -> FloatTensor<Self> {
        dense_rows::distances([&queries, &rows], Some(&candidates), form)
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
        let bounds = [&factors, &index, &offsets, &limits];
        dense_rows::near_distances(bounds, [&queries, &rows], spec)
    }
}

impl DistanceGradientOps for Flex {
    fn pairwise_gradient(
        x: CsrTensors<Self>,
        y: CsrTensors<Self>,
        y_transposed: TransposedPattern<Self>,
        upstream: FloatTensor<Self>,
        distances: FloatTensor<Self>,
        divisors: FloatTensor<Self>,
        spec: GradientSpec,
    ) -> FloatTensor<Self> {
        let dtype = x.values.dtype();
        let behind = [&upstream, &distances, &divisors];
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
