use crate::hash::mixed;

/// Words per step.
pub const STEP_WORDS: usize = 4;

/// 2^32 / the golden ratio.
pub(super) const CALL_FACTOR: u32 = 0x9e37_79b9;

pub(super) fn greatest_kept(keep: f32) -> u32 {
    let words = f64::from(keep) * (f64::from(u32::MAX) + 1.0);
    (words as u64).saturating_sub(1) as u32
}

/// Elements that dropout keeps, by a hash of their places; repeats after 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropoutMask {
    low: u32,
    high: u32,
    greatest: u32,
}

impl DropoutMask {
    /// Mask of a step's call; keeps with probability `keep`.
    pub fn new(seed: [u32; 2], call: u32, keep: f32) -> Self {
        let call = call.wrapping_mul(CALL_FACTOR);
        Self {
            low: mixed(seed[0] ^ call),
            high: mixed(seed[1].wrapping_add(call)),
            greatest: greatest_kept(keep),
        }
    }

    /// Whether it keeps the element.
    pub fn keeps(&self, place: usize) -> bool {
        mixed(mixed(place as u32 ^ self.low) ^ self.high) <= self.greatest
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0.5)]
    #[case(0.9)]
    #[case(0.25)]
    fn shares_are_kept_independently(#[case] keep: f32) {
        let count = 200_000;
        let near = |found: usize, share: f64| {
            let deviation = (f64::from(count) * share * (1.0 - share)).sqrt();
            let off = (found as f64 - f64::from(count) * share).abs();
            assert!(off < 5.0 * deviation, "{found} of {count} for {share}");
        };
        let share = f64::from(keep);
        let mask = DropoutMask::new([1, 2], 0, keep);
        let places = 0..count as usize;
        near(places.clone().filter(|&at| mask.keeps(at)).count(), share);
        near(
            places.clone().filter(|&at| mask.keeps(at) && mask.keeps(at + 1)).count(),
            share * share,
        );
        let others = [([1, 2], 1), ([2, 2], 0), ([1, 3], 0), ([2, 1], 7)];
        for other in others.map(|(seed, call)| DropoutMask::new(seed, call, keep)) {
            let both = places.clone().filter(|&at| mask.keeps(at) && other.keeps(at));
            near(both.count(), share * share);
        }
    }

    /// Masks are a promise: resumed runs equal uninterrupted ones.
    #[test]
    fn masks_stay_the_same() {
        let mask = DropoutMask::new([3, 5], 1, 0.5);
        let word = (0..32).fold(0u32, |word, at| word | u32::from(mask.keeps(at)) << at);
        assert_eq!(word, 0xd70a_98df);
    }
}
