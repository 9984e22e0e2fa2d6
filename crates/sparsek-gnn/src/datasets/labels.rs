use std::{io::Read, str::FromStr};

use sparsek::io::npy::Npy;

/// From here on, most smaller classes must occur.
const FEW: usize = 1024;

pub(super) const CLASS_NEEDED: &str = "expected a whole number of at least 0";

/// Node classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Labels {
    /// One class per node.
    Classes(Vec<u32>),
    /// Sets: `[nodes, classes]`, row-major.
    Sets(Vec<bool>),
}

impl Labels {
    /// Class per node; None for sets.
    pub fn classes(&self) -> Option<&[u32]> {
        match self {
            Self::Classes(classes) => Some(classes),
            Self::Sets(_) => None,
        }
    }

    pub(crate) fn of(&self, nodes: &[u32], classes: usize) -> Self {
        match self {
            Self::Classes(all) => {
                Self::Classes(nodes.iter().map(|&node| all[node as usize]).collect())
            }
            Self::Sets(all) => {
                let row = |&node: &u32| &all[node as usize * classes..][..classes];
                Self::Sets(nodes.iter().flat_map(row).copied().collect())
            }
        }
    }

    pub(super) fn check(&self, nodes: usize, classes: usize) -> Result<(), String> {
        match self {
            Self::Classes(all) if all.len() != nodes => {
                Err(format!("{} labels for {nodes} nodes", all.len()))
            }
            Self::Classes(all) => match all.iter().position(|&class| class as usize >= classes) {
                Some(node) => Err(format!("node {node} has class {} of {classes}", all[node])),
                None => Ok(()),
            },
            Self::Sets(all) if classes == 0 || Some(all.len()) != nodes.checked_mul(classes) => {
                let found = all.len();
                Err(format!("{found} labels for {nodes} nodes and {classes} classes"))
            }
            Self::Sets(_) => Ok(()),
        }
    }
}

/// `place` names a position.
pub(super) fn count_classes(
    labels: &[u32],
    place: impl Fn(usize) -> String,
) -> Result<usize, String> {
    let Some(&greatest) = labels.iter().max() else {
        return Err("there are no nodes".to_string());
    };
    let (class, nodes) = (greatest as usize, labels.len());
    let at = labels.iter().position(|&other| other == greatest);
    let place = || place(at.unwrap_or(0));
    if class >= nodes {
        return Err(format!(
            "{} has class {class} of {nodes} nodes; renumber the classes from 0",
            place()
        ));
    }
    if class >= FEW {
        let mut different = labels.to_vec();
        different.sort_unstable();
        different.dedup();
        if 2 * (different.len() - 1) < class {
            let (place, found) = (place(), different.len());
            return Err(format!(
                "{place} has class {class}, but only {found} different classes occur; \
                 renumber the classes from 0"
            ));
        }
    }
    Ok(class + 1)
}

pub(super) fn read_labels(array: Npy<impl Read>, nodes: usize) -> Result<(Labels, usize), String> {
    let width = labels_width(array.shape(), nodes)?;
    labels_of_numbers(&array.into_f64()?, width)
}

pub(super) fn labels_width(shape: &[usize], nodes: usize) -> Result<usize, String> {
    match *shape {
        [rows] if rows == nodes => Ok(1),
        [rows, width] if rows == nodes => Ok(width),
        _ => Err(format!("labels have shape {shape:?}, expected [{nodes}] or [{nodes}, classes]")),
    }
}

pub(super) fn labels_of_numbers(numbers: &[f64], width: usize) -> Result<(Labels, usize), String> {
    if width != 1 {
        let neither = |&x: &f64| x != 0.0 && x != 1.0;
        if let Some(at) = numbers.iter().position(neither) {
            let (node, number) = (at / width, numbers[at]);
            return Err(format!("node {node} has {number:?}, neither 0 nor 1"));
        }
        let sets = numbers.iter().map(|&x| x == 1.0).collect();
        return Ok((Labels::Sets(sets), width));
    }
    let class = |(node, &number): (usize, &f64)| {
        let reason = || format!("node {node} has label {number:?}; {CLASS_NEEDED}");
        class_of(number).ok_or_else(reason)
    };
    let classes: Result<Vec<u32>, String> = numbers.iter().enumerate().map(class).collect();
    let classes = classes?;
    let count = count_classes(&classes, |node| format!("node {node}"))?;
    Ok((Labels::Classes(classes), count))
}

