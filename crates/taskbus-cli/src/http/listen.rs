//! Where the server listens, and how others find it.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tokio::net::TcpListener;

use crate::options::Serve;
use crate::term::failure::Failure;

/// A port that is ours. The file that names it goes when this does.
pub(super) struct Listening {
    /// The socket.
    pub(super) listener: TcpListener,
    /// Its address, with the port that the system picked.
    pub(super) address: SocketAddr,
    port_file: Option<PathBuf>,
}

/// Whether such a server may be started at all.
pub(super) fn check(options: &Serve) -> Result<(), Failure> {
    if options.listen.ip().is_loopback() || options.insecure {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{} can be reached from other machines, and whoever reaches it may read and change every list; listen on \
         127.0.0.1 and let others come through ssh -L or a proxy that asks who they are, or add --insecure if that is \
         what you want",
        options.listen
    )))
}

impl Listening {
    /// Takes the port.
    pub(super) fn begin(options: &Serve) -> Result<Self, Failure> {
        let taken = std::net::TcpListener::bind(options.listen).and_then(|listener| {
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok((TcpListener::from_std(listener)?, address))
        });
        let hint = "choose another port with --listen; port 0 takes a free one";
        let (listener, address) = taken.map_err(|error| {
            Failure::machine(format!("{} cannot be listened on", options.listen), format!("{error}; {hint}"))
        })?;
        Ok(Self { listener, address, port_file: options.port_file.clone() })
    }

    /// Says where it is: in the port file, and to whoever looks at standard error.
    pub(super) fn announce(&self, options: &Serve) -> Result<(), Failure> {
        if let Some(path) = &self.port_file {
            let failed = |error| Failure::machine(format!("the port cannot be written to {}", path.display()), error);
            write_port(path, self.address.port()).map_err(failed)?;
        }
        if options.insecure && !self.address.ip().is_loopback() {
            eprintln!("taskbus: --insecure: whoever reaches {} may read and change every list", self.address);
        }
        eprintln!("taskbus: serving MCP at http://{}/mcp; SIGTERM or Ctrl-C ends it", self.address);
        Ok(())
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(path) = &self.port_file {
            // Nobody needs a file that is gone already.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Whoever sees the file finds the whole port in it.
fn write_port(path: &Path, port: u16) -> std::io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    writeln!(file, "{port}")?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
