//! Seeded dense inputs.

use std::ops::Range;

use crate::element::Element;

/// SplitMix64. A seed fixes the sequence, so a seed in a message reproduces a case.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in 0..n; 0 if n is 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n.max(1) as u64) as usize
    }

    /// Standard normal (Box-Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// `n` standard normals, exact in f32.
pub fn normals(n: usize, seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed);
    (0..n).map(|_| f64::from(random.normal() as f32)).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Standard normal; times 1000 for integers.
    Normal,
    /// Uniform in [0, 1); times 1000 for integers.
    Uniform,
    /// Nine in ten elements are zero, the others positive normals: k may exceed the positives.
    Relu,
    Equal,
    Eight,
    /// Zeros of both signs and few ±1: the k-th element is a zero.
    Zeros,
    Infinities,
    /// Only NaN, of both signs and several payloads.
    AllNan,
    /// Normal, infinities, zeros and NaN of both signs.
    Special,
    Outlier,
    /// Near the greatest magnitude, where sums overflow.
    Huge,
    /// Subnormals of both signs, zeros and the smallest normals.
    Subnormal,
    /// Consecutive bit patterns from 1.0 up, shuffled.
    Ramp,
    Ascending,
    Descending,
    /// Random bits: all integers, every class of float.
    Bits,
    /// −inf or the least integer in nine of ten places.
    Worst,
    /// +inf or the greatest integer in nine of ten places.
    Best,
    /// After Dr. Top-k's customized distribution: most elements are in the top 1/256 of the range
    /// at each of three depths, so the k-th stays among most of the others.
    Custom,
}

impl Distribution {
    pub const ALL: [Self; 19] = [
        Self::Normal,
        Self::Uniform,
        Self::Relu,
        Self::Equal,
        Self::Eight,
        Self::Zeros,
        Self::Infinities,
        Self::AllNan,
        Self::Special,
        Self::Outlier,
        Self::Huge,
        Self::Subnormal,
        Self::Ramp,
        Self::Ascending,
        Self::Descending,
        Self::Bits,
        Self::Worst,
        Self::Best,
        Self::Custom,
    ];

    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    pub fn row<T: Element>(self, cols: usize, random: &mut Random) -> Vec<T> {
        let scale = if T::FLOAT { 1.0 } else { 1000.0 };
        // Unsigned integers have no negatives: shift the middle up.
        let of = |x: f64| {
            if T::of(-1.0).wide_f64() < 0.0 { T::of(x * scale) } else { T::of(x * scale + 4000.0) }
        };
        let inf = |positive: bool| T::of(if positive { f64::INFINITY } else { f64::NEG_INFINITY });
        let nan = |r: &mut Random| {
            let sign = if r.bits() & 1 == 0 { T::SIGN } else { 0 };
            let payload = 1 + r.bits() % (T::MANTISSA / 2);
            if T::FLOAT {
                T::of_bits(T::of(f64::INFINITY).bits() | sign | payload | (T::MANTISSA / 2 + 1))
            } else {
                T::of_bits(r.bits())
            }
        };
        let mut row: Vec<T> = (0..cols)
            .map(|i| match self {
                Self::Normal | Self::Ascending | Self::Descending => of(random.normal()),
                Self::Uniform => T::of(random.uniform() * scale),
                Self::Relu => {
                    T::of(if random.below(5) == 0 { random.normal().max(0.0) * scale } else { 0.0 })
                }
                Self::Equal => of(1.25),
                Self::Eight => of(random.below(8) as f64 - 3.0),
                Self::Zeros => match random.below(8) {
                    0 => T::of(1.0),
                    1 => T::of(-1.0),
                    n if n % 2 == 0 => T::of(0.0),
                    _ => T::of_bits(if T::FLOAT { T::SIGN } else { 0 }),
                },
                Self::Infinities => match random.below(6) {
                    0 => inf(true),
                    1 => inf(false),
                    _ => of(random.normal()),
                },
                Self::AllNan => nan(random),
                Self::Special => match random.below(8) {
                    0 => inf(true),
                    1 => inf(false),
                    2 => nan(random),
                    3 => T::of_bits(if T::FLOAT { T::SIGN } else { 0 }),
                    4 => T::of(0.0),
                    _ => of(random.normal()),
                },
                Self::Outlier => {
                    if i == cols / 3 {
                        T::of(1e30)
                    } else {
                        of(random.normal())
                    }
                }
                Self::Huge => {
                    let greatest = T::of(f64::INFINITY).bits() - u64::from(T::FLOAT);
                    let sign = if T::FLOAT && random.below(4) == 0 { T::SIGN } else { 0 };
                    T::of_bits((greatest - random.bits() % (T::MANTISSA / 2)) | sign)
                }
                Self::Subnormal => {
                    let sign = if T::FLOAT && random.below(2) == 0 { T::SIGN } else { 0 };
                    let magnitude =
                        if random.below(4) == 0 { 0 } else { random.bits() % (T::MANTISSA + 3) };
                    T::of_bits(magnitude | sign)
                }
                Self::Ramp => T::of_bits(T::ONE + (i as u64) % T::MANTISSA),
                Self::Bits => T::of_bits(random.bits()),
                Self::Worst => {
                    if random.below(10) == 0 {
                        of(random.normal())
                    } else {
                        inf(false)
                    }
                }
                Self::Best => {
                    if random.below(10) == 0 {
                        of(random.normal())
                    } else {
                        inf(true)
                    }
                }
                Self::Custom => {
                    let depth = match random.below(100) {
                        0 => 0,
                        1 => 1,
                        _ => 2,
                    };
                    let below = random.uniform() * 256f64.powi(-depth);
                    let greatest = if T::FLOAT { 1.0 } else { T::of(f64::INFINITY).wide_f64() };
                    T::of((1.0 - below) * greatest)
                }
            })
            .collect();
        match self {
            Self::Ascending => row.sort_by(|a, b| a.order(*b)),
            Self::Descending => row.sort_by(|a, b| b.order(*a)),
            Self::Ramp => (1..cols).for_each(|i| row.swap(i, random.below(i + 1))),
            _ => {}
        }
        row
    }
}

