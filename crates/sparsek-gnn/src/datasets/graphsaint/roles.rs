//! `role.json`: the nodes of each split.
use std::fmt;

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

/// Reads the lists of a graph of `nodes` nodes.
pub(super) struct Roles {
    pub nodes: usize,
}

/// The lists, by the names that the file gives them.
const NAMES: [&str; 3] = ["tr", "va", "te"];

impl<'de> DeserializeSeed<'de> for Roles {
    /// Nodes to train on, to validate with, and to test on; none is empty.
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

/// Reads one list. It may be no longer than there are nodes.
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
