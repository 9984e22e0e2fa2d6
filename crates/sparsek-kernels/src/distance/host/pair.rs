use super::types::{PreparedRows, combine};
use crate::distance::{
    prepare::range::{
        BLOCK,
        host::{limits, row_factor},
    },
    semiring::{HostSemiring, Real, Rescale, Sums, host::max},
};

pub(super) struct MergedSums<S> {
    pub total: S,
    pub other: S,
    pub direct: S,
}

impl<S: Real> MergedSums<S> {
    fn none<M: HostSemiring>() -> Self {
        let zero = S::new(0.0);
        Self { total: M::identity(), other: zero, direct: zero }
    }

    fn with<M: HostSemiring>(self, next: Self) -> Self {
        Self {
            total: M::reduce(self.total, next.total),
            other: self.other + next.other,
            direct: combine::<M, S>(self.direct, next.direct),
        }
    }
}

pub(super) fn merge<M: HostSemiring, S: Real>(
    x: &[(u32, S)],
    y: impl Iterator<Item = (u32, S)>,
    bits: u32,
    [p, most]: [S; 2],
) -> MergedSums<S> {
    let zero = S::new(0.0);
    let mut before = MergedSums::none::<M>();
    let mut merged = MergedSums::none::<M>();
    let mut part = 0;
    let mut x = x.iter().copied().peekable();
    let mut y = y.peekable();
    loop {
        let column = match (x.peek(), y.peek()) {
            (Some(a), Some(b)) => a.0.min(b.0),
            (Some(a), None) => a.0,
            (None, Some(b)) => b.0,
            (None, None) => return before.with::<M>(merged),
        };
        if column >> bits != part {
            part = column >> bits;
            before = before.with::<M>(merged);
            merged = MergedSums::none::<M>();
        }
        let a = x.next_if(|entry| entry.0 == column);
        let b = y.next_if(|entry| entry.0 == column);
        let both = a.is_some() && b.is_some();
        let [a, b] = [a, b].map(|entry| entry.map_or(zero, |entry| entry.1));
        if both || !M::ALGEBRA.annihilates {
            merged.total = M::reduce(merged.total, M::product(a, b, p));
            merged.other += M::other(a, b);
        }
        merged.direct = combine::<M, S>(merged.direct, M::direct(a, b, p));
        if M::ALGEBRA.maxima && merged.direct >= most {
            return before.with::<M>(merged);
        }
    }
}

type Row<'a, S> = &'a [(u32, S)];

fn pairs<S: Real>(x: Row<S>, y: impl Iterator<Item = (u32, S)>) -> impl Iterator<Item = (S, S)> {
    let zero = S::new(0.0);
    let mut x = x.iter().copied().peekable();
    let mut y = y.peekable();
    std::iter::from_fn(move || {
        let column = match (x.peek(), y.peek()) {
            (Some(a), Some(b)) => a.0.min(b.0),
            (Some(a), None) => a.0,
            (None, Some(b)) => b.0,
            (None, None) => return None,
        };
        let a = x.next_if(|entry| entry.0 == column);
        let b = y.next_if(|entry| entry.0 == column);
        let value = |entry: Option<(u32, S)>| entry.map_or(zero, |entry| entry.1);
        Some((value(a), value(b)))
    })
}

fn in_range<M: HostSemiring, S: Real>(core: S, sums: Sums<S>) -> bool {
    let [tiny, huge] = limits::<S>();
    match M::STRATEGY.rescale {
        None | Some(Rescale::Rows) => true,
        Some(Rescale::Pair) => (tiny..=huge).contains(&M::scale(sums)),
        Some(Rescale::Differences(_)) => (tiny..=huge).contains(&core),
        Some(Rescale::Sum) => core <= huge,
        Some(Rescale::Careful) => sums.total.abs() <= huge,
    }
}

pub(super) fn finalize<M: HostSemiring, S: Real>(
    x: Row<S>,
    (y, j): (&PreparedRows<S>, usize),
    core: S,
    sums: Sums<S>,
) -> S {
    match M::STRATEGY.rescale {
        _ if in_range::<M, S>(core, sums) => M::finalize(core, sums),
        Some(Rescale::Careful) => careful::<M, S>(x, (y, j), sums),
        _ => rescaled::<M, S>(x, (y, j), sums),
    }
}

fn careful<M: HostSemiring, S: Real>(
    x: Row<S>,
    (y, j): (&PreparedRows<S>, usize),
    sums: Sums<S>,
) -> S {
    let [total] = block_sums(pairs(x, y.row(j)).map(|(a, b)| [M::direct(a, b, sums.p)]));
    let sums = Sums { total, ..sums };
    M::finalize(M::core(sums), sums)
}

fn block_sums<S: Real, const N: usize>(terms: impl Iterator<Item = [S; N]>) -> [S; N] {
    let zeros = [S::new(0.0); N];
    let mut before = zeros;
    let mut part = zeros;
    let add = |sums: &mut [S; N], more: [S; N]| {
        for (sum, more) in sums.iter_mut().zip(more) {
            *sum += more;
        }
    };
    for (at, more) in terms.enumerate() {
        add(&mut part, more);
        if (at + 1).is_multiple_of(BLOCK as usize) {
            add(&mut before, std::mem::replace(&mut part, zeros));
        }
    }
    add(&mut before, part);
    before
}

fn rescaled<M: HostSemiring, S: Real>(
    x: Row<S>,
    (y, j): (&PreparedRows<S>, usize),
    sums: Sums<S>,
) -> S {
    let zero = S::new(0.0);
    let pair = M::STRATEGY.rescale == Some(Rescale::Pair);
    let size = |(a, b): (S, S)| match pair {
        true => max(a.abs(), b.abs()),
        false => (a - b).abs(),
    };
    let greatest = pairs(x, y.row(j)).map(size).fold(zero, max);
    if !(greatest > zero && greatest < S::new(f32::INFINITY)) {
        return match pair {
            true => M::finalize(greatest, sums),
            false => greatest,
        };
    }
    let factor = row_factor(greatest);
    let rest = greatest * factor;
    let p = sums.p;
    let terms = pairs(x, y.row(j)).map(|(a, b)| match pair {
        true => {
            let (a, b) = (a * factor / rest, b * factor / rest);
            [M::direct(a, b, p), M::norm(a, p), M::norm(b, p), M::other(a, b)]
        }
        false => [M::direct((a - b) * factor / rest, zero, p), zero, zero, zero],
    });
    let [core, x, y, other] = block_sums(terms);
    let sums = Sums { x, y, other, ..sums };
    let distance = M::finalize(core, sums);
    (0..M::STRATEGY.degree()).fold(distance, |distance, _| distance * rest / factor)
}
