use std::fmt;

use serde::{Deserialize, Serialize};
use sparsek::io::text::excerpt;

/// Edge type, PyG's `edge_type`.
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
    /// Source node type.
    pub source: String,
    /// Name.
    pub name: String,
    /// Target node type.
    pub target: String,
}

impl Relation {
    /// Opposite direction, named `rev_…`.
    pub fn reversed(&self) -> Self {
        let source = self.target.clone();
        Self { source, name: format!("rev_{}", self.name), target: self.source.clone() }
    }

    /// Whether both types match.
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
