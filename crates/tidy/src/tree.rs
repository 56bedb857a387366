//! Checks of the dependency tree: the core's frozen list, the ceiling, known-bad versions, and where crates come from.

use std::collections::BTreeSet;

use toml::{Table, Value};

use crate::repo::{no_complaints, run, text};

/// More crates than this in the default build is a decision, not an accident.
const CRATES_MAX: usize = 200;

const RECORD: &str = "docs/adr/0007-dependencies-by-group.md";
const MANIFESTS: [&str; 4] = ["taskbus-core", "taskbus", "taskbus-cli", "tidy"];

/// `name features` of every crate below a package, sorted.
fn crates_below(package: &str, edges: &str) -> BTreeSet<String> {
    let args = ["tree", "--offline", "--locked", "-p", package, "-e", edges, "--prefix", "none", "--format", "{p}|{f}"];
    run("cargo", &args).lines().skip(1).filter(|line| !line.is_empty()).map(name_and_features).collect()
}

fn name_and_features(line: &str) -> String {
    let (package, features) = line.trim_end_matches(" (*)").split_once('|').expect("the format has a bar");
    let name = package.split(' ').next().unwrap_or(package);
    format!("{name} {features}").trim_end().to_owned()
}

/// The names of the direct dependencies in a manifest, for building and for tests.
fn direct(manifest: &Table) -> BTreeSet<String> {
    let tables = ["dependencies", "dev-dependencies", "build-dependencies"].into_iter();
    tables.filter_map(|name| manifest.get(name)?.as_table()).flat_map(|table| table.keys().cloned()).collect()
}

/// Direct dependencies that the record of choices does not name.
fn unexplained(names: &BTreeSet<String>, record: &str) -> Vec<String> {
    let foreign = names.iter().filter(|name| !name.starts_with("taskbus"));
    let silent = foreign.filter(|name| !record.contains(&format!("`{name}`")));
    silent.map(|name| format!("{RECORD}: has no row for {name}")).collect()
}

/// A lock file's packages that come from elsewhere than the registry, or are banned.
fn bad_packages(lock: &Table, deny: &Table) -> Vec<String> {
    let bans: Vec<(String, Option<Vec<u64>>)> = bans(deny);
    packages(lock)
        .into_iter()
        .flat_map(|(name, version, source)| {
            let foreign = source.filter(|s| !s.starts_with("registry+")).map(|s| format!("{name} comes from {s}"));
            let banned = bans
                .iter()
                .find(|(ban, upto)| *ban == name && upto.as_ref().is_none_or(|upto| reaches(&numbers(&version), upto)));
            foreign
                .into_iter()
                .chain(banned.map(|_| format!("{name} {version} is banned in deny.toml")))
                .collect::<Vec<_>>()
        })
        .collect()
}

fn packages(lock: &Table) -> Vec<(String, String, Option<String>)> {
    let list = lock["package"].as_array().expect("a list");
    let field = |package: &Value, name: &str| package.get(name).and_then(Value::as_str).map(str::to_owned);
    let row = |package| {
        (
            field(package, "name").unwrap_or_default(),
            field(package, "version").unwrap_or_default(),
            field(package, "source"),
        )
    };
    list.iter().map(row).collect()
}

/// Each ban as a name and, for `name@<=x`, the last version that is banned, perhaps without its last numbers.
fn bans(deny: &Table) -> Vec<(String, Option<Vec<u64>>)> {
    let list = deny["bans"]["deny"].as_array().expect("a list");
    let ban = |value: &Value| {
        let spec = value["crate"].as_str().expect("a name").to_owned();
        match spec.split_once("@<=") {
            Some((name, upto)) => (name.to_owned(), Some(numbers(upto))),
            None => (spec, None),
        }
    };
    list.iter().map(ban).collect()
}

fn reaches(version: &[u64], upto: &[u64]) -> bool {
    version[..upto.len().min(version.len())] <= *upto
}

fn numbers(version: &str) -> Vec<u64> {
    version.split(['.', '+', '-']).map_while(|part| part.parse().ok()).collect()
}

fn table(path: &str) -> Table {
    text(path).parse().unwrap_or_else(|error| panic!("{path}: {error}"))
}

mod tests {
    use super::*;

    #[test]
    fn a_banned_version_and_a_foreign_source_are_found() {
        let deny: Table = "[bans]\ndeny = [{ crate = \"a@<=1.3\" }, { crate = \"b\" }]".parse().unwrap();
        let lock = |name: &str, version: &str, source: &str| -> Table {
            format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\nsource = \"{source}\"").parse().unwrap()
        };
        let found = |name, version, source| bad_packages(&lock(name, version, source), &deny).len();
        assert_eq!([found("a", "1.3.9", "registry+x"), found("a", "1.4.0", "registry+x")], [1, 0]);
        assert_eq!([found("b", "9.0.0", "registry+x"), found("c", "1.0.0", "git+https://example.com")], [1, 1]);
    }

    #[test]
    fn lines_of_the_tree_lose_version_and_repeats() {
        assert_eq!(name_and_features("serde v1.0.0|default,derive (*)"), "serde default,derive");
        assert_eq!(name_and_features("itoa v1.0.0|"), "itoa");
    }

    #[test]
    fn the_lock_file_holds_nothing_banned_or_foreign() {
        no_complaints(&bad_packages(&table("Cargo.lock"), &table("deny.toml")));
    }

    #[test]
    fn a_dependency_is_explained_and_used() {
        let bad: Table = "[dependencies]\nserde = 1\nleft-pad = 1".parse().unwrap();
        assert_eq!(unexplained(&direct(&bad), "| `serde` |").len(), 1);
        let direct: BTreeSet<String> =
            MANIFESTS.iter().flat_map(|name| direct(&table(&format!("crates/{name}/Cargo.toml")))).collect();
        no_complaints(&unexplained(&direct, &text(RECORD)));
        let listed = table("Cargo.toml")["workspace"]["dependencies"].as_table().unwrap().clone();
        let idle = listed.keys().filter(|name| !direct.contains(*name) && *name != "taskbus");
        no_complaints(&idle.map(|name| format!("Cargo.toml: no crate uses {name}")).collect::<Vec<_>>());
    }

    #[test]
    fn the_core_depends_on_its_frozen_list() {
        let now: Vec<String> = crates_below("taskbus-core", "normal,no-proc-macro").into_iter().collect();
        let frozen = text("crates/taskbus-core/dependencies.txt");
        let frozen: Vec<&str> = frozen.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
        assert_eq!(now, frozen, "if it is meant: write the left side to crates/taskbus-core/dependencies.txt");
    }

    #[test]
    fn the_default_build_stays_small() {
        let count = crates_below("taskbus-cli", "normal,build")
            .into_iter()
            .map(|line| line.split(' ').next().unwrap_or("").to_owned())
            .collect::<BTreeSet<_>>()
            .len();
        println!("{count} crates in the default build");
        assert!(count <= CRATES_MAX, "{count} crates, {CRATES_MAX} allowed");
    }
}