/// A dense matrix in row-major order.
#[derive(Clone, Debug)]
pub struct Matrix<T> {
    pub rows: usize,
    pub cols: usize,
    pub data: Vec<T>,
    /// First column of each ragged row; clamped to 0..=cols.
    pub starts: Option<Vec<i64>>,
    /// Length of each ragged row, or the column after its last; clamped to 0..=cols.
    pub lengths: Option<Vec<i64>>,
}

impl<T: Element> Matrix<T> {
    /// `rows` rows of all distributions in turn, starting at one that `seed` selects.
    pub fn mixed(rows: usize, cols: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let each = Distribution::ALL
            .iter()
            .cycle()
            .skip(seed as usize % Distribution::ALL.len())
            .take(rows);
        let data = each.flat_map(|d| d.row::<T>(cols, &mut random)).collect();
        Self { rows, cols, data, starts: None, lengths: None }
    }

    pub fn of(distribution: Distribution, rows: usize, cols: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let data = (0..rows).flat_map(|_| distribution.row::<T>(cols, &mut random)).collect();
        Self { rows, cols, data, starts: None, lengths: None }
    }

    pub fn listed(rows: &[&[f64]]) -> Self {
        let cols = rows[0].len();
        let data = rows.iter().flat_map(|row| row.iter().map(|&x| T::of(x))).collect();
        Self { rows: rows.len(), cols, data, starts: None, lengths: None }
    }

    /// Makes the rows ragged. Elements past a length, which must never be selected, are set to the
    /// greatest bits (NaN for floats) and both infinities.
    pub fn ragged(mut self, lengths: Vec<i64>) -> Self {
        assert_eq!(lengths.len(), self.rows);
        let behind = [T::of_bits(!T::SIGN), T::of(f64::NEG_INFINITY), T::of(f64::INFINITY)];
        self.lengths = Some(lengths);
        for i in 0..self.rows {
            for j in self.columns(i).end..self.cols {
                self.data[i * self.cols + j] = behind[(i + j) % behind.len()];
            }
        }
        self
    }

    /// Makes the rows ragged, with edge lengths and random ones in turn.
    pub fn with_any_lengths(self, seed: u64) -> Self {
        let cols = self.cols as i64;
        let boundaries = [
            0,
            1,
            2,
            cols / 4,
            cols / 2 - 1,
            cols / 2,
            cols / 2 + 1,
            cols - 1,
            cols,
            cols + 1,
            i64::from(u32::MAX),
        ];
        let mut random = Random::new(seed);
        let each = (0..self.rows).map(|i| match i % 2 {
            0 => boundaries[i / 2 % boundaries.len()].max(0),
            _ => random.below(self.cols + 1) as i64,
        });
        let lengths = each.collect();
        self.ragged(lengths)
    }

    /// Makes the rows begin at edge columns and random ones in turn, as [`ragged`](Self::ragged).
    /// Some begin past their end.
    pub fn with_any_starts(mut self, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let cols = self.cols;
        let outside = [0, 1, 3, cols as i64, i64::from(u32::MAX)];
        let each = (0..self.rows).map(|i| match i % 3 {
            0 => outside[i / 3 % outside.len()],
            1 => random.below(self.columns(i).end + 1) as i64,
            _ => random.below(cols / 4 + 1) as i64,
        });
        self.starts = Some(each.collect());
        let before = [T::of(f64::INFINITY), T::of_bits(!T::SIGN), T::of(f64::NEG_INFINITY)];
        for i in 0..self.rows {
            for j in 0..self.columns(i).start {
                self.data[i * cols + j] = before[(i + j) % before.len()];
            }
        }
        self
    }

    pub fn row(&self, i: usize) -> &[T] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// Columns of row `i` that exist.
    pub fn columns(&self, i: usize) -> Range<usize> {
        let bound = |bounds: &Option<Vec<i64>>, whole: usize| {
            let bound = bounds.as_ref().map(|bounds| bounds[i].clamp(0, self.cols as i64));
            bound.map_or(whole, |bound| bound as usize)
        };
        let end = bound(&self.lengths, self.cols);
        bound(&self.starts, 0).min(end)..end
    }

    /// Elements of row `i` that exist.
    pub fn existing(&self, i: usize) -> &[T] {
        &self.row(i)[self.columns(i)]
    }
}
