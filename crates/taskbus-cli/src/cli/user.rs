//! The name of the user, for those who give none: from the environment, else from the user database.

use std::env;
use std::fs;

/// The name; `user-<uid>` when nothing knows one. A `/`, which joins parents and children, becomes `-`.
pub(crate) fn name() -> String {
    let said = ["USER", "LOGNAME"].into_iter().filter_map(|variable| env::var(variable).ok());
    let said = said.map(|name| name.trim().to_owned()).find(|name| !name.is_empty());
    let uid = rustix::process::getuid().as_raw();
    let name = said.or_else(|| known(&fs::read_to_string("/etc/passwd").ok()?, uid));
    name.unwrap_or_else(|| format!("user-{uid}")).replace('/', "-")
}

/// The name of a user id in the text of a passwd(5) file.
fn known(passwd: &str, uid: u32) -> Option<String> {
    let uid = uid.to_string();
    let mut entries = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let entry = entries.find(|fields| fields.get(2) == Some(&uid.as_str()))?;
    Some(entry[0].to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_known_by_number() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nzed:x:1000:1000::/home/zed:/bin/sh\n:x:7:7:::\n";
        assert_eq!(known(passwd, 1000).as_deref(), Some("zed"));
        assert_eq!(known(passwd, 0).as_deref(), Some("root"));
        assert_eq!(known(passwd, 7), None);
        assert_eq!(known("", 0), None);
    }
}
