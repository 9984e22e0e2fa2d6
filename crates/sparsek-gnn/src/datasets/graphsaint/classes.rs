//! `class_map.json`, one entry at a time.
use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};

use crate::datasets::Labels;

/// Reads the class, or the classes, of so many nodes from a file of so many bytes.
pub(super) struct ClassMap {
    pub nodes: usize,
    pub bytes: u64,
}

/// The value of an entry.
enum Entry {
    Class(u64),
    Set(Vec<bool>),
}

impl<'de> DeserializeSeed<'de> for ClassMap {
    type Value = (Labels, usize);

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ClassMap {
    type Value = (Labels, usize);

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a map from nodes to classes")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let nodes = self.nodes;
        let mut labels: Option<(Labels, usize)> = None;
        let mut seen = vec![false; nodes];
        while let Some(key) = map.next_key::<String>()? {
            let entry: Entry = map.next_value()?;
            let node = key.parse().ok().filter(|&node: &usize| node < nodes);
            let node = node
                .ok_or_else(|| Error::custom(format!("node {key} is not an id below {nodes}")))?;
            if std::mem::replace(&mut seen[node], true) {
                return Err(Error::custom(format!("node {node} is listed twice")));
            }
            let (labels, classes) = match &mut labels {
                Some(labels) => labels,
                none => none.insert(self.empty(&entry)?),
            };
            match (labels, entry) {
                (Labels::Classes(all), Entry::Class(class)) if class < nodes as u64 => {
                    all[node] = class as u32;
                    *classes = (*classes).max(class as usize + 1);
                }
                (Labels::Classes(_), Entry::Class(_)) => {
                    let reason =
                        format!("the class of node {node} is not an integer below {nodes}");
                    return Err(Error::custom(reason));
                }
                (Labels::Sets(all), Entry::Set(set)) if set.len() == *classes => {
                    all[node * *classes..][..*classes].copy_from_slice(&set);
                }
                _ => {
                    let reason =
                        format!("the classes of node {node} differ in form from the first");
                    return Err(Error::custom(reason));
                }
            }
        }
        match (seen.iter().position(|&seen| !seen), labels) {
            (Some(node), _) => Err(Error::custom(format!("node {node} has no label"))),
            (None, Some(labels)) => Ok(labels),
            (None, None) => Err(Error::custom("there are no nodes")),
        }
    }
}

impl ClassMap {
    /// Labels in the form of the first.
    fn empty<E: Error>(&self, first: &Entry) -> Result<(Labels, usize), E> {
        match first {
            Entry::Class(_) => Ok((Labels::Classes(vec![0; self.nodes]), 0)),
            Entry::Set(set) => {
                // Each takes a digit and a comma or a bracket.
                let least = (set.len() as u64 * 2).checked_mul(self.nodes as u64);
                if least.is_none_or(|least| least > self.bytes) {
                    return Err(Error::custom(format!(
                        "{} classes for each of {} nodes do not fit in {} bytes",
                        set.len(),
                        self.nodes,
                        self.bytes
                    )));
                }
                let sets = vec![false; self.nodes * set.len()];
                Ok((Labels::Sets(sets), set.len()))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(EntryVisitor)
    }
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a class, or a list of 0 and 1")
    }

    fn visit_u64<E: Error>(self, class: u64) -> Result<Entry, E> {
        Ok(Entry::Class(class))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Entry, A::Error> {
        let mut set = Vec::new();
        while let Some(member) = list.next_element::<f64>()? {
            if member != 0.0 && member != 1.0 {
                return Err(Error::custom(format!("{member} is neither 0 nor 1")));
            }
            set.push(member == 1.0);
        }
        Ok(Entry::Set(set))
    }
}
