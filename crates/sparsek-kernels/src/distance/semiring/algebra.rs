/// Gradient by a row's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gradient {
    /// Σab.
    Product,
    /// Σ(a−b)².
    Square,
    /// √Σ(a−b)².
    Root,
    /// 1 − Σab/(‖a‖‖b‖), norms squared.
    Angle,
    /// Σ|a−b|.
    Sign,
    /// 1 − Pearson's correlation; norms are sums, sums of squares.
    Correlation,
    /// Σ |a−b|/(|a|+|b|).
    Canberra,
    /// Σ|a−b|/Σ|a+b|.
    BrayCurtis,
    /// (Σ|a−b|^p)^(1/p).
    Minkowski,
    /// √(1 − Σ√a√b) of shares; norms sums, values roots.
    Hellinger,
    /// √ of shares' Jensen-Shannon divergence; norms are sums.
    JensenShannon,
    /// Σ a ln(a/b).
    Kl,
    /// [`Kl`](Self::Kl) by its second row.
    KlOfSecond,
    /// Σ (a−b) ln(a/b).
    SymmetricKl,
}

impl Gradient {
    /// Gradient by the second row.
    pub const fn of_second(self) -> Self {
        match self {
            Self::Kl => Self::KlOfSecond,
            symmetric => symmetric,
        }
    }

    /// Whether slopes take prepared values.
    pub const fn takes_prepared_values(self) -> bool {
        matches!(self, Self::Angle | Self::Correlation | Self::Hellinger | Self::JensenShannon)
    }
}

/// Properties, built from constants such as [`NORMS`](Self::NORMS).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Algebra {
    /// Uses [`Semiring::norm`](crate::distance::Semiring::norm) or
    /// [`Semiring::second`](crate::distance::Semiring::second).
    pub norms: bool,
    /// Uses [`Semiring::prepare`](crate::distance::Semiring::prepare).
    pub prepared: bool,
    /// Uses [`Semiring::other`](crate::distance::Semiring::other).
    pub other: bool,
    /// Infinite unless y has x's columns: then
    /// [`Semiring::other`](crate::distance::Semiring::other) sums to x's
    /// [`Semiring::norm`](crate::distance::Semiring::norm), and exceeds it in no column.
    pub covered: bool,
    /// [`Semiring::norm`](crate::distance::Semiring::norm),
    /// [`Semiring::direct`](crate::distance::Semiring::direct) take maxima of values ≥ 0; totals
    /// evaluated again bound the core.
    pub maxima: bool,
    /// Columns of one row add nothing; else products cover them.
    pub annihilates: bool,
    /// d(x,y) = d(y,x), rounding included.
    pub symmetric: bool,
    /// Larger is nearer.
    pub largest: bool,
    /// Uses logarithms or powers.
    pub logarithms: bool,
    /// Has a parameter.
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

    pub(in crate::distance) const fn sums(&self) -> usize {
        if self.other { 2 } else { 1 }
    }

    /// Whether [`Semiring::other`](crate::distance::Semiring::other) sums in parts; counts do not.
    pub const fn other_in_parts(&self) -> bool {
        self.other && !self.covered
    }
}
