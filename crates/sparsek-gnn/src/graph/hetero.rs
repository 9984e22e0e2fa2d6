use std::fmt;

use super::{
    bipartite::BipartiteGraph,
    error::{GraphError, HeteroGraphError, MAX_SIZE},
    relation::Relation,
    types::Graph,
};

/// Immutable graph of several node types, PyG's `HeteroData` without features.
///
/// Has one [`BipartiteGraph`] per relation; keeps the order of types and relations. Clones share
/// edges.
///
/// ```
/// use sparsek_gnn::{Graph, graph::HeteroGraph};
///
/// let citations = Graph::from_edges(3, [(0, 1), (2, 1)])?;
/// let graph = HeteroGraph::new([("author", 2), ("paper", 3)])?
///     .with_edges(("author", "writes", "paper"), [(0, 0), (0, 1), (1, 2)])?
///     .with_relation(("paper", "cites", "paper"), citations)?
///     .undirected();
/// assert_eq!(graph.nodes("author"), Some(2));
/// let names: Vec<&str> = graph.relations().map(|relation| relation.name.as_str()).collect();
/// assert_eq!(names, ["writes", "cites", "rev_writes"]);
/// assert_eq!(graph.edges(&("paper", "cites", "paper").into()).unwrap().edges(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct HeteroGraph {
    types: Vec<(String, usize)>,
    relations: Vec<(Relation, Edges)>,
}

/// Loops need a [`Graph`].
#[derive(Clone)]
enum Edges {
    Within(Graph),
    Between(BipartiteGraph),
}

impl HeteroGraph {
    /// Takes node types and counts; errors for repeats and above [`MAX_SIZE`].
    pub fn new<S: Into<String>>(
        types: impl IntoIterator<Item = (S, usize)>,
    ) -> Result<Self, HeteroGraphError> {
        let mut graph = Self { types: Vec::new(), relations: Vec::new() };
        for (name, nodes) in types {
            let name = name.into();
            if graph.nodes(&name).is_some() {
                return Err(HeteroGraphError::NodeTypeTwice { name });
            }
            if nodes > MAX_SIZE {
                let source = GraphError::TooManyNodes { nodes };
                return Err(HeteroGraphError::NodeType { name, source });
            }
            graph.types.push((name, nodes));
        }
        Ok(graph)
    }

    /// Adds (source, target) edges; errors as [`with_relation`](Self::with_relation) and
    /// [`BipartiteGraph::from_edges`].
    pub fn with_edges(
        self,
        relation: impl Into<Relation>,
        edges: impl IntoIterator<Item = (u32, u32)>,
    ) -> Result<Self, HeteroGraphError> {
        let relation = relation.into();
        let [sources, targets] = self.ends(&relation)?;
        match BipartiteGraph::from_edges(sources, targets, edges) {
            Ok(edges) => self.with_relation(relation, edges),
            Err(source) => Err(HeteroGraphError::Edges { relation, source: Box::new(source) }),
        }
    }

    /// Adds a [`BipartiteGraph`], [`Graph`] or [`Pattern`](sparsek::sparse::Pattern) (targets ×
    /// sources).
    ///
    /// Errors for repeated relations, unknown types and other node counts.
    pub fn with_relation(
        mut self,
        relation: impl Into<Relation>,
        edges: impl Into<BipartiteGraph>,
    ) -> Result<Self, HeteroGraphError> {
        let (relation, edges) = (relation.into(), edges.into());
        let expected = self.ends(&relation)?;
        let found = [edges.sources(), edges.targets()];
        if found != expected {
            return Err(HeteroGraphError::Nodes { relation, found, expected });
        }
        if self.edges(&relation).is_some() {
            return Err(HeteroGraphError::RelationTwice { relation });
        }
        let edges = match relation.is_within() {
            true => Edges::Within(edges.try_into().expect("a type has one number of nodes")),
            false => Edges::Between(edges),
        };
        self.relations.push((relation, edges));
        Ok(self)
    }

    /// PyG's `ToUndirected`: symmetrizes relations within a type, appends missing
    /// [reversed](Relation::reversed) relations for others. Panics above [`MAX_SIZE`] edges.
    pub fn undirected(&self) -> Self {
        let mut graph = Self { types: self.types.clone(), relations: Vec::new() };
        let mut reversed = Vec::new();
        for (relation, edges) in &self.relations {
            let edges = match edges {
                Edges::Within(edges) => Edges::Within(edges.symmetrized()),
                Edges::Between(edges) => {
                    let back = relation.reversed();
                    if self.edges(&back).is_none() {
                        reversed.push((back, Edges::Between(edges.reversed())));
                    }
                    Edges::Between(edges.clone())
                }
            };
            graph.relations.push((relation.clone(), edges));
        }
        graph.relations.append(&mut reversed);
        graph
    }

    /// Node types and counts.
    pub fn node_types(&self) -> impl Iterator<Item = (&str, usize)> {
        self.types.iter().map(|(name, nodes)| (name.as_str(), *nodes))
    }

    /// Nodes of a type.
    pub fn nodes(&self, name: &str) -> Option<usize> {
        self.node_types().find(|(found, _)| *found == name).map(|(_, nodes)| nodes)
    }

    /// Relations.
    pub fn relations(&self) -> impl Iterator<Item = &Relation> {
        self.relations.iter().map(|(relation, _)| relation)
    }