pub(super) fn labels_of_rows(
    numbers: Vec<Class>,
    width: usize,
    place: impl Fn(usize) -> String,
) -> Result<(Labels, usize), String> {
    if width == 1 {
        let classes: Vec<u32> = numbers.into_iter().map(|Class(class)| class).collect();
        let count = count_classes(&classes, place)?;
        return Ok((Labels::Classes(classes), count));
    }
    if let Some(at) = numbers.iter().position(|&Class(number)| number > 1) {
        let (place, number) = (place(at / width), numbers[at].0);
        return Err(format!("{place} has {number}, neither 0 nor 1"));
    }
    let sets = numbers.iter().map(|&Class(number)| number == 1).collect();
    Ok((Labels::Sets(sets), width))
}

pub(super) fn class_of(number: f64) -> Option<u32> {
    let whole = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number);
    whole.then_some(number as u32)
}

/// Also parses `2.0` and booleans.
pub(super) struct Class(pub u32);

impl FromStr for Class {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let class = match text {
            "true" | "True" => Some(1),
            "false" | "False" => Some(0),
            _ => text.parse().ok().or_else(|| text.parse().ok().and_then(class_of)),
        };
        class.map(Self).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn count(labels: &[u32]) -> Result<usize, String> {
        count_classes(labels, |node| format!("node {node}"))
    }

    #[rstest]
    #[case(&[0, 2, 1, 2], 3)]
    #[case::class_0_is_missing(&[1, 1, 1], 2)]
    fn labels_are_classes_from_0(#[case] labels: &[u32], #[case] classes: usize) {
        assert_eq!(count(labels), Ok(classes));
    }

    #[test]
    fn one_stray_label_makes_no_classes() {
        let mut stray = vec![0; 60_000];
        stray[7] = 59_999;
        stray[8] = 3;
        let message = count(&stray).unwrap_err();
        for word in ["node 7", "59999", "only 3 ", "renumber"] {
            assert!(message.contains(word), "{message}");
        }
        stray[7] = 60_000;
        assert!(count(&stray).unwrap_err().contains("of 60000 nodes"));
        stray[7] = FEW as u32 - 1;
        assert_eq!(count(&stray), Ok(FEW));
        stray[7] = FEW as u32;
        assert!(count(&stray).is_err());
    }

    #[rstest]
    #[case::every(1, Some(5000))]
    #[case::every_second(2, Some(4999))]
    #[case::every_third(3, None)]
    fn many_classes_are_accepted_where_half_of_them_occur(
        #[case] step: u32,
        #[case] classes: Option<usize>,
    ) {
        let labels: Vec<u32> = (0..5000).map(|node| node / step * step).collect();
        assert_eq!(count(&labels).ok(), classes);
    }

    fn read(text: &str) -> Option<u32> {
        text.parse::<Class>().ok().map(|class| class.0)
    }

    #[rstest]
    #[case("3", 3)]
    #[case("3.0", 3)]
    #[case("3e2", 300)]
    #[case("-0.0", 0)]
    #[case("true", 1)]
    #[case("False", 0)]
    #[case("4294967295", u32::MAX)]
    fn classes_are_read_from_any_spelling(#[case] text: &str, #[case] class: u32) {
        assert_eq!(read(text), Some(class));
    }

    #[rstest]
    fn other_text_is_no_class(
        #[values("", "-1", "0.5", "nan", "inf", "4294967296", "1,2", "x")] text: &str,
    ) {
        assert_eq!(read(text), None);
    }
}
