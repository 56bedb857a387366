//! Any bytes, fed to what reads texts of strangers here: nothing panics, and what is taken means the same again when it is
//! written and read. The harness is shared with the fuzz tests of the other crates.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod harness;
mod names;
mod patch;
mod queries;
mod ranks;

use harness::{Count, Made, Target, escaped, unescaped};

#[test]
fn a_line_of_inputs_is_read_as_it_is_written() {
    let all: Vec<u8> = (0..=255).collect();
    assert_eq!(unescaped(&escaped(&all)), all);
    assert_eq!(unescaped("é\\\\n\\n"), "é\\n\n".as_bytes());
}

/// The harness finds what is hidden behind a word, and shows nothing that is not needed for it.
#[test]
fn a_target_that_goes_wrong_is_found_out_and_its_input_cut_down() {
    fn fragile(input: &[u8]) -> Made {
        assert!(!input.windows(4).any(|four| four == b"boom"), "boom");
        Made::of(input.len() > 3)
    }
    let target = Target { name: "fragile", corpus: "a quiet line\nanother\n", words: &["boom"], take: fragile };
    let said = std::panic::catch_unwind(|| target.hunt(5_000)).map(|count: Count| count.taken).unwrap_err();
    let said = said.downcast_ref::<String>().unwrap();
    assert!(said.ends_with("\nboom"), "{said}");
}
