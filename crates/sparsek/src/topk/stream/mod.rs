mod error;

use burn::tensor::{
    DType, Device, Float, Int, IntDType, Tensor,
    kind::{Autodiff, Ordered},
};
use sparsek_kernels::topk::{Method, TopkOptions};

pub use self::error::StreamError;
use super::{
    error::or_panic,
    lists::{Launched, List, Request, device_name, read_all},
    request::is_supported,
};

/// Candidates kept without an early merge.
const KEPT: usize = 1 << 16;

/// `k` greatest (or least) elements of a vector pushed in parts, and their indices: for vectors
/// beyond device memory.
///
/// ```text
/// push    queues the selection of up to k elements of the part
///         reads that of the part before, and appends it to the candidates on the host
///         above max(4 k, 2^16) candidates: selects k of them
/// finish  selects k of the candidates
/// ```
///
/// # Shapes
///
/// - parts: any length and device. One dtype: f32, f16, bf16, f64, i32, u32 or i64.
/// - values, indices: `[k]` on the first part's device without autodiff; i64, or i32 if it lacks
///   i64 and i32 suffices.
/// - `options.method`: exact.
///
/// # Guarantees
///
/// Bitwise [`topk`](super::topk) of the whole vector, without gradient; see
/// [`topk_sharded`](super::topk_sharded).
///
/// # Errors
///
/// `try_` methods return a [`StreamError`], others panic. Unfit parts are skipped before launch.
/// Calls after [`StreamError::Device`] repeat it.
///
/// # Cost
///
/// One read per part. Memory: two parts and scratch on the device; max(5 k, 2^16 + k) candidates on
/// the host, each a value and 8 bytes.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::topk::{TopkOptions, TopkStream};
///
/// let mut stream = TopkStream::new(&TopkOptions::new(2).with_sorted(true));
/// for part in [[0.5, 3.0, -1.0], [7.0, 3.0, 2.0]] {
///     stream.push(Tensor::<1>::from_data(part, &Device::flex()));
/// }
/// let (values, indices) = stream.finish();
/// values.into_data().assert_eq(&TensorData::from([7.0, 3.0]), false);
/// indices.into_data().assert_eq(&TensorData::from([3, 1]), false);
/// ```
pub struct TopkStream<K: Ordered = Float> {
    options: TopkOptions,
    seen: u64,
    first: Option<(Device, DType)>,
    pending: Option<Pending<K>>,
    /// Superset of the k best before `pending`, in index order.
    candidates: List,
    failed: Option<StreamError>,
}

struct Pending<K: Ordered> {
    launched: Launched<K>,
    first: i64,
}

impl<K: Ordered + Autodiff> TopkStream<K> {
    /// Starts a stream.
    #[track_caller]
    pub fn new(options: &TopkOptions) -> Self {
        or_panic("TopkStream::new", Self::try_new(options))
    }

    /// Fallible [`new`](Self::new).
    ///
    /// Error: [`StreamError::Method`].
    pub fn try_new(options: &TopkOptions) -> Result<Self, StreamError> {
        if options.method != Method::Exact {
            return Err(StreamError::Method { method: options.method });
        }
        Ok(Self {
            options: *options,
            seen: 0,
            first: None,
            pending: None,
            candidates: List::default(),
            failed: None,
        })
    }

    /// Elements pushed.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Selects from the next part.
    #[track_caller]
    pub fn push(&mut self, part: Tensor<1, K>) {
        or_panic("TopkStream::push", self.try_push(part));
    }

