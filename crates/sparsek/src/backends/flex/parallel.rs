//! Compiled once; rayon's adapters compile per closure and dtype pair.

use std::{marker::PhantomData, slice};

use rayon::prelude::*;

/// Passes each number below `count` once.
fn each<T>(count: usize, scratch: fn() -> T, body: &(dyn Fn(&mut T, usize) + Sync)) {
    let numbers = (0..count).into_par_iter();
    numbers.for_each_init(scratch, |scratch, number| body(scratch, number));
}

pub(super) fn collect<T: Send>(count: usize, body: &(dyn Fn(usize) -> T + Sync)) -> Vec<T> {
    (0..count).into_par_iter().map(body).collect()
}

/// Skips an incomplete last row.
pub(super) fn rows<A: Send, T>(
    a: &mut [A],
    width: usize,
    scratch: fn() -> T,
    body: impl Fn(&mut T, usize, &mut [A]) + Sync,
) {
    let a = Rows::new(a, width);
    // SAFETY: `each` passes every number once.
    each(a.count(), scratch, &|scratch, row| body(scratch, row, unsafe { a.row(row) }));
}

pub(super) fn row_pairs<A: Send, B: Send, T>(
    (a, b): (&mut [A], &mut [B]),
    width: usize,
    scratch: fn() -> T,
    body: impl Fn(&mut T, usize, &mut [A], &mut [B]) + Sync,
) {
    let (a, b) = (Rows::new(a, width), Rows::new(b, width));
    let count = a.count().min(b.count());
    each(count, scratch, &|scratch, row| {
        // SAFETY: `each` passes every number once.
        let (a, b) = unsafe { (a.row(row), b.row(row)) };
        body(scratch, row, a, b);
    });
}

struct Rows<'a, T> {
    first: *mut T,
    length: usize,
    width: usize,
    elements: PhantomData<&'a mut [T]>,
}

// SAFETY: one thread takes each row as `&mut [T]`, so elements only change threads.
unsafe impl<T: Send> Sync for Rows<'_, T> {}

impl<'a, T> Rows<'a, T> {
    fn new(elements: &'a mut [T], width: usize) -> Self {
        let (first, length) = (elements.as_mut_ptr(), elements.len());
        Self { first, length, width, elements: PhantomData }
    }

    fn count(&self) -> usize {
        self.length.checked_div(self.width).unwrap_or(0)
    }

    /// # Safety
    ///
    /// Take each row once.
    #[allow(clippy::mut_from_ref, reason = "rows are disjoint")]
    unsafe fn row(&self, row: usize) -> &mut [T] {
        assert!(row < self.count());
        // SAFETY: the row is in bounds, and nothing else refers to it.
        unsafe { slice::from_raw_parts_mut(self.first.add(row * self.width), self.width) }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0, 4)]
    #[case(3, 4)]
    #[case(12, 0)]
    #[case(12, 4)]
    #[case(1003, 10)]
    fn each_whole_row_is_visited_once(#[case] length: usize, #[case] width: usize) {
        let mut a: Vec<usize> = (0..length).collect();
        let mut b = vec![0u8; length];
        row_pairs((&mut a, &mut b), width, Vec::new, |scratch, row, a, b| {
            scratch.push(row);
            assert_eq!(a[0], row * width);
            a.iter_mut().for_each(|a| *a += 1);
            b.iter_mut().for_each(|b| *b += 1);
        });
        let whole = length.checked_div(width).unwrap_or(0) * width;
        for (at, (&a, &b)) in a.iter().zip(&b).enumerate() {
            assert_eq!((a, b), (at + usize::from(at < whole), u8::from(at < whole)), "{at}");
        }
        rows(&mut b, width, || (), |_, row, b| b.fill(row as u8));
        assert!(b[..whole].iter().enumerate().all(|(at, &b)| b == (at / width) as u8));
        assert_eq!(
            collect(length, &|at| at * at),
            (0..length).map(|at| at * at).collect::<Vec<_>>()
        );
    }
}
