/// Gradient by a row's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gradient {
    /// Σ a b.
    Product,
    /// Σ (a − b)².
    Square,
    /// √Σ (a − b)².
    Root,
    /// 1 − Σ a b / (‖a‖ ‖b‖), norms squared.
    Angle,
    /// Σ |a − b|.
    Sign,
    /// 1 − cov(a, b) / (σ(a) σ(b)), norms sums and sums of squares.
    Correlation,
    /// Σ |a − b| / (|a| + |b|).
    Canberra,
    /// Σ |a − b| / Σ |a + b|.
    BrayCurtis,
    /// (Σ |a − b|^p)^(1/p).
    Minkowski,
    /// √(1 − Σ √a √b) of shares, norms sums, prepared values their roots.
    Hellinger,
    /// √(½ Σ a ln(a / m) + ½ Σ b ln(b / m)), m = (a + b) / 2, of shares, norms sums.
    JensenShannon,
    /// Σ a ln(a / b).
    Kl,
    /// Σ b ln(b / a): [`Kl`](Self::Kl) by its second row.
    KlOfSecond,
    /// Σ (a − b) ln(a / b).
    SymmetricKl,
}

impl Gradient {
    /// The gradient by the second row's values.
    pub const fn of_second(self) -> Self {
        match self {
            Self::Kl => Self::KlOfSecond,
            symmetric => symmetric,
        }
    }

    /// Whether slopes are of prepared values.
    pub const fn takes_prepared_values(self) -> bool {
        matches!(self, Self::Angle | Self::Correlation | Self::Hellinger | Self::JensenShannon)
    }
}

/// What is true of a distance. Begin with a constant such as [`Algebra::NORMS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Algebra {
    /// Uses [`Semiring::norm`](crate::distance::Semiring::norm) or
    /// [`Semiring::second`](crate::distance::Semiring::second).
    pub norms: bool,
    /// Uses [`Semiring::prepare`](crate::distance::Semiring::prepare).
    pub prepared: bool,
    /// Uses [`Semiring::other`](crate::distance::Semiring::other).
    pub other: bool,
    /// Infinite unless the right row has all columns of the left:
    /// [`Semiring::other`](crate::distance::Semiring::other) sums to the left row's
    /// [`Semiring::norm`](crate::distance::Semiring::norm), with at most as much per column.
    pub covered: bool,
    /// [`Semiring::norm`](crate::distance::Semiring::norm) and
    /// [`Semiring::direct`](crate::distance::Semiring::direct) take maxima of values ≥ 0; a total
    /// that forces another evaluation is the greatest possible core.
    pub maxima: bool,
    /// A column of one row adds nothing; otherwise products cover either row's columns.
    pub annihilates: bool,
    /// d(x, y) = d(y, x), rounding included.
    pub symmetric: bool,
    /// Larger is nearer.
    pub largest: bool,
    /// Uses logarithms or powers, missing for f64 on some devices.
    pub logarithms: bool,
    /// Has a parameter above 0.
    pub parameter: bool,
    /// Gradient, if any.
    pub gradient: Option<Gradient>,
}

impl Algebra {
    /// Products over common columns.
    pub const PRODUCTS: Self = Self {
        norms: false,
        prepared: false,
        other: false,
        covered: false,
        maxima: false,
        annihilates: true,
        symmetric: false,
        largest: false,
        logarithms: false,
        parameter: false,
        gradient: None,
    };
    /// [`PRODUCTS`](Self::PRODUCTS) and norms.
    pub const NORMS: Self = Self { norms: true, ..Self::PRODUCTS };

    /// Marks as symmetric.
    pub const fn symmetric(self) -> Self {
        Self { symmetric: true, ..self }
    }

    /// Sets `gradient`.
    pub const fn gradient(self, gradient: Gradient) -> Self {
        Self { gradient: Some(gradient), ..self }
    }

    /// Sums per pair of rows.
    pub(in crate::distance) const fn sums(&self) -> usize {
        if self.other { 2 } else { 1 }
    }

    /// Whether [`Semiring::other`](crate::distance::Semiring::other) sums in parts; exact counts
    /// for [`covered`](Self::covered) do not.
    pub const fn other_in_parts(&self) -> bool {
        self.other && !self.covered
    }
}
