//! Unit per row.

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::{column_sum::reduce_rows, types::DenseRows};
use crate::{
    device::{require_dtype, require_logarithms, rounded_accumulator},
    error::KernelError,
    launch::{Grid, allocate, argument, fill_zero},
};

/// Scores and labels of rows.
#[derive(Clone, Copy, Debug)]
pub struct ClassScores<'a> {
    /// `[rows, classes]`.
    pub scores: DenseRows<'a>,
    /// `[rows]`; negative labels exclude their rows.
    pub labels: &'a Handle,
    /// i32 or i64.
    pub label_dtype: ElemType,
}

impl ClassScores<'_> {
    fn grid(&self, client: &Client) -> Result<Grid, KernelError> {
        require_dtype(client, self.label_dtype)?;
        Grid::elementwise(client, self.scores.rows, self.scores.elements())
    }

    fn scores(&self) -> Result<BufferArg, KernelError> {
        let x = &self.scores;
        argument(x.handle, "scores", x.dtype, x.elements())
    }

    fn labels(&self) -> Result<BufferArg, KernelError> {
        argument(self.labels, "labels", self.label_dtype, self.scores.rows)
    }
}

/// Computes `scale · Σ (ln Σ exp(scores[i]) - scores[i, labels[i]])` over labeled rows: `[1]` in
/// the scores' dtype.
///
/// Labels ≥ `classes` give the largest loss. Errors: f64 on wgpu.
pub fn cross_entropy(
    client: &Client,
    request: &ClassScores,
    scale: f32,
) -> Result<Handle, KernelError> {
    let x = &request.scores;
    require_logarithms(client, x.dtype)?;
    let wide = rounded_accumulator(client, x.dtype)?;
    let losses = allocate(client, "losses", x.rows, wide)?;
    if x.rows > 0 {
        let grid = request.grid(client)?;
        // SAFETY: lengths checked.
        unsafe {
            loss_kernel::launch_unchecked(
                client,
                grid.count,
                grid.dim,
                grid.address,
                request.scores()?,
                request.labels()?,
                argument(&losses, "losses", wide, x.rows)?,
                x.rows,
                x.width,
                scale,
                [x.dtype, request.label_dtype, wide],
            );
        }
    }
    let losses = DenseRows { handle: &losses, dtype: wide, rows: x.rows, width: 1 };
    reduce_rows(client, &losses, wide, x.dtype)
}

/// Gradient of [`cross_entropy`]: `[rows, classes]`, zero in unlabeled rows.
///
/// `upstream` is `[1]` in the scores' dtype. Errors: as [`cross_entropy`].
pub fn cross_entropy_gradient(
    client: &Client,
    request: &ClassScores,
    upstream: &Handle,
    scale: f32,
) -> Result<Handle, KernelError> {
    let x = &request.scores;
    require_logarithms(client, x.dtype)?;
    let wide = rounded_accumulator(client, x.dtype)?;
    let gradient = allocate(client, "gradient", x.elements(), x.dtype)?;
    if x.elements() == 0 {
        return Ok(gradient);
    }
    let grid = request.grid(client)?;
    // SAFETY: lengths checked.
    unsafe {
        loss_gradient_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            request.scores()?,
            request.labels()?,
            argument(upstream, "upstream", x.dtype, 1)?,
            argument(&gradient, "gradient", x.dtype, x.elements())?,
            x.rows,
            x.width,
            scale,
            [x.dtype, request.label_dtype, wide],
        );
    }
    Ok(gradient)
}