    /// Fallible [`push`](Self::push).
    pub fn try_push(&mut self, part: Tensor<1, K>) -> Result<(), StreamError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let part = part.without_autodiff();
        let index = self.check(&part)?;
        let length = part.dims()[0];
        self.first.get_or_insert_with(|| (part.device(), part.dtype()));
        let first = self.seen as i64;
        self.seen += length as u64;
        if length == 0 || self.options.k == 0 {
            return Ok(());
        }
        let launched = Launched::new(&self.request(index, false), part);
        let before = self.pending.replace(Pending { launched, first });
        let collected = before.map_or(Ok(()), |before| self.collect(before));
        if let Err(error) = &collected {
            self.failed = Some(error.clone());
        }
        collected
    }

    /// Returns values and indices.
    #[track_caller]
    pub fn finish(self) -> (Tensor<1, K>, Tensor<1, Int>) {
        or_panic("TopkStream::finish", self.try_finish())
    }

    /// Fallible [`finish`](Self::finish).
    pub fn try_finish(mut self) -> Result<(Tensor<1, K>, Tensor<1, Int>), StreamError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let (device, dtype) = self.first.clone().ok_or(StreamError::NoParts)?;
        let k = self.options.k;
        if k as u64 > self.seen {
            return Err(StreamError::KTooLarge { k, length: self.seen });
        }
        let request = self.request(index_dtype(self.seen, &device)?, self.options.sorted);
        if k == 0 {
            let none = Tensor::zeros([1], (&device, dtype)).slice(0..0);
            let none = request.best(none, false);
            return Ok((none.values, none.indices));
        }
        if let Some(last) = self.pending.take() {
            self.collect(last)?;
        }
        let best = request.best_of_list(self.candidates, &device, dtype);
        Ok((best.values, best.indices))
    }

    fn check(&self, part: &Tensor<1, K>) -> Result<IntDType, StreamError> {
        let (device, found) = (part.device(), part.dtype());
        let (home, dtype) = self.first.clone().unwrap_or_else(|| (device.clone(), found));
        if found != dtype {
            return Err(StreamError::MixedDtypes { first: dtype, found });
        }
        if !is_supported(dtype) || !device.supports_dtype(dtype) {
            return Err(StreamError::Dtype { dtype, device: device_name(&device) });
        }
        let length = part.dims()[0] as u64;
        index_dtype(self.seen + length, &home)?;
        index_dtype(length, &device)
    }

    fn request(&self, index: IntDType, sorted: bool) -> Request {
        Request { k: self.options.k, largest: self.options.largest, sorted, index }
    }

    fn collect(&mut self, part: Pending<K>) -> Result<(), StreamError> {
        let lists = read_all(vec![part.launched], |_, at| part.first + at)?;
        lists.into_iter().for_each(|list| self.candidates.append(list));
        if self.candidates.len() > KEPT.max(self.options.k.saturating_mul(4)) {
            self.reduce()?;
        }
        Ok(())
    }

    fn reduce(&mut self) -> Result<(), StreamError> {
        let (device, dtype) = self.first.as_ref().expect("a part was pushed");
        let all = std::mem::take(&mut self.candidates);
        let request = self.request(index_dtype(all.len() as u64, device)?, false);
        let launched = Launched::new(&request, all.elements::<K>(device, *dtype));
        self.candidates = List::joined(&read_all(vec![launched], |_, at| all.place(at))?);
        Ok(())
    }
}

