use burn::tensor::{Bool, DType, Int, Tensor, ops::IndexingUpdateOp};

use crate::{
    dense::column_sums,
    nn::support::{place_distinct, take_distinct},
    topk::{TopkOptions, argtopk},
};

/// Token copies grouped by expert.
///
/// Each of `tokens · k` copies gets a row, ordered by expert, token, slot. Deterministic. Only
/// [`padded`](Self::padded) makes the host wait.
///
/// `experts` arguments: `[tokens, k]`, below `count`. Costs a sort of `tokens · k` numbers and a
/// sum over `tokens · experts`.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Int, Tensor, TensorData};
/// use sparsek::nn::MoeDispatch;
///
/// let device = Device::flex();
/// let experts = Tensor::<2, Int>::from_data([[1], [0], [1]], &device);
/// let tokens = Tensor::<2>::from_data([[10.0], [20.0], [30.0]], &device);
/// let dispatch = MoeDispatch::sorted(&experts, 2);
/// let rows = dispatch.dispatch(tokens);
/// rows.clone().into_data().assert_eq(&TensorData::from([[20.0], [10.0], [30.0]]), false);
/// let weights = Tensor::from_data([[0.5], [1.0], [2.0]], &device);
/// let y = dispatch.combine(rows, weights).into_data();
/// y.assert_eq(&TensorData::from([[5.0], [20.0], [60.0]]), false);
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct MoeDispatch {
    /// `[tokens, k]`, distinct; dropped copies start at `rows`.
    slots: Tensor<2, Int>,
    counts: Tensor<1, Int>,
    offsets: Tensor<1, Int>,
    rows: usize,
    /// Extra rows for dropped copies.
    spare: usize,
}

impl MoeDispatch {
    /// Uses `tokens · k` rows. Drops nothing.
    pub fn sorted(experts: &Tensor<2, Int>, count: usize) -> Self {
        let order = Order::new(experts, count);
        let copies = experts.shape().num_elements();
        Self {
            slots: order.position.reshape(experts.shape()),
            counts: order.counts,
            offsets: order.offsets,
            rows: copies,
            spare: 0,
        }
    }

    /// Uses `capacity` rows per expert, padded with 0. Drops excess copies, last tokens first.
    pub fn with_capacity(experts: &Tensor<2, Int>, count: usize, capacity: usize) -> Self {
        let order = Order::new(experts, count);
        Self::limited(experts, count, capacity, order, true)
    }

    /// Uses the greatest count, which the host reads, as capacity: drops nothing.
    pub fn padded(experts: &Tensor<2, Int>, count: usize) -> Self {
        let order = Order::new(experts, count);
        let greatest = match count {
            0 => 0,
            _ => order.counts.clone().max().into_scalar::<i64>() as usize,
        };
        Self::limited(experts, count, greatest, order, false)
    }

    fn limited(
        experts: &Tensor<2, Int>,
        count: usize,
        capacity: usize,
        order: Order,
        drops: bool,
    ) -> Self {
        let (copies, device) = (experts.shape().num_elements(), experts.device());
        let rows = count * capacity;
        let options = (&device, experts.dtype());
        let flat: Tensor<1, Int> = experts.clone().reshape([copies]);
        let offsets = order.offsets.select(0, flat.clone());
        let rank = order.position - offsets;
        let slots = flat * capacity as i64 + rank.clone();
        let slots = match drops {
            false => slots,
            true => {
                let behind = Tensor::<1, Int>::arange(0..copies as i64, options) + rows as i64;
                slots.mask_where(rank.greater_equal_elem(capacity as i64), behind)
            }
        };
        Self {
            slots: slots.reshape(experts.shape()),
            counts: order.counts,
            offsets: Tensor::<1, Int>::arange(0..count as i64, options) * capacity as i64,
            rows,
            spare: if drops { copies } else { 0 },
        }
    }

    /// Rows of [`dispatch`](Self::dispatch).
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Copies per expert, also dropped: `[experts]`.
    pub fn counts(&self) -> Tensor<1, Int> {
        self.counts.clone()
    }

    /// First row per expert: `[experts]`.
    pub fn offsets(&self) -> Tensor<1, Int> {
        self.offsets.clone()
    }

    /// Row per copy: `[tokens, k]`; ≥ [`rows`](Self::rows) if dropped.
    pub fn slots(&self) -> Tensor<2, Int> {
        self.slots.clone()
    }

    /// True unless dropped: `[tokens, k]`.
    pub fn kept(&self) -> Tensor<2, Bool> {
        self.slots.clone().lower_elem(self.rows as i64)
    }

