//! How it starts: where it listens, who learns of it, and when it does not start at all.

use crate::common::{Place, run};
use crate::server::{Server, listening};

#[test]
fn the_port_file_comes_with_the_port_and_goes_with_the_server() {
    let place = Place::new();
    let file = place.path("port");
    let mut command = place.command(&["serve", "--listen", "127.0.0.1:0", "--port-file"]);
    let (mut process, line) = listening(command.arg(&file));
    let port = std::fs::read_to_string(&file).unwrap();
    assert!(line.contains(&format!("127.0.0.1:{}/mcp", port.trim())), "{line} {port}");
    rustix::process::kill_process(rustix::process::Pid::from_child(&process), rustix::process::Signal::TERM).unwrap();
    assert!(process.wait().unwrap().success());
    assert!(!file.exists());
}

#[test]
fn others_are_not_let_in_by_accident() {
    let place = Place::new();
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:7777"] {
        let ran = place.run(&["serve", "--listen", listen]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.err.contains("--insecure") && ran.err.contains("127.0.0.1"), "{ran:?}");
    }
    let open = Server::with(&["--insecure"]);
    assert_eq!(open.ask("GET", "/healthz", &[], "").status, 200);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let server = Server::start();
    let taken = format!("127.0.0.1:{}", server.port);
    let ran = server.place.run(&["serve", "--listen", &taken]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.err.contains(&taken) && ran.err.contains("--listen"), "{ran:?}");
}

#[test]
fn a_store_that_cannot_be_had_is_no_server() {
    let place = Place::new();
    let file = place.write("no.db", "this is no database, and it is long enough to be read as one that was spoiled");
    let ran = run(&mut place.bare(&["serve", "--listen", "127.0.0.1:0", "--store", &format!("sqlite:{file}")]));
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.err.contains("no.db"), "{ran:?}");
}

#[test]
fn what_was_answered_is_counted() {
    let server = Server::start();
    let _session = server.session();
    server.ask("GET", "/nothing/there", &[], "");
    server.ask("GET", "/", &[("Host", "evil.example")], "");
    let told = server.ask("GET", "/metrics", &[], "").body;
    for line in [
        r#"taskbus_http_requests_total{path="/mcp",status="200"} 1"#,
        r#"taskbus_http_requests_total{path="/mcp",status="202"} 1"#,
        r#"taskbus_http_requests_total{path="other",status="404"} 1"#,
        r#"taskbus_http_requests_total{path="/",status="403"} 1"#,
        "taskbus_mcp_sessions 1",
    ] {
        assert!(told.lines().any(|own| own == line), "{line} in {told}");
    }
}

#[test]
fn the_health_of_the_store_is_told() {
    let server = Server::start();
    assert_eq!(server.ask("GET", "/healthz", &[], "").message()["status"], "ok");
}
