//! Who may name whom: between crates, between modules, and which file may name which dependency.

use crate::repo::{File, no_complaints, rust_below};
use crate::source::{line_of, take_apart, without_tests, words};

const CLI: &str = "crates/taskbus-cli/src/";
const SURFACES: [&str; 6] = ["mcp", "http", "cli", "demo", "bench", "torture"];

/// Where something may be named, and where nowhere else.
struct Fence {
    what: &'static str,
    only_below: &'static [&'static str],
}

/// Where async code may stand: what is served, and the one bridge from it to the engine.
const ASYNC_BELOW: [&str; 3] =
    ["crates/taskbus-cli/src/mcp/", "crates/taskbus-cli/src/http/", "crates/taskbus-cli/src/blocking.rs"];

const FENCES: [Fence; 8] = [
    Fence { what: "rusqlite", only_below: &["crates/taskbus/src/store/sqlite/", "crates/taskbus-cli/src/bench/"] },
    Fence { what: "rmcp", only_below: &["crates/taskbus-cli/src/mcp/"] },
    Fence { what: "axum", only_below: &["crates/taskbus-cli/src/http/"] },
    Fence { what: "hyper", only_below: &["crates/taskbus-cli/src/http/"] },
    Fence { what: "hyper_util", only_below: &["crates/taskbus-cli/src/http/"] },
    Fence { what: "tokio", only_below: &ASYNC_BELOW },
    Fence { what: "tokio_util", only_below: &ASYNC_BELOW },
    Fence { what: "async", only_below: &ASYNC_BELOW },
];

/// SQL stands beside its store, and in the loop that the benchmark measures against.
const SQL_BELOW: [&str; 2] = ["crates/taskbus/src/store/sqlite/", "crates/taskbus-cli/src/bench/"];
const SQL: [&str; 7] = ["SELECT ", "INSERT ", "UPDATE ", "DELETE FROM", "CREATE TABLE", "PRAGMA ", "BEGIN IMMEDIATE"];

/// What the pure core may not name of the standard library (its clippy.toml bans the single calls).
const IMPURE: [&str; 9] = ["fs", "io", "env", "net", "os", "process", "thread", "sync", "path"];

fn code(file: &File) -> String {
    take_apart(without_tests(&file.text)).code
}

/// Where a module path such as `crate::engine` is named, also inside `crate::{…}`.
fn names_module(code: &str, base: &str, module: &str) -> Vec<usize> {
    let plain = format!("{base}::{module}");
    let grouped = format!("{base}::{{");
    let inside = code.match_indices(&grouped).flat_map(|(at, _)| {
        let group = &code[at..at + code[at..].find(';').unwrap_or(0)];
        words(group, module).map(move |found| at + found).collect::<Vec<_>>()
    });
    let outside: Vec<usize> = words(code, &plain).collect();
    outside.into_iter().chain(inside).collect()
}

fn complain(file: &File, at: usize, what: &str, why: &str) -> String {
    format!("{}:{}: names `{what}`: {why}", file.path, line_of(&file.text, at))
}

fn module_named(file: &File, module: &str, why: &str) -> Vec<String> {
    let code = code(file);
    names_module(&code, "crate", module).into_iter().map(|at| complain(file, at, module, why)).collect()
}

fn beyond_fence(file: &File, fence: &Fence) -> Vec<String> {
    if fence.only_below.iter().any(|folder| file.path.starts_with(folder)) {
        return Vec::new();
    }
    let why = format!("only files below {} may", fence.only_below.join(" and "));
    words(&code(file), fence.what).map(|at| complain(file, at, fence.what, &why)).collect()
}

fn sql(file: &File) -> Vec<String> {
    let strings = take_apart(without_tests(&file.text)).strings;
    let found = SQL.iter().flat_map(|word| strings.match_indices(word).map(|(at, _)| (at, word)).collect::<Vec<_>>());
    found.map(|(at, word)| complain(file, at, word.trim(), "SQL stands only beside its store")).collect()
}

fn impure(file: &File) -> Vec<String> {
    let code = code(file);
    let named =
        IMPURE.iter().flat_map(|module| names_module(&code, "std", module).into_iter().map(move |at| (at, module)));
    named.map(|(at, module)| complain(file, at, &format!("std::{module}"), "the core is pure")).collect()
}