    /// Edges of a relation.
    pub fn edges(&self, relation: &Relation) -> Option<&BipartiteGraph> {
        self.find(relation).map(|edges| match edges {
            Edges::Within(graph) => graph.bipartite(),
            Edges::Between(edges) => edges,
        })
    }

    /// Edges within one node type.
    pub fn within(&self, relation: &Relation) -> Option<&Graph> {
        match self.find(relation)? {
            Edges::Within(graph) => Some(graph),
            Edges::Between(_) => None,
        }
    }

    fn find(&self, relation: &Relation) -> Option<&Edges> {
        self.relations.iter().find(|(found, _)| found == relation).map(|(_, edges)| edges)
    }

    fn ends(&self, relation: &Relation) -> Result<[usize; 2], HeteroGraphError> {
        let nodes = |name: &String| {
            self.nodes(name).ok_or_else(|| HeteroGraphError::UnknownNodeType {
                relation: relation.clone(),
                name: name.clone(),
            })
        };
        Ok([nodes(&relation.source)?, nodes(&relation.target)?])
    }
}

impl fmt::Debug for HeteroGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let edges = |relation| self.edges(relation).map_or(0, BipartiteGraph::edges);
        let relations: Vec<_> = self.relations().map(|each| (each, edges(each))).collect();
        f.debug_struct("HeteroGraph")
            .field("types", &self.types)
            .field("relations", &relations)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph() -> HeteroGraph {
        HeteroGraph::new([("user", 3), ("item", 2)]).unwrap()
    }

    fn relation(source: &str, name: &str, target: &str) -> Relation {
        (source, name, target).into()
    }

    #[test]
    fn relations_keep_their_edges_and_order() {
        let friends = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
        let graph = graph()
            .with_edges(("user", "rates", "item"), [(2, 1), (0, 1), (0, 0)])
            .unwrap()
            .with_relation(("user", "knows", "user"), friends.clone())
            .unwrap();
        assert_eq!(graph.node_types().collect::<Vec<_>>(), [("user", 3), ("item", 2)]);
        let rates = relation("user", "rates", "item");
        let knows = relation("user", "knows", "user");
        assert_eq!(graph.relations().collect::<Vec<_>>(), [&rates, &knows]);
        let edges = graph.edges(&rates).unwrap();
        assert_eq!(edges.pattern().indptr(), [0, 1, 3]);
        assert_eq!(edges.pattern().indices(), [0, 0, 2]);
        assert!(graph.within(&rates).is_none());
        assert_eq!(graph.within(&knows).unwrap().pattern(), friends.pattern());
        assert!(graph.edges(&relation("item", "rates", "user")).is_none());
    }

    #[test]
    fn undirected_graphs_have_both_directions() {
        let graph = graph()
            .with_edges(("user", "rates", "item"), [(2, 1), (0, 1)])
            .unwrap()
            .with_edges(("user", "knows", "user"), [(0, 1), (0, 1)])
            .unwrap()
            .undirected();
        let back = graph.edges(&relation("item", "rev_rates", "user")).unwrap();
        assert_eq!(back.pattern().indptr(), [0, 1, 1, 2]);
        assert_eq!(back.pattern().indices(), [1, 1]);
        let knows = graph.within(&relation("user", "knows", "user")).unwrap();
        assert_eq!((knows.neighbors(0), knows.neighbors(1)), (&[1][..], &[0][..]));
    }

    #[test]
    fn impossible_graphs_are_refused() {
        assert_eq!(
            HeteroGraph::new([("user", 3), ("user", 2)]).unwrap_err(),
            HeteroGraphError::NodeTypeTwice { name: "user".to_string() }
        );
        assert_eq!(
            HeteroGraph::new([("user", usize::MAX)]).unwrap_err(),
            HeteroGraphError::NodeType {
                name: "user".to_string(),
                source: GraphError::TooManyNodes { nodes: usize::MAX },
            }
        );
        let rates = relation("user", "rates", "item");
        let error = graph().with_edges(rates.clone(), [(0, 1), (2, 2)]).unwrap_err();
        let source = GraphError::EdgeOutOfRange {
            edge: 1,
            source_id: 2,
            target_id: 2,
            sources: 3,
            targets: 2,
        };
        assert_eq!(
            error,
            HeteroGraphError::Edges { relation: rates.clone(), source: Box::new(source) }
        );
        assert_eq!(
            error.to_string(),
            "relation (user, rates, item): edge 1 is (2, 2), ids must be below 3 and 2"
        );
        let tags = relation("tag", "of", "item");
        assert_eq!(
            graph().with_edges(tags.clone(), []).unwrap_err(),
            HeteroGraphError::UnknownNodeType { relation: tags, name: "tag".to_string() }
        );
        let edges = BipartiteGraph::from_edges(2, 3, []).unwrap();
        assert_eq!(
            graph().with_relation(rates.clone(), edges).unwrap_err(),
            HeteroGraphError::Nodes { relation: rates.clone(), found: [2, 3], expected: [3, 2] }
        );
        let twice = graph().with_edges(rates.clone(), []).unwrap().with_edges(rates.clone(), []);
        assert_eq!(twice.unwrap_err(), HeteroGraphError::RelationTwice { relation: rates });
    }
}
