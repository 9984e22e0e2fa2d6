use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use sparsek::io::{memory, text};

use crate::datasets::labels::{CLASS_NEEDED, Labels, class_of, count_classes};

/// Shortest entry: `"0":0,`.
const ENTRY: u64 = 6;

pub(super) struct ClassMap {
    pub nodes: usize,
    pub bytes: u64,
}

enum Entry {
    Class(f64),
    Set(Vec<bool>),
}

impl<'de> DeserializeSeed<'de> for ClassMap {
    type Value = (Labels, usize);

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        let (nodes, bytes) = (self.nodes, self.bytes);
        if (nodes as u64).saturating_mul(ENTRY) > bytes {
            let reason = format!("labels of {nodes} nodes do not fit in {bytes} bytes");
            return Err(Error::custom(reason));
        }
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
            let node = node.ok_or_else(|| {
                let key = text::excerpt(&key);
                Error::custom(format!("node {key} is not an id below {nodes}"))
            })?;
            if std::mem::replace(&mut seen[node], true) {
                return Err(Error::custom(format!("node {node} is listed twice")));
            }
            let (labels, classes) = match &mut labels {
                Some(labels) => labels,
                none => none.insert(self.empty(&entry)?),
            };
            match (labels, entry) {
                (Labels::Classes(all), Entry::Class(number)) => {
                    all[node] = class_of(number).ok_or_else(|| {
                        Error::custom(format!("node {node} has class {number:?}; {CLASS_NEEDED}"))
                    })?;
                }
                (Labels::Sets(all), Entry::Set(set)) if set.len() == *classes => {
                    all[node * *classes..][..*classes].copy_from_slice(&set);
                }
                _ => {
                    let reason =
                        format!("the classes of node {node} are not of the first node's kind");
                    return Err(Error::custom(reason));
                }
            }
        }
        if let Some(node) = seen.iter().position(|&seen| !seen) {
            return Err(Error::custom(format!("node {node} has no label")));
        }
        match labels {
            Some((Labels::Classes(classes), _)) => {
                let count = count_classes(&classes, |node| format!("node {node}"));
                Ok((Labels::Classes(classes), count.map_err(Error::custom)?))
            }
            Some(sets) => Ok(sets),
            None => Err(Error::custom("there are no nodes")),
        }
    }
}

impl ClassMap {
    fn empty<E: Error>(&self, first: &Entry) -> Result<(Labels, usize), E> {
        let Entry::Set(set) = first else {
            return Ok((Labels::Classes(vec![0; self.nodes]), 0));
        };
        let (nodes, classes, bytes) = (self.nodes, set.len(), self.bytes);
        let labels = memory::product(&[nodes, classes]);
        // A digit and a separator each.
        if labels.saturating_mul(2) > u128::from(bytes) {
            return Err(Error::custom(format!(
                "{classes} classes for each of {nodes} nodes do not fit in {bytes} bytes"
            )));
        }
        let asked = format_args!("{classes} classes for each of {nodes} nodes");
        memory::check(asked, labels).map_err(Error::custom)?;
        Ok((Labels::Sets(vec![false; nodes * classes]), classes))
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

    fn visit_bool<E: Error>(self, class: bool) -> Result<Entry, E> {
        Ok(Entry::Class(class.into()))
    }

    fn visit_u64<E: Error>(self, class: u64) -> Result<Entry, E> {
        Ok(Entry::Class(class as f64))
    }

    fn visit_i64<E: Error>(self, class: i64) -> Result<Entry, E> {
        Ok(Entry::Class(class as f64))
    }

    fn visit_f64<E: Error>(self, class: f64) -> Result<Entry, E> {
        Ok(Entry::Class(class))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Entry, A::Error> {
        let Some(Number(first)) = list.next_element()? else {
            return Ok(Entry::Set(Vec::new()));
        };
        let mut last = first;
        let mut set = Vec::new();
        while let Some(Number(next)) = list.next_element()? {
            set.push(truth(last)?);
            last = next;
        }
        if set.is_empty() {
            return Ok(Entry::Class(first));
        }
        set.push(truth(last)?);
        Ok(Entry::Set(set))
    }
}

fn truth<E: Error>(number: f64) -> Result<bool, E> {
    match number {
        0.0 => Ok(false),
        1.0 => Ok(true),
        _ => Err(Error::custom(format!("{number:?} is neither 0 nor 1"))),
    }
}

struct Number(f64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("0 or 1")
    }

    fn visit_bool<E: Error>(self, number: bool) -> Result<Number, E> {
        Ok(Number(number.into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Number, E> {
        Ok(Number(number as f64))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Number, E> {
        Ok(Number(number as f64))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Number, E> {
        Ok(Number(number))
    }
}

pub(super) struct Roles {
    pub nodes: usize,
}

const NAMES: [&str; 3] = ["tr", "va", "te"];

impl<'de> DeserializeSeed<'de> for Roles {
    type Value = [Vec<u32>; 3];

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Roles {
    type Value = [Vec<u32>; 3];

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a map of the lists tr, va and te")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut lists = [const { None }; 3];
        while let Some(key) = map.next_key::<String>()? {
            let Some(at) = NAMES.iter().position(|name| *name == key) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let list = map.next_value_seed(List { nodes: self.nodes })?;
            if lists[at].replace(list).is_some() {
                return Err(Error::custom(format!("there are two lists {key}")));
            }
        }
        for (name, list) in NAMES.iter().zip(&lists) {
            match list {
                None => return Err(Error::custom(format!("there is no list {name}"))),
                Some(list) if list.is_empty() => {
                    return Err(Error::custom(format!("the list {name} is empty")));
                }
                Some(_) => {}
            }
        }
        Ok(lists.map(Option::unwrap_or_default))
    }
}

struct List {
    nodes: usize,
}

impl<'de> DeserializeSeed<'de> for List {
    type Value = Vec<u32>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List {
    type Value = Vec<u32>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a list of nodes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let nodes = self.nodes;
        let mut found = Vec::new();
        while let Some(node) = list.next_element::<u32>()? {
            if node as usize >= nodes {
                return Err(Error::custom(format!("node {node} is not below {nodes}")));
            }
            if found.len() == nodes {
                return Err(Error::custom(format!("a list of more than {nodes} nodes")));
            }
            found.push(node);
        }
        Ok(found)
    }
}
