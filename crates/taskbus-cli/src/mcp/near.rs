//! The name that somebody probably meant, for the error about an unknown field.

/// Words that other products use for our fields.
const SYNONYMS: [(&str, &str); 17] = [
    ("title", "subject"),
    ("summary", "subject"),
    ("body", "description"),
    ("content", "description"),
    ("details", "description"),
    ("dependson", "blocked_by"),
    ("dependencies", "blocked_by"),
    ("blockers", "blocked_by"),
    ("assignee", "owner"),
    ("list", "channel"),
    ("id", "task_id"),
    ("task", "task_id"),
    ("actor", "as"),
    ("agent", "as"),
    ("state", "status"),
    ("tags", "labels"),
    ("comment", "note"),
];

/// The known name nearest to `unknown`, if any is near.
pub(super) fn nearest(unknown: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let unknown = plain(unknown);
    let known: Vec<&str> = known.collect();
    let synonyms = SYNONYMS.into_iter().filter(|(_, name)| known.contains(name));
    let spellings: Vec<(String, &str)> = known
        .iter()
        .map(|name| (plain(name), *name))
        .chain(synonyms.map(|(word, name)| (word.to_owned(), name)))
        .collect();
    let inside =
        |word: &str| unknown.len() >= 4 && word.len() >= 4 && (word.contains(&unknown) || unknown.contains(word));
    let same = spellings.iter().find(|(word, _)| *word == unknown);
    let contained = || spellings.iter().find(|(word, _)| inside(word));
    let near = || {
        let (slips, found) = spellings.iter().map(|found| (distance(&unknown, &found.0), found)).min()?;
        (slips <= 1 + unknown.len() / 4 && slips < unknown.len()).then_some(found)
    };
    same.or_else(contained).or_else(near).map(|(_, name)| *name)
}

/// Without case and separators, and of a length that costs nothing to compare.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).take(40).map(|c| c.to_ascii_lowercase()).collect()
}

/// How many letters to insert, delete, exchange or replace.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut best = (row[j] + usize::from(x != y)).min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(before[j - 1] + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 9] =
        ["as", "task_id", "subject", "status", "description", "blocked_by", "add_blocked_by", "leased_until", "labels"];

    #[track_caller]
    fn check(unknown: &str, expected: Option<&str>) {
        assert_eq!(nearest(unknown, KNOWN.into_iter()), expected, "{unknown}");
    }

    #[test]
    fn slips_and_other_habits_are_understood() {
        check("titel", Some("subject"));
        check("title", Some("subject"));
        check("subjcet", Some("subject"));
        check("taskId", Some("task_id"));
        check("task-id", Some("task_id"));
        check("id", Some("task_id"));
        check("dependsOn", Some("blocked_by"));
        check("blockedBy", Some("blocked_by"));
        check("addBlockedBy", Some("add_blocked_by"));
        check("lease_until", Some("leased_until"));
        check("statsu", Some("status"));
        check("label", Some("labels"));
    }

    #[test]
    fn what_is_near_nothing_gets_no_guess() {
        for unknown in ["zzz", "", "\u{1b}[2J", "priority", &"x".repeat(100_000)] {
            check(unknown, None);
        }
    }

    #[test]
    fn distances() {
        assert_eq!(
            [distance("abc", "abc"), distance("abc", "acb"), distance("", "ab"), distance("kitten", "sitting")],
            [0, 1, 2, 3]
        );
    }
}
