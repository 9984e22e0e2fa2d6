//! Types of edges.
use std::fmt;

use serde::{Deserialize, Serialize};
use sparsek::io::text::excerpt;

/// Type of edges: from nodes of one type to nodes of another, or of the same type. PyG's
/// `edge_type`.
///
/// ```
/// use sparsek_gnn::graph::Relation;
///
/// let writes = Relation::from(("author", "writes", "paper"));
/// assert_eq!(writes.to_string(), "(author, writes, paper)");
/// assert_eq!(writes.reversed(), Relation::from(("paper", "rev_writes", "author")));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Relation {
    /// Type of the source nodes.
    pub source: String,
    /// Name.
    pub name: String,
    /// Type of the target nodes.
    pub target: String,
}

impl Relation {
    /// The opposite direction, named `rev_` as PyG does.
    pub fn reversed(&self) -> Self {
        let source = self.target.clone();
        Self { source, name: format!("rev_{}", self.name), target: self.source.clone() }
    }

    /// Whether sources and targets are of one type.
    pub fn is_within(&self) -> bool {
        self.source == self.target
    }
}

impl<S: Into<String>, N: Into<String>, T: Into<String>> From<(S, N, T)> for Relation {
    fn from((source, name, target): (S, N, T)) -> Self {
        Self { source: source.into(), name: name.into(), target: target.into() }
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [source, name, target] = [&self.source, &self.name, &self.target].map(|s| excerpt(s));
        write!(f, "({source}, {name}, {target})")
    }
}
