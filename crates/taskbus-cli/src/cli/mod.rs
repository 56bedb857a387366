//! The command line.

mod safe;

/// Runs it.
pub(crate) fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
