use cubecl::{
    CompilationError,
    client::Client,
    server::{LaunchError, ServerError},
};

use crate::error::KernelError;

impl KernelError {
    /// Converts a read error: names the first failed launch.
    ///
    /// ```no_run
    /// # use sparsek_kernels::{KernelError, cubecl};
    /// # fn read(client: &cubecl::prelude::Client, handle: cubecl::server::Handle)
    /// #     -> Result<cubecl::bytes::Bytes, KernelError> {
    /// client.read_one(handle).map_err(|error| KernelError::of_read(client, &error))
    /// # }
    /// ```
    pub fn of_read(client: &Client, error: &ServerError) -> Self {
        let device = client.properties().identity.name.clone();
        Self::Device { device, reason: reason(error) }
    }
}

/// Without backtraces.
fn reason(error: &ServerError) -> String {
    match error {
        ServerError::Unwritten { root, .. } => reason(root),
        ServerError::Several { errors, .. } => {
            errors.iter().map(reason).collect::<Vec<_>>().join("; ")
        }
        ServerError::Validation { message, .. } => message.clone(),
        ServerError::Generic { reason, .. } => reason.clone(),
        ServerError::Launch(LaunchError::OutOfMemory { reason, .. }) => reason.clone(),
        ServerError::Launch(LaunchError::Unknown { reason, .. }) => reason.clone(),
        ServerError::Launch(LaunchError::CompilationError(error)) => match error {
            CompilationError::UnsupportedInstruction { reason, .. }
            | CompilationError::Generic { reason, .. }
            | CompilationError::Validation { reason, .. } => reason.clone(),
            CompilationError::ExpansionPanicked { kernel, message, .. } => {
                format!("kernel `{kernel}` cannot be expanded: {message}")
            }
            error => error.to_string(),
        },
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const REFUSAL: &str = "the device refused the shader of kernel `gather`: unknown identifier";

    fn refused() -> ServerError {
        let error =
            CompilationError::Generic { reason: REFUSAL.into(), backtrace: Default::default() };
        ServerError::Launch(LaunchError::CompilationError(error))
    }

    fn unwritten(root: ServerError) -> ServerError {
        ServerError::Unwritten {
            failure: 1,
            claimed: 2,
            chain: vec!["skipped".into()],
            root: Box::new(root),
            backtrace: Default::default(),
        }
    }

    #[rstest]
    #[case(refused(), REFUSAL.into())]
    #[case(unwritten(unwritten(refused())), REFUSAL.into())]
    #[case(
        ServerError::Several {
            errors: vec![refused(), unwritten(refused())],
            backtrace: Default::default(),
        },
        format!("{REFUSAL}; {REFUSAL}")
    )]
    #[case(ServerError::graph_state("no graph"), "no graph".into())]
    fn reasons_name_the_first_failure(#[case] error: ServerError, #[case] expected: String) {
        assert_eq!(reason(&error), expected);
    }
}
