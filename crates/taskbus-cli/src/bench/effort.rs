//! How much is measured: all of it, in less than a minute, or, where times mean nothing, just enough to see that it
//! works.

use std::time::Duration;

use crate::options::Bench;

/// How much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Effort {
    /// Sizes of the list.
    pub(super) sizes: Vec<usize>,
    /// Samples of each call at each size.
    pub(super) samples: usize,
    /// The largest graph that is reordered.
    pub(super) graph_tasks: usize,
    /// Samples of what takes long: reordering the graph, completing what a thousand wait for.
    pub(super) long_samples: usize,
    /// Tasks that several processes drain.
    pub(super) drained: usize,
    /// How often what several processes do is done over; the median counts.
    pub(super) rounds: usize,
    /// How long several processes write, each time.
    pub(super) writing: Duration,
    /// How often one waiter is woken, and how often many are.
    pub(super) wakes: (usize, usize),
    /// How long waiters are left alone.
    pub(super) idle: Duration,
}

/// As long as it takes.
fn whole() -> Effort {
    Effort {
        sizes: vec![1_000, 10_000, 100_000, 1_000_000],
        samples: 200,
        graph_tasks: 100_000,
        long_samples: 10,
        drained: 10_000,
        rounds: 3,
        writing: Duration::from_secs(3),
        wakes: (300, 40),
        idle: Duration::from_secs(10),
    }
}

/// Less than a minute.
fn quick() -> Effort {
    Effort {
        sizes: vec![1_000, 10_000],
        samples: 50,
        graph_tasks: 10_000,
        long_samples: 5,
        drained: 2_000,
        rounds: 1,
        writing: Duration::from_secs(2),
        wakes: (100, 10),
        idle: Duration::from_secs(3),
    }
}

/// In a debug build, which is slow and whose times mean nothing.
fn smoke() -> Effort {
    Effort {
        sizes: vec![1_000],
        samples: 5,
        graph_tasks: 1_000,
        long_samples: 2,
        drained: 100,
        rounds: 1,
        writing: Duration::from_millis(100),
        wakes: (5, 2),
        idle: Duration::from_millis(200),
    }
}

impl Effort {
    /// What the flags ask for.
    pub(super) fn of(args: &Bench) -> Self {
        let usual = match (args.quick, cfg!(debug_assertions)) {
            (false, _) => whole(),
            (true, false) => quick(),
            (true, true) => smoke(),
        };
        if args.sizes.is_empty() {
            return usual;
        }
        let mut sizes: Vec<usize> = args.sizes.iter().map(|size| *size as usize).collect();
        sizes.sort_unstable();
        sizes.dedup();
        Self { sizes, ..usual }
    }

    /// The size of the graph that is reordered.
    pub(super) fn graph(&self) -> usize {
        self.sizes.iter().copied().max().unwrap_or_default().min(self.graph_tasks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(quick: bool, sizes: Vec<u32>) -> Bench {
        Bench { quick, sizes, parts: Vec::new(), dir: None, count: None, times: None, job: None }
    }

    #[test]
    fn sizes_that_are_named_are_measured_in_order_and_once() {
        let effort = Effort::of(&args(false, vec![50_000, 2_000, 50_000]));
        assert_eq!((effort.sizes.clone(), effort.graph()), (vec![2_000, 50_000], 50_000));
        assert_eq!(Effort { sizes: Vec::new(), ..effort }, Effort { sizes: Vec::new(), ..whole() });
        assert_eq!(Effort::of(&args(false, Vec::new())).graph(), 100_000);
    }

    #[test]
    fn a_quick_run_does_less_of_everything() {
        let (all, less) = (whole(), Effort::of(&args(true, Vec::new())));
        assert!(less.sizes.len() < all.sizes.len() && less.samples < all.samples && less.drained < all.drained);
        assert!(less.writing < all.writing && less.idle < all.idle && less.wakes.0 < all.wakes.0);
    }
}