/// Marks rows whose label scores highest (first on ties): 1 or 0, `[rows]` in the scores' dtype.
pub fn class_hits(client: &Client, request: &ClassScores) -> Result<Handle, KernelError> {
    let x = &request.scores;
    let wide = rounded_accumulator(client, x.dtype)?;
    let hits = allocate(client, "hits", x.rows, x.dtype)?;
    if x.elements() == 0 {
        fill_zero(client, &hits, x.dtype, x.rows)?;
        return Ok(hits);
    }
    let grid = request.grid(client)?;
    // SAFETY: lengths checked.
    unsafe {
        hit_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            request.scores()?,
            request.labels()?,
            argument(&hits, "hits", x.dtype, x.rows)?,
            x.rows,
            x.width,
            [x.dtype, request.label_dtype, wide],
        );
    }
    Ok(hits)
}

/// Needs a class.
#[cube]
fn maximum<E: Float, S: Float>(scores: &[E], start: usize, classes: usize) -> S {
    let mut greatest = S::cast_from(scores[start]);
    for class in 1..classes {
        greatest = max(greatest, S::cast_from(scores[start + class]));
    }
    greatest
}

#[cube]
fn exponential_sum<E: Float, S: Float>(
    scores: &[E],
    start: usize,
    classes: usize,
    greatest: S,
) -> S {
    let mut sum = S::new(0.0);
    for class in 0..classes {
        sum += S::exp(S::cast_from(scores[start + class]) - greatest);
    }
    sum
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn loss_kernel<E: Float, L: Int, S: Float>(
    scores: &[E],
    labels: &[L],
    losses: &mut [S],
    rows: usize,
    classes: usize,
    scale: f32,
    #[define(E, L, S)] _dtypes: [ElemType; 3],
) {
    let row = ABSOLUTE_POS;
    if row >= rows {
        terminate!();
    }
    let label = labels[row];
    let mut loss = S::new(0.0);
    if label >= L::new(0) && classes > 0 {
        let start = row * classes;
        let greatest = maximum::<E, S>(scores, start, classes);
        let sum = exponential_sum::<E, S>(scores, start, classes, greatest);
        let mut own = S::min_value();
        let at = usize::cast_from(label);
        if at < classes {
            own = S::cast_from(scores[start + at]);
        }
        loss = S::cast_from(scale) * (S::ln(sum) + (greatest - own));
    }
    losses[row] = loss;
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn loss_gradient_kernel<E: Float, L: Int, S: Float>(
    scores: &[E],
    labels: &[L],
    upstream: &[E],
    gradient: &mut [E],
    rows: usize,
    classes: usize,
    scale: f32,
    #[define(E, L, S)] _dtypes: [ElemType; 3],
) {
    let row = ABSOLUTE_POS;
    if row >= rows {
        terminate!();
    }
    let label = labels[row];
    let start = row * classes;
    if label >= L::new(0) {
        let greatest = maximum::<E, S>(scores, start, classes);
        let sum = exponential_sum::<E, S>(scores, start, classes, greatest);
        let factor = S::cast_from(scale) * S::cast_from(upstream[0]);
        let at = usize::cast_from(label);
        for class in 0..classes {
            let x = S::cast_from(scores[start + class]);
            let own = select(class == at, S::new(1.0), S::new(0.0));
            let share = S::exp(x - greatest) / sum;
            gradient[start + class] = E::cast_from(factor * (share - own));
        }
    } else {
        for class in 0..classes {
            gradient[start + class] = E::cast_from(S::new(0.0));
        }
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn hit_kernel<E: Float, L: Int, S: Float>(
    scores: &[E],
    labels: &[L],
    hits: &mut [E],
    rows: usize,
    classes: usize,
    #[define(E, L, S)] _dtypes: [ElemType; 3],
) {
    let row = ABSOLUTE_POS;
    if row >= rows {
        terminate!();
    }
    let start = row * classes;
    let mut best = 0usize;
    let mut greatest = S::cast_from(scores[start]);
    for class in 1..classes {
        let x = S::cast_from(scores[start + class]);
        if x > greatest {
            best = class;
            greatest = x;
        }
    }
    let label = labels[row];
    let hit = label >= L::new(0) && usize::cast_from(label) == best;
    hits[row] = E::cast_from(select(hit, S::new(1.0), S::new(0.0)));
}
