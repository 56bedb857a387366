//! What a long command shows while it works: a bar on a terminal, a line now and then elsewhere. All of it goes to
//! standard error.

use std::cell::Cell;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::report::say;
use super::safe::display_safe;

/// Lines are written after each of so many parts of the work.
const PARTS: u64 = 5;

/// A piece of work under way.
pub(crate) struct Progress {
    bar: ProgressBar,
    total: u64,
    said: Cell<u64>,
}

impl Progress {
    /// Work of so many steps.
    pub(crate) fn new(total: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{bar:16} {pos}/{len} {elapsed} {wide_msg}");
        bar.set_style(style.expect("BUG: the template is one").progress_chars("━╸ "));
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, total, said: Cell::new(0) }
    }

    /// So many steps are done.
    pub(crate) fn set(&self, done: u64) {
        self.bar.set_position(done);
        let part = done * PARTS / self.total.max(1);
        if self.bar.is_hidden() && part > self.said.get() {
            self.said.set(part);
            say(&format!("{done} of {} done", self.total));
        }
    }

    /// What is being done.
    pub(crate) fn doing(&self, what: &str) {
        self.bar.set_message(display_safe(what).into_owned());
    }

    /// Something happened.
    pub(crate) fn note(&self, what: &str) {
        if self.bar.is_hidden() {
            say(what);
        } else {
            self.bar.println(display_safe(what));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