fn index_dtype(length: u64, device: &Device) -> Result<IntDType, StreamError> {
    if device.supports_dtype(DType::I64) {
        Ok(IntDType::I64)
    } else if i32::try_from(length).is_ok() {
        Ok(IntDType::I32)
    } else {
        Err(StreamError::IndexDtype { length, device: device_name(device) })
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::tensor::TensorData;
    use rstest::{fixture, rstest};

    use super::{
        super::{VectorOptions, topk_vector},
        *,
    };

    #[fixture]
    fn device() -> Device {
        Device::flex()
    }

    fn elements(length: usize) -> Vec<f32> {
        let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0];
        let of =
            |i: usize| special.get(i * 31 % 97).copied().unwrap_or((i * 37 % 53) as f32 - 20.0);
        (0..length).map(of).collect()
    }

    fn oracle(elements: &[f32], options: &TopkOptions) -> Vec<usize> {
        let greater = |a: f64, b: f64| match (a.is_nan(), b.is_nan()) {
            (false, false) => a.partial_cmp(&b).expect("ordered"),
            (a, b) => a.cmp(&b),
        };
        let x = |at: usize| f64::from(elements[at]);
        let mut order: Vec<usize> = (0..elements.len()).collect();
        match options.largest {
            true => order.sort_by(|&i, &j| greater(x(j), x(i))),
            false => order.sort_by(|&i, &j| greater(x(i), x(j))),
        }
        order.truncate(options.k);
        if !options.sorted {
            order.sort_unstable();
        }
        order
    }

    fn push(stream: &mut TopkStream, elements: &[f32], cut: &[usize], device: &Device) {
        let mut rest = elements;
        for &length in cut.iter().cycle() {
            let (part, after) = rest.split_at(length.min(rest.len()));
            stream.push(Tensor::from_data(TensorData::from(part), device));
            rest = after;
            if rest.is_empty() {
                return;
            }
        }
    }

    fn bits(values: Tensor<1>) -> Vec<u32> {
        values.into_data().iter::<f32>().map(f32::to_bits).collect()
    }

    fn places(indices: Tensor<1, Int>) -> Vec<usize> {
        indices.into_data().iter::<i64>().map(|at| at as usize).collect()
    }

    #[rstest]
    #[case::whole(&[500])]
    #[case::even(&[100])]
    #[case::ones(&[1])]
    #[case::uneven(&[7, 0, 401, 2])]
    fn results_are_those_of_the_whole_vector(
        device: Device,
        #[case] cut: &[usize],
        #[values(0, 1, 40, 500)] k: usize,
        #[values(true, false)] largest: bool,
        #[values(true, false)] sorted: bool,
    ) {
        let elements = elements(500);
        let options = TopkOptions::new(k).with_largest(largest).with_sorted(sorted);
        let mut stream = TopkStream::new(&options);
        push(&mut stream, &elements, cut, &device);
        assert_eq!(stream.seen(), 500);
        let (values, indices) = stream.finish();
        let expected = oracle(&elements, &options);
        let selected: Vec<u32> = expected.iter().map(|&at| elements[at].to_bits()).collect();
        assert_eq!((bits(values), places(indices)), (selected, expected));
    }

    #[rstest]
    #[case::few(3)]
    #[case::many(20_000)]
    fn candidates_are_merged_and_stay_bounded(device: Device, #[case] k: usize) {
        let elements = elements(150_000);
        let mut stream = TopkStream::new(&TopkOptions::new(k));
        let mut most = 0;
        for part in elements.chunks(k.clamp(1000, 9000)) {
            stream.push(Tensor::from_data(TensorData::from(part), &device));
            most = most.max(stream.candidates.len());
        }
        assert!(most <= KEPT.max(4 * k), "{most}");
        let (values, indices) = stream.finish();
        let x = Tensor::<1>::from_data(TensorData::from(&elements[..]), &device);
        let (all, at) = topk_vector(x, &VectorOptions::new(k));
        assert_eq!((bits(values), places(indices)), (bits(all), places(at)));
    }

    #[rstest]
    fn indices_beyond_32_bits_are_exact(device: Device) {
        let mut stream = TopkStream::new(&TopkOptions::new(3).with_sorted(true));
        stream.push(Tensor::<1>::from_floats([1.0, 5.0], &device));
        let far = (1 << 53) + 1;
        stream.seen = far;
        stream.push(Tensor::<1>::from_floats([5.0, 2.0, 9.0], &device));
        assert_eq!(stream.seen(), far + 3);
        let far = far as usize;
        assert_eq!(places(stream.finish().1), [far + 2, 1, far]);
    }

    #[rstest]
    fn integers_are_selected(device: Device) {
        let mut stream = TopkStream::new(&TopkOptions::new(2).with_largest(false));
        for part in [[4, -9], [4, i32::MIN]] {
            stream.push(Tensor::<1, Int>::from_data(part, &device));
        }
        let (values, indices) = stream.finish();
        values.into_data().assert_eq(&TensorData::from([-9, i32::MIN]), false);
        assert_eq!(places(indices), [1, 3]);
    }

    #[rstest]
    fn tracked_parts_are_selected_without_gradient(device: Device) {
        let x = Tensor::<1>::from_floats([1.0, 4.0], &device.autodiff()).require_grad();
        let mut stream = TopkStream::new(&TopkOptions::new(1));
        stream.push(x * 2.0);
        let (values, indices) = stream.finish();
        assert!(!values.is_autodiff());
        assert_eq!((bits(values), places(indices)), (vec![8f32.to_bits()], vec![1]));
    }

    #[rstest]
    fn requests_that_do_not_fit_are_refused(device: Device) {
        let options = TopkOptions::new(3);
        let method = Method::EarlyStop(3);
        let refused = TopkStream::<Float>::try_new(&options.with_method(method)).err();
        assert_eq!(refused, Some(StreamError::Method { method }));
        let refused = TopkStream::<Float>::new(&options).try_finish().unwrap_err();
        assert_eq!(refused, StreamError::NoParts);

        let ints = |dtype| Tensor::<1, Int>::from_data([1, 2], (&device, dtype));
        let mut stream = TopkStream::new(&options);
        stream.push(ints(DType::I32));
        let refused = stream.try_push(ints(DType::U32)).unwrap_err();
        assert_eq!(refused, StreamError::MixedDtypes { first: DType::I32, found: DType::U32 });
        let refused = TopkStream::new(&options).try_push(ints(DType::I16)).unwrap_err();
        let expected = StreamError::Dtype { dtype: DType::I16, device: format!("{device:?}") };
        assert_eq!(refused, expected);

        assert_eq!(stream.seen(), 2);
        let refused = stream.try_finish().unwrap_err();
        assert_eq!(refused, StreamError::KTooLarge { k: 3, length: 2 });
    }

    #[rstest]
    fn a_failed_stream_stays_failed(device: Device) {
        let part = || Tensor::<1>::from_floats([1.0, 4.0], &device);
        let mut stream = TopkStream::new(&TopkOptions::new(1));
        stream.push(part());
        let error = StreamError::Device { device: "gpu".into(), reason: "lost".into() };
        stream.failed = Some(error.clone());
        assert_eq!(stream.try_push(part()).unwrap_err(), error);
        assert_eq!(stream.seen(), 2);
        assert_eq!(stream.try_finish().unwrap_err(), error);
    }
}
