//! Seeded inputs: every distribution that a selection could trip over.

use crate::element::Element;

/// A small generator with a fixed sequence (SplitMix64), so that a seed in a message is a case.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in 0..1.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in 0..n.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n.max(1) as u64) as usize
    }

    /// Standard normal.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// How the elements of a row are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Standard normal; times 1000 for integers.
    Normal,
    /// Uniform in 0..1; in 0..1000 for integers.
    Uniform,
    /// Normal with negatives set to zero, then most of the rest as well: k exceeds the positives.
    Relu,
    /// One value everywhere.
    Equal,
    /// Eight distinct values.
    Eight,
    /// Both zeros among a few units: the k-th element is a zero.
    Zeros,
    /// Normal with both infinities.
    Infinities,
    /// NaN of both signs and several payloads, and nothing else.
    AllNan,
    /// Normal, infinities, zeros, NaN of both signs.
    Special,
    /// Normal and one 1e30.
    Outlier,
    /// Near the greatest magnitude of the type, where a sum overflows.
    Huge,
    /// Subnormals of both signs, zeros, the least normals.
    Subnormal,
    /// Consecutive bit patterns from 1.0 on, shuffled.
    Ramp,
    /// Sorted up.
    Ascending,
    /// Sorted down.
    Descending,
    /// Random bits: full range of the integers, every class of float.
    Bits,
    /// The worst bound (−inf, or the least value) in nine of ten places.
    Worst,
    /// The other bound in nine of ten places.
    Best,
    /// After the customized distribution of Dr. Top-k: at each of three depths most elements crowd into the greatest
    /// 256th of the range, so that the k-th lies among most of the others, however often the range is narrowed.
    Custom,
}

impl Distribution {
    /// All of them.
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

    /// Its name on command lines and in records.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// A row of `cols` elements.
    pub fn row<T: Element>(self, cols: usize, random: &mut Random) -> Vec<T> {
        let scale = if T::FLOAT { 1.0 } else { 1000.0 };
        // Unsigned integers have no negatives to spare: move the middle up.
        let of = |x: f64| {
            if T::of(-1.0).wide_f64() < 0.0 {
                T::of(x * scale)
            } else {
                T::of(x * scale + 4000.0)
            }
        };
        let inf = |positive: bool| {
            T::of(if positive {
                f64::INFINITY
            } else {
                f64::NEG_INFINITY
            })
        };
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
                Self::Relu => T::of(if random.below(5) == 0 {
                    random.normal().max(0.0) * scale
                } else {
                    0.0
                }),
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
                    let sign = if T::FLOAT && random.below(4) == 0 {
                        T::SIGN
                    } else {
                        0
                    };
                    T::of_bits((greatest - random.bits() % (T::MANTISSA / 2)) | sign)
                }
                Self::Subnormal => {
                    let sign = if T::FLOAT && random.below(2) == 0 {
                        T::SIGN
                    } else {
                        0
                    };
                    let magnitude = if random.below(4) == 0 {
                        0
                    } else {
                        random.bits() % (T::MANTISSA + 3)
                    };
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
                    T::of((1.0 - below) * if T::FLOAT { 1.0 } else { f64::from(1 << 24) })
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
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Elements, row after row.
    pub data: Vec<T>,
    /// How many elements of each row exist, if not all do; to be clamped to 0..=cols.
    pub lengths: Option<Vec<i64>>,
}

impl<T: Element> Matrix<T> {
    /// `rows` rows that take the distributions in turn, from the one that `seed` points to.
    pub fn mixed(rows: usize, cols: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let each = Distribution::ALL
            .iter()
            .cycle()
            .skip(seed as usize % Distribution::ALL.len())
            .take(rows);
        let data = each.flat_map(|d| d.row::<T>(cols, &mut random)).collect();
        Self {
            rows,
            cols,
            data,
            lengths: None,
        }
    }

    /// `rows` rows of one distribution.
    pub fn of(distribution: Distribution, rows: usize, cols: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let data = (0..rows)
            .flat_map(|_| distribution.row::<T>(cols, &mut random))
            .collect();
        Self {
            rows,
            cols,
            data,
            lengths: None,
        }
    }

    /// One row per listed row.
    pub fn listed(rows: &[&[f64]]) -> Self {
        let cols = rows[0].len();
        let data = rows
            .iter()
            .flat_map(|row| row.iter().map(|&x| T::of(x)))
            .collect();
        Self {
            rows: rows.len(),
            cols,
            data,
            lengths: None,
        }
    }

    /// The same with ragged rows. What lies behind a length must never be selected: the greatest value
    /// (all bits but the sign set: a NaN of floats), both infinities in turn.
    pub fn ragged(mut self, lengths: Vec<i64>) -> Self {
        assert_eq!(lengths.len(), self.rows);
        let behind = [
            T::of_bits(!T::SIGN),
            T::of(f64::NEG_INFINITY),
            T::of(f64::INFINITY),
        ];
        self.lengths = Some(lengths);
        for i in 0..self.rows {
            for j in self.existing(i).len()..self.cols {
                self.data[i * self.cols + j] = behind[(i + j) % behind.len()];
            }
        }
        self
    }

    /// The same with lengths on both sides of all that `k` can be, and random ones in turn with them.
    pub fn with_any_lengths(self, seed: u64) -> Self {
        let cols = self.cols as i64;
        let telling = [
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
            0 => telling[i / 2 % telling.len()].max(0),
            _ => random.below(self.cols + 1) as i64,
        });
        let lengths = each.collect();
        self.ragged(lengths)
    }

    /// A row.
    pub fn row(&self, i: usize) -> &[T] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// The elements of a row that exist.
    pub fn existing(&self, i: usize) -> &[T] {
        let length = self.lengths.as_ref().map(|lengths| lengths[i]);
        let length = length.map_or(self.cols, |length| {
            length.clamp(0, self.cols as i64) as usize
        });
        &self.row(i)[..length]
    }
}
