//! Random top-k requests: compile-time properties of a kernel and several variants of its inputs.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use sparsek_kernels::topk::{Method, TopkOptions};
use sparsek_tests::{
    data::{Distribution, Matrix},
    element::{Dtype, Element},
};

const MAX_COLS: usize = 2000;

/// Bounds of a request.
#[derive(Clone, Copy)]
pub struct Extent {
    rows: usize,
    variants: usize,
}

impl Extent {
    pub const FULL: Self = Self { rows: 70, variants: 24 };
    /// For runtimes where a row takes milliseconds.
    pub const SMALL: Self = Self { rows: 8, variants: 6 };
}

/// Compile-time properties of a kernel, and its inputs.
#[derive(Clone, Debug)]
pub struct Request {
    pub dtype: Dtype,
    pub cols: usize,
    pub largest: bool,
    pub method: MethodKind,
    pub ragged: bool,
    pub variants: Vec<Variant>,
}

/// A method without its parameter, which kernels take at run time.
#[derive(Clone, Copy, Debug)]
pub enum MethodKind {
    Exact,
    EarlyStop,
    Precision,
}

#[derive(Clone, Debug)]
pub struct Variant {
    pub rows: usize,
    k: K,
    sorted: bool,
    max_iter: u32,
    eps: f32,
    content: Content,
    seed: u64,
}

/// k relative to the row length.
#[derive(Clone, Copy, Debug)]
enum K {
    Few(usize),
    AllBut(usize),
    Percent(usize),
}

#[derive(Clone, Copy, Debug)]
enum Content {
    Each(Distribution),
    Mixed,
}

impl Request {
    pub fn options(&self, variant: &Variant) -> TopkOptions {
        let method = match self.method {
            MethodKind::Exact => Method::Exact,
            MethodKind::EarlyStop => Method::EarlyStop(variant.max_iter),
            MethodKind::Precision => Method::Precision(variant.eps),
        };
        TopkOptions {
            k: variant.k.of(self.cols),
            largest: self.largest,
            sorted: variant.sorted,
            method,
        }
    }

    pub fn matrix<T: Element>(&self, variant: &Variant) -> Matrix<T> {
        let matrix = match variant.content {
            Content::Each(distribution) => {
                Matrix::of(distribution, variant.rows, self.cols, variant.seed)
            }
            Content::Mixed => Matrix::mixed(variant.rows, self.cols, variant.seed),
        };
        match (self.ragged, variant.seed % 2) {
            (false, _) => matrix,
            (true, 0) => matrix.with_any_lengths(variant.seed),
            (true, _) => matrix.with_any_lengths(variant.seed).with_any_starts(variant.seed),
        }
    }
}

impl K {
    fn of(self, cols: usize) -> usize {
        match self {
            Self::Few(k) => k.min(cols),
            Self::AllBut(rest) => cols.saturating_sub(rest),
            Self::Percent(percent) => cols * percent / 100,
        }
    }
}

pub fn request(extent: Extent) -> impl Strategy<Value = Request> {
    let method = select(vec![MethodKind::Exact, MethodKind::EarlyStop, MethodKind::Precision]);
    let dtype = select(Dtype::ALL.to_vec());
    let variants = vec(variant(extent.rows), 1..=extent.variants);
    let ragged = prop_oneof![3 => Just(false), 2 => Just(true)];
    let fields = (dtype, cols(), any::<bool>(), method, ragged, variants);
    fields.prop_map(|(dtype, cols, smallest, method, ragged, variants)| Request {
        dtype,
        cols,
        largest: !smallest,
        method,
        ragged,
        variants,
    })
}

/// Small, near a power of two, a multiple of four, or any.
fn cols() -> impl Strategy<Value = usize> {
    prop_oneof![
        3 => 1..=64usize,
        3 => (0..11u32, 0..3usize).prop_map(|(log, above)| ((1 << log) + above).max(2) - 1),
        2 => (1..=MAX_COLS / 4).prop_map(|quads| 4 * quads),
        2 => 1..=MAX_COLS,
    ]
}

fn variant(rows: usize) -> impl Strategy<Value = Variant> {
    let rows = prop_oneof![0..=8usize, 0..=rows];
    let k = prop_oneof![
        3 => (0..=33usize).prop_map(K::Few),
        1 => (0..=4usize).prop_map(K::AllBut),
        2 => (0..=100usize).prop_map(K::Percent),
    ];
    let content = prop_oneof![
        select(Distribution::ALL.to_vec()).prop_map(Content::Each),
        Just(Content::Mixed),
    ];
    let fields =
        (rows, k, any::<bool>(), prop_oneof![0..=12u32, 0..=80u32], eps(), content, 0..1u64 << 32);
    fields.prop_map(|(rows, k, sorted, max_iter, eps, content, seed)| Variant {
        rows,
        k,
        sorted,
        max_iter,
        eps,
        content,
        seed,
    })
}

/// Zero, a usual tolerance, or an extreme one.
fn eps() -> impl Strategy<Value = f32> {
    let usual = (0..8i32).prop_map(|digits| 10f32.powi(-digits));
    prop_oneof![1 => Just(0.0), 4 => usual, 1 => select(vec![4.0, f32::MAX, f32::MIN_POSITIVE])]
}
