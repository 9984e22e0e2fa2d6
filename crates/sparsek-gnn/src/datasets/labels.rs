//! What is to be predicted of each node.

/// The class of each node, or whether it is in each class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Labels {
    /// One class of each node.
    Classes(Vec<u32>),
    /// Any number of classes of each node: whether it is in each, row after row, [nodes, classes].
    Sets(Vec<bool>),
}

impl Labels {
    /// The class of each node, where it has one.
    pub fn classes(&self) -> Option<&[u32]> {
        match self {
            Self::Classes(classes) => Some(classes),
            Self::Sets(_) => None,
        }
    }

    /// Those of some nodes.
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
                Some(node) => Err(format!("node {node} has class {}, of {classes}", all[node])),
                None => Ok(()),
            },
            Self::Sets(all) if classes == 0 || Some(all.len()) != nodes.checked_mul(classes) => {
                let found = all.len();
                Err(format!(
                    "{found} labels for {nodes} nodes and {classes} classes"
                ))
            }
            Self::Sets(_) => Ok(()),
        }
    }
}