    /// Copies tokens: `[tokens, width]` → `[rows, width]`.
    ///
    /// Differentiable. With capacity, allocates `tokens · k` more rows.
    pub fn dispatch(&self, x: Tensor<2>) -> Tensor<2> {
        let ([tokens, k], [found, width]) = (self.slots.dims(), x.dims());
        assert!(found == tokens, "MoeDispatch::dispatch: {found} tokens, but experts of {tokens}");
        if self.rows == 0 {
            return Tensor::zeros([0, width], (&x.device(), x.dtype()));
        }
        let copies = x.unsqueeze_dim::<3>(1).expand([tokens, k, width]);
        let copies = copies.reshape([tokens * k, width]);
        let rows = place_distinct(copies, self.flat(), self.rows + self.spare);
        rows.narrow(0, 0, self.rows)
    }

    /// `result[t] = Σ_j weights[t, j] · y[row of copy (t, j)]`; dropped copies weigh 0.
    ///
    /// `y`: `[rows, width]`, `weights`: `[tokens, k]` → `[tokens, width]`. Differentiable.
    pub fn combine(&self, y: Tensor<2>, weights: Tensor<2>) -> Tensor<2> {
        let ([tokens, k], [found, width]) = (self.slots.dims(), y.dims());
        assert!(found == self.rows, "MoeDispatch::combine: {found} rows instead of {}", self.rows);
        assert!(
            weights.dims() == [tokens, k],
            "MoeDispatch::combine: weights of shape {:?} instead of {:?}",
            weights.dims(),
            [tokens, k]
        );
        if self.rows == 0 || k == 0 {
            return Tensor::zeros([tokens, width], (&y.device(), y.dtype()));
        }
        let y = match self.spare {
            0 => y,
            spare => {
                let zeros = Tensor::zeros([spare, width], (&y.device(), y.dtype()));
                Tensor::cat(vec![y, zeros], 0)
            }
        };
        let copies: Tensor<3> = take_distinct(y, self.flat()).reshape([tokens, k, width]);
        let sum = (copies * weights.unsqueeze_dim(2)).sum_dim(1);
        sum.squeeze_dim(1)
    }

    fn flat(&self) -> Tensor<1, Int> {
        self.slots.clone().reshape([self.slots.shape().num_elements()])
    }
}

struct Order {
    /// `[tokens · k]`
    position: Tensor<1, Int>,
    /// `[experts]`
    counts: Tensor<1, Int>,
    /// `[experts]`
    offsets: Tensor<1, Int>,
}

impl Order {
    fn new(experts: &Tensor<2, Int>, count: usize) -> Self {
        let copies = experts.shape().num_elements();
        let counts = expert_counts(experts, count);
        if copies == 0 {
            return Self {
                position: experts.clone().reshape([0]),
                offsets: counts.zeros_like(),
                counts,
            };
        }
        let options = TopkOptions::new(copies).with_largest(false).with_sorted(true);
        // Ties keep their order.
        let sorted = argtopk(experts.clone().reshape([copies]), &options, 0);
        let places = Tensor::<1, Int>::arange(0..copies as i64, (&sorted.device(), sorted.dtype()));
        let position = places.zeros_like().scatter_nd(
            sorted.unsqueeze_dim::<2>(1),
            places,
            IndexingUpdateOp::Add,
        );
        Self {
            position: position.cast(experts.dtype()),
            offsets: counts.clone().cumsum(0) - counts.clone(),
            counts,
        }
    }
}

/// Counts are exact in f32 up to this.
const EXACT: usize = 1 << 24;

