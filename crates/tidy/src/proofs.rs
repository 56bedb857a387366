//! Tables in documents that say which test holds what: whatever they name is there.

use crate::repo::root;

/// One line of such a table: what is held, where, and by what.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    pub(crate) held: &'a str,
    path: &'a str,
    name: &'a str,
}

/// The lines of a document that name a file of ours and something in it.
pub(crate) fn rows(document: &str) -> Vec<Row<'_>> {
    let lines = document.lines().filter(|line| line.starts_with("| ") && line.contains(" | `crates/"));
    let row = |line| match cells(line).as_slice() {
        [held, path, name] => Row { held, path: path.trim_matches('`'), name: name.trim_matches('`') },
        _ => panic!("not three cells: {line}"),
    };
    lines.map(row).collect()
}

fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split(" | ").map(str::trim).collect()
}

/// What is wrong with a row; a test may be one of a macro that runs it on every store, or a check of the suite.
pub(crate) fn wrong(row: &Row<'_>) -> Option<String> {
    let Ok(text) = std::fs::read_to_string(root().join(row.path)) else {
        return Some(format!("{}: there is no {}", row.held, row.path));
    };
    let is_there = if row.path.ends_with(".rs") {
        let runs = ["#[test]", "on_every_store!"].iter().any(|mark| text.contains(mark));
        let named = ["(", "<"].iter().any(|behind| text.contains(&format!("fn {}{behind}", row.name)));
        named && (runs || row.path.contains("/conformance/"))
    } else {
        text.lines().any(|line| line == format!("# {}", row.name))
    };
    (!is_there).then(|| format!("{}: {} has no {}", row.held, row.path, row.name))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::repo::text;

    /// Those of the threats that have their test with what does not exist yet: tokens, Postgres, pages that show texts.
    /// SECURITY.md says so of each.
    const LATER: [&str; 3] = ["T3", "T6", "T10"];

    /// Those rules of the design that are not built: docs/reliability.md says so.
    const UNBUILT: [&str; 1] = ["R11"];

    #[test]
    fn every_rule_of_the_design_has_its_test() {
        let reliability = text("docs/reliability.md");
        let rows = rows(&reliability);
        assert_eq!(rows.iter().filter_map(wrong).collect::<Vec<_>>(), Vec::<String>::new());
        let held: BTreeSet<&str> =
            rows.iter().flat_map(|row| row.held.split(':').next().unwrap().split(", ")).collect();
        let missing: Vec<String> =
            (1..=18).map(|n| format!("R{n}")).filter(|rule| !held.contains(rule.as_str())).collect();
        assert_eq!(missing, UNBUILT);
        assert!(UNBUILT.iter().all(|rule| reliability.contains(&format!("{rule} ("))), "what is missing is said");
    }

    fn threats(security: &str) -> BTreeSet<String> {
        rows(security).iter().filter_map(|row| Some(row.held.split_once(": ")?.0.to_owned())).collect()
    }

    #[test]
    fn every_threat_has_its_test() {
        let security = text("SECURITY.md");
        assert_eq!(rows(&security).iter().filter_map(wrong).collect::<Vec<_>>(), Vec::<String>::new());
        let (held, all) = (threats(&security), (1..=20).map(|n| format!("T{n}")));
        let missing: Vec<String> = all.filter(|threat| !held.contains(threat)).collect();
        assert_eq!(missing, LATER);
        for threat in LATER {
            assert!(security.contains(&format!("{threat}, ")) || security.contains(&format!("{threat}. ")), "{threat}");
        }
    }

    #[test]
    fn what_is_named_and_not_there_is_found() {
        let table = "| T7: x | `crates/tidy/src/proofs.rs` | `no_such_test` |\n| T8: x | `crates/nowhere.rs` | `x` |\n";
        let rows = rows(table);
        assert_eq!((rows.len(), rows.iter().filter_map(wrong).count()), (2, 2), "{rows:?}");
        assert_eq!(threats(table).len(), 2);
    }
}
