//! The rules of `tools/list` on the tables themselves; `tests/mcp/schema.rs` holds the same against a real process.

use super::*;
use crate::mcp::table::Offer;
use crate::options::ToolSet;

/// A token is counted as four bytes.
const TOKENS_MAX: [(ToolSet, usize); 4] =
    [(ToolSet::Core, 3_000), (ToolSet::Full, 5_000), (ToolSet::Claude, 800), (ToolSet::Kin, 400)];

fn tools(set: ToolSet) -> Vec<&'static Tool> {
    Offer::of(&[set], false).tools.iter().map(|offered| offered.tool).collect()
}

#[test]
fn the_definitions_are_small() {
    for (set, tokens_max) in TOKENS_MAX {
        let tools: Vec<Value> = tools(set).into_iter().map(definition).collect();
        for tool in &tools {
            println!("{:>6} bytes  {}", tool.to_string().len(), tool["name"]);
        }
        let bytes = Value::Array(tools).to_string().len();
        println!("{bytes:>6} bytes in all = {} tokens of the set {set:?}", bytes / 4);
        assert!(bytes / 4 <= tokens_max, "{set:?}: {bytes} bytes");
    }
}

#[test]
fn words_are_few() {
    for tool in ToolSet::ALL.into_iter().flat_map(tools) {
        assert!(tool.description.len() <= 600, "{} {}", tool.name, tool.description.len());
        assert!(!tool.description.contains("  "), "{}", tool.description);
        assert!(tool.name.len() <= 25);
    }
}

#[test]
fn a_session_is_told_little_whatever_the_sets() {
    let [core, full, claude, kin] = ToolSet::ALL;
    let sets: [&[ToolSet]; 8] =
        [&[core], &[claude], &[kin], &[core, claude], &[core, kin], &[claude, kin], &[full], &[full, claude, kin]];
    for sets in sets {
        for one_list in [false, true] {
            let told = Offer::of(sets, one_list).instructions;
            println!("{:>5} bytes of instructions for {sets:?}", told.len());
            assert!(told.len() <= 2048 && told.contains("not instructions"), "{sets:?} {}", told.len());
            for set in sets {
                let named = tools(*set).iter().any(|tool| told.contains(tool.name));
                assert!(named, "{set:?} is not told of: {told}");
            }
            let of_a_bus = one_list && ["register", "create_channel", "receive"].iter().any(|name| told.contains(name));
            assert!(!of_a_bus, "{told}");
        }
    }
}

#[test]
fn names_are_unique() {
    let offer = Offer::of(&ToolSet::ALL, false);
    let mut tools: Vec<&str> = offer.names().collect();
    tools.sort_unstable();
    tools.dedup();
    assert_eq!(tools.len(), offer.tools.len());
    for tool in offer.tools.iter().map(|offered| offered.tool) {
        let aliases = tool.fields.iter().flat_map(|field| field.aliases.iter().copied());
        let mut names: Vec<&str> = tool.fields.iter().map(|field| field.name).chain(aliases).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "{}", tool.name);
    }
}

#[test]
fn the_order_of_the_sets_is_ours() {
    let [core, full, claude, kin] = ToolSet::ALL;
    let names = |sets: &[ToolSet]| Offer::of(sets, false).names().collect::<Vec<_>>();
    assert_eq!(names(&[kin, core, kin, claude, full]), names(&ToolSet::ALL));
    assert_eq!(names(&[kin]), ["tasks"]);
    assert_eq!(names(&[claude, kin]), ["TaskCreate", "TaskGet", "TaskUpdate", "TaskList", "tasks"]);
    let one_list: Vec<&str> = Offer::of(&[core], true).names().collect();
    assert_eq!(one_list, names(&[core])[2..10]);
    assert_eq!(names(&[full])[..12], names(&[core]));
    assert_eq!(Offer::of(&[full], true).names().collect::<Vec<_>>(), one_list);
}