/// `[tokens, k]` → `[count]`.
pub(super) fn expert_counts(experts: &Tensor<2, Int>, count: usize) -> Tensor<1, Int> {
    let [tokens, k] = experts.dims();
    let device = experts.device();
    if tokens * k * count == 0 {
        return Tensor::zeros([count], (&device, experts.dtype()));
    }
    let parts = (0..tokens).step_by(EXACT).map(|first| {
        let rows = EXACT.min(tokens - first);
        let chosen = experts.clone().narrow(0, first, rows);
        let options = (&device, DType::F32);
        let ones = Tensor::<2>::ones([rows, k], options);
        let zeros = Tensor::<2>::zeros([rows, count], options);
        let loads = zeros.scatter(1, chosen, ones, IndexingUpdateOp::Add);
        column_sums(loads).int().cast(experts.dtype())
    });
    parts.reduce(|sums, part| sums + part).expect("a token")
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::tensor::{DType, Device, TensorData};
    use rstest::rstest;

    use super::*;
    use crate::nn::fixtures::{assert_close, check_gradient, device, probe, random, tensor};

    const TOKENS: usize = 7;
    const EXPERTS: usize = 4;
    const WIDTH: usize = 3;

    /// Expert 2 is never chosen.
    fn experts(device: &Device) -> (Vec<usize>, Tensor<2, Int>) {
        let host = [1, 0, 3, 1, 0, 1, 1, 3, 3, 0, 1, 0, 0, 3];
        let data = TensorData::new(host.map(|e| e as i64).to_vec(), [TOKENS, 2]);
        let tensor = Tensor::from_data(data, (device, DType::I64));
        (host.to_vec(), tensor)
    }

    #[derive(Clone, Copy, Debug)]
    enum Mode {
        Sorted,
        Padded,
        Capacity(usize),
    }

    impl Mode {
        fn dispatch(self, experts: &Tensor<2, Int>) -> MoeDispatch {
            match self {
                Mode::Sorted => MoeDispatch::sorted(experts, EXPERTS),
                Mode::Padded => MoeDispatch::padded(experts, EXPERTS),
                Mode::Capacity(rows) => MoeDispatch::with_capacity(experts, EXPERTS, rows),
            }
        }
    }

    fn oracle(mode: Mode, experts: &[usize]) -> (Vec<Option<usize>>, Vec<i64>) {
        let of = |e| (0..experts.len()).filter(move |&copy| experts[copy] == e);
        let greatest = (0..EXPERTS).map(|e| of(e).count()).max().unwrap();
        let (mut rows, mut offsets) = (Vec::new(), Vec::new());
        for e in 0..EXPERTS {
            let first = rows.len();
            offsets.push(first as i64);
            rows.extend(of(e).map(Some));
            match mode {
                Mode::Sorted => {}
                Mode::Padded => rows.resize(first + greatest, None),
                Mode::Capacity(capacity) => rows.resize(first + capacity, None),
            }
        }
        (rows, offsets)
    }

    #[rstest]
    fn copies_lie_by_expert_and_come_back_weighted(
        device: Device,
        #[values(
            Mode::Sorted,
            Mode::Padded,
            Mode::Capacity(0),
            Mode::Capacity(2),
            Mode::Capacity(9)
        )]
        mode: Mode,
    ) {
        let (host, experts) = experts(&device);
        let x = random(TOKENS * WIDTH, 1);
        let weights = random(TOKENS * 2, 2);
        let (rows, offsets) = oracle(mode, &host);
        let factor = |row: usize| row as f64 + 2.0;
        let mut laid = vec![0.0; rows.len() * WIDTH];
        let mut combined = vec![0.0; TOKENS * WIDTH];
        let mut kept = vec![false; host.len()];
        for (row, copy) in rows.iter().enumerate() {
            let Some(copy) = *copy else { continue };
            kept[copy] = true;
            for i in 0..WIDTH {
                laid[row * WIDTH + i] = x[copy / 2 * WIDTH + i];
                combined[copy / 2 * WIDTH + i] +=
                    weights[copy] * factor(row) * x[copy / 2 * WIDTH + i];
            }
        }

        let dispatch = mode.dispatch(&experts);
        assert_eq!(dispatch.rows(), rows.len());
        let found = dispatch.offsets().try_into_vec_as::<i64>().unwrap();
        assert_eq!(found, offsets);
        let found = dispatch.counts().try_into_vec_as::<i64>().unwrap();
        assert_eq!(found, [5, 5, 0, 4]);
        let found = dispatch.kept().try_into_vec_as::<bool>().unwrap();
        assert_eq!(found, kept);
        let copies = dispatch.dispatch(tensor(&x, [TOKENS, WIDTH], &device));
        assert_close(copies.clone(), &laid);
        let factors: Vec<f64> = (0..rows.len()).map(factor).collect();
        let y = copies * tensor::<2>(&factors, [rows.len(), 1], &device);
        let y = dispatch.combine(y, tensor(&weights, [TOKENS, 2], &device));
        assert_close(y, &combined);
    }

    #[rstest]
    fn gradients_of_tokens_and_weights(
        device: Device,
        #[values(Mode::Sorted, Mode::Padded, Mode::Capacity(3))] mode: Mode,
    ) {
        let dispatch = mode.dispatch(&experts(&device).1);
        let x = tensor(&random(TOKENS * WIDTH, 3), [TOKENS, WIDTH], &device);
        let weights = tensor(&random(TOKENS * 2, 4), [TOKENS, 2], &device);
        let run = |x: Tensor<2>, weights: Tensor<2>| {
            let y = dispatch.dispatch(x);
            probe(dispatch.combine(y.clone() * y, weights))
        };
        check_gradient(x.clone(), |x| run(x, weights.clone()));
        check_gradient(weights.clone(), |weights| run(x.clone(), weights));
    }

    #[rstest]
    fn no_tokens_are_no_rows(device: Device) {
        let experts = Tensor::<2, Int>::zeros([0, 2], &device);
        let dispatch = MoeDispatch::sorted(&experts, EXPERTS);
        assert_eq!(dispatch.rows(), 0);
        assert_eq!(dispatch.counts().try_into_vec_as::<i64>().unwrap(), [0; EXPERTS]);
    }
}