/// The surface that a file of the binary belongs to; none for what they share.
fn surface_of(path: &str) -> Option<&'static str> {
    let rest = path.strip_prefix(CLI)?;
    SURFACES.into_iter().find(|surface| rest.starts_with(&format!("{surface}/")))
}

/// A surface names no other; what they share names none.
fn crossings(file: &File) -> Vec<String> {
    if file.path == format!("{CLI}main.rs") {
        return Vec::new();
    }
    let own = surface_of(&file.path);
    let others = SURFACES.into_iter().filter(|surface| own != Some(surface));
    others.flat_map(|surface| module_named(file, surface, "a surface imports no other surface")).collect()
}

fn shipped() -> Vec<File> {
    rust_below(&["crates/taskbus-core/src/", "crates/taskbus/src/", CLI])
}

mod tests {
    use super::*;

    fn sample(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn each_check_finds_its_broken_sample() {
        let store = sample("crates/taskbus/src/store/a.rs", "use crate::{answer, engine::Engine};\n");
        assert_eq!(module_named(&store, "engine", "").len(), 1);
        assert_eq!(
            module_named(&sample("a.rs", "// crate::engine\nlet a = \"crate::engine\";"), "engine", "").len(),
            0
        );
        assert_eq!(beyond_fence(&sample("a.rs", "use rusqlite::Connection;"), &FENCES[0]).len(), 1);
        assert_eq!(beyond_fence(&sample("a.rs", "async fn b() {}"), &FENCES[7]).len(), 1);
        assert_eq!(sql(&sample("a.rs", "let a = \"SELECT 1\"; // SELECT 2")).len(), 1);
        assert_eq!(impure(&sample("a.rs", "use std::{fmt, fs};\nstd::env::var(\"A\");")).len(), 2);
        assert_eq!(crossings(&sample("crates/taskbus-cli/src/mcp/a.rs", "use crate::cli::b;")).len(), 1);
        assert_eq!(crossings(&sample("crates/taskbus-cli/src/wire/a.rs", "use crate::mcp::b;")).len(), 1);
        assert!(crossings(&sample("crates/taskbus-cli/src/mcp/a.rs", "use crate::mcp::b;")).is_empty());
    }

    #[test]
    fn stores_never_import_the_engine() {
        let stores = rust_below(&["crates/taskbus/src/store/"]);
        let engine =
            stores.iter().flat_map(|file| module_named(file, "engine", "a store imports the seam and the core"));
        let answer =
            stores.iter().flat_map(|file| module_named(file, "answer", "a store imports the seam and the core"));
        no_complaints(&engine.chain(answer).collect::<Vec<_>>());
    }

    #[test]
    fn surfaces_never_import_each_other() {
        no_complaints(&rust_below(&[CLI]).iter().flat_map(crossings).collect::<Vec<_>>());
    }

    #[test]
    fn a_dependency_is_named_where_it_belongs() {
        let shipped = shipped();
        let beyond = FENCES.iter().flat_map(|fence| shipped.iter().flat_map(|file| beyond_fence(file, fence)));
        no_complaints(&beyond.collect::<Vec<_>>());
    }

    #[test]
    fn what_blocks_is_called_from_async_code_in_one_place() {
        let bridges = shipped().iter().map(|file| words(&code(file), "spawn_blocking").count()).sum::<usize>();
        assert!(bridges <= 1, "{bridges} calls of spawn_blocking: the engine is reached through one helper");
    }

    #[test]
    fn the_protocol_sdk_is_named_in_one_file() {
        let naming: Vec<String> =
            shipped().into_iter().filter(|f| words(&code(f), "rmcp").next().is_some()).map(|f| f.path).collect();
        assert!(naming.len() <= 1, "rmcp is named in {naming:?}");
    }

    #[test]
    fn sql_stands_only_beside_its_store() {
        let elsewhere = |file: &File| !SQL_BELOW.iter().any(|folder| file.path.starts_with(folder));
        no_complaints(&shipped().iter().filter(|file| elsewhere(file)).flat_map(sql).collect::<Vec<_>>());
    }

    #[test]
    fn the_core_is_pure() {
        no_complaints(&rust_below(&["crates/taskbus-core/src/"]).iter().flat_map(impure).collect::<Vec<_>>());
    }
}
