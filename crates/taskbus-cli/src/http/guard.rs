//! Who may ask. A page that somebody's browser shows can make it send requests to this machine; such a request names the
//! page in `Origin`, and where a name of the page's own was turned to this machine, in `Host`. Both are refused, on every
//! route, before anything else is looked at.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri};

use crate::options::Serve;

/// The names of this machine for itself.
const OWN: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Whom this server takes for itself, and which pages may ask it.
pub(super) struct Guard {
    hosts: Vec<String>,
    /// Addresses written out are no names that somebody could turn; taken when others may connect.
    addresses: bool,
    origins: Vec<String>,
}

/// Why a request is not answered.
#[derive(Debug, PartialEq)]
pub(super) struct Turned {
    /// The status.
    pub(super) status: StatusCode,
    /// What is wrong and what to do.
    pub(super) why: String,
}

impl Guard {
    /// The guard of a server that listens there.
    pub(super) fn new(listening: SocketAddr, options: &Serve) -> Self {
        let named = options.allow_hosts.iter().map(|host| bare(host));
        let own = OWN.into_iter().map(str::to_owned).chain([listening.ip().to_string()]);
        let origins = options.allow_origins.iter().map(|origin| origin.to_ascii_lowercase()).collect();
        Self { hosts: own.chain(named).collect(), addresses: !listening.ip().is_loopback(), origins }
    }

    /// All that `Host` may be, if that can be listed.
    pub(super) fn hosts(&self) -> Option<Vec<String>> {
        (!self.addresses).then(|| self.hosts.clone())
    }

    /// Whether the request may be answered.
    pub(super) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Turned> {
        let host = host(headers)?;
        for named in uri.authority().into_iter().chain([&host]) {
            if !self.is_own(named) {
                let why = format!(
                    "this server does not answer for the host {:?}; ask for it as localhost, or start it with \
                     --allow-host {}",
                    named.as_str(),
                    bare(named.host())
                );
                return Err(Turned { status: StatusCode::FORBIDDEN, why });
            }
        }
        self.check_origin(headers, &host)
    }

    fn is_own(&self, named: &Authority) -> bool {
        let name = bare(named.host());
        self.hosts.contains(&name) || (self.addresses && name.parse::<IpAddr>().is_ok())
    }

    /// A page of this very server may ask, and those that are named.
    fn check_origin(&self, headers: &HeaderMap, host: &Authority) -> Result<(), Turned> {
        for origin in headers.get_all(ORIGIN) {
            let origin = String::from_utf8_lossy(origin.as_bytes()).to_ascii_lowercase();
            let own = ["http", "https"].map(|scheme| format!("{scheme}://{}", host.as_str().to_ascii_lowercase()));
            if !own.contains(&origin) && !self.origins.contains(&origin) {
                let why = format!("pages of {origin:?} may not ask this server; --allow-origin ORIGIN lets one");
                return Err(Turned { status: StatusCode::FORBIDDEN, why });
            }
        }
        Ok(())
    }
}

/// The one host that a request names.
fn host(headers: &HeaderMap) -> Result<Authority, Turned> {
    let mut given = headers.get_all(HOST).iter();
    let (first, second) = (given.next(), given.next());
    let host = first.filter(|_| second.is_none()).and_then(|host| Authority::try_from(host.as_bytes()).ok());
    let host = host.filter(|host| !host.as_str().contains('@'));
    host.ok_or_else(|| {
        let why = "the request must name one host, as in: Host: localhost:7777".to_owned();
        Turned { status: StatusCode::BAD_REQUEST, why }
    })
}

/// A host as it is compared.
fn bare(host: &str) -> String {
    host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(listen: &str) -> Guard {
        let options = Serve {
            listen: listen.parse().unwrap(),
            port_file: None,
            tools: Vec::new(),
            allow_hosts: vec!["Bus.Example".to_owned()],
            allow_origins: vec!["https://board.example".to_owned()],
            insecure: true,
        };
        Guard::new(options.listen, &options)
    }

    fn status(guard: &Guard, uri: &str, headers: &[(&'static str, &str)]) -> u16 {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        guard.check(&uri.parse().unwrap(), &headers).map_or_else(|turned| turned.status.as_u16(), |()| 200)
    }

    #[test]
    fn only_this_machine_is_meant_by_host() {
        let here = guard("127.0.0.1:7777");
        for own in ["localhost", "LOCALHOST:7777", "127.0.0.1:7777", "[::1]:7777", "127.0.0.1:9", "bus.example"] {
            assert_eq!(status(&here, "/mcp", &[("host", own)]), 200, "{own}");
        }
        for other in ["evil.example", "evil.example:7777", "localhost.evil.example", "10.1.2.3", "127.0.0.1.nip.io"] {
            assert_eq!(status(&here, "/mcp", &[("host", other)]), 403, "{other}");
        }
        assert_eq!(status(&here, "http://evil.example/mcp", &[("host", "localhost")]), 403);
        assert_eq!(status(&here, "http://localhost/mcp", &[("host", "evil.example")]), 403);
        for none in
            [&[][..], &[("host", "a b")], &[("host", "localhost"), ("host", "localhost")], &[("host", "a@localhost")]]
        {
            assert_eq!(status(&here, "/", none), 400, "{none:?}");
        }
    }

    #[test]
    fn addresses_are_taken_where_others_may_connect() {
        let everywhere = guard("0.0.0.0:7777");
        assert_eq!(status(&everywhere, "/", &[("host", "10.1.2.3:7777")]), 200);
        assert_eq!(status(&everywhere, "/", &[("host", "evil.example:7777")]), 403);
        assert_eq!((everywhere.hosts(), guard("127.0.0.1:1").hosts().is_some()), (None, true));
    }

    #[test]
    fn only_pages_of_this_server_may_ask() {
        let here = guard("127.0.0.1:7777");
        let asked = |origin: &str| status(&here, "/mcp", &[("host", "localhost:7777"), ("origin", origin)]);
        for own in ["http://localhost:7777", "HTTP://LOCALHOST:7777", "https://board.example"] {
            assert_eq!(asked(own), 200, "{own}");
        }
        for other in [
            "null",
            "",
            "http://evil.example",
            "http://localhost:8888",
            "http://localhost",
            "file://",
            "localhost:7777",
        ] {
            assert_eq!(asked(other), 403, "{other}");
        }
        let two = [("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://evil.example")];
        assert_eq!(status(&here, "/mcp", &two), 403);
    }
}
