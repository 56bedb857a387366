//! The only bridge from the tasks of a server to the engine, which blocks.

use crate::wire::error::Failure;

/// Runs what may block where it may.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Failure::internal("bug", "taskbus has a bug: the call was given up, others still work", false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_call_that_panics_ends_alone() {
        let failure = blocking::<()>(|| panic!("on purpose")).await.unwrap_err();
        assert_eq!((failure.code, failure.retryable), ("internal", false));
        assert_eq!(blocking(|| 5).await, Ok(5));
    }
}
