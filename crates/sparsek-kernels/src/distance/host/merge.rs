//! Two rows gone through in step.

use super::joined;
use crate::distance::semiring::{HostSemiring, Needs, Real};

/// Sums over the columns of two rows.
pub(super) struct Merged<S> {
    pub total: S,
    pub other: S,
    pub direct: S,
}

impl<S: Real> Merged<S> {
    fn none<M: HostSemiring>() -> Self {
        let zero = S::new(0.0);
        Self {
            total: M::identity(),
            other: zero,
            direct: zero,
        }
    }

    fn and<M: HostSemiring>(self, next: Self, needs: Needs) -> Self {
        Self {
            total: M::reduce(self.total, next.total),
            other: self.other + next.other,
            direct: joined(needs, self.direct, next.direct),
        }
    }
}

/// Goes through both rows, or as far as a maximum of [`HostSemiring::direct`] is as great as any can be, in parts of so many
/// columns, as a power of two.
pub(super) fn merge<M: HostSemiring, S: Real>(
    x: &[(u32, S)],
    y: impl Iterator<Item = (u32, S)>,
    bits: u32,
    [p, most]: [S; 2],
    needs: Needs,
) -> Merged<S> {
    let zero = S::new(0.0);
    let mut before = Merged::none::<M>();
    let mut merged = Merged::none::<M>();
    let mut part = 0;
    let mut x = x.iter().copied().peekable();
    let mut y = y.peekable();
    loop {
        let column = match (x.peek(), y.peek()) {
            (Some(a), Some(b)) => a.0.min(b.0),
            (Some(a), None) => a.0,
            (None, Some(b)) => b.0,
            (None, None) => return before.and::<M>(merged, needs),
        };
        if column >> bits != part {
            part = column >> bits;
            before = before.and::<M>(merged, needs);
            merged = Merged::none::<M>();
        }
        let a = x.next_if(|entry| entry.0 == column);
        let b = y.next_if(|entry| entry.0 == column);
        let both = a.is_some() && b.is_some();
        let [a, b] = [a, b].map(|entry| entry.map_or(zero, |entry| entry.1));
        if both || !needs.annihilates {
            merged.total = M::reduce(merged.total, M::product(a, b, p));
            merged.other += M::other(a, b);
        }
        merged.direct = joined(needs, merged.direct, M::direct(a, b, p));
        if needs.maxima && merged.direct >= most {
            return before.and::<M>(merged, needs);
        }
    }
}
