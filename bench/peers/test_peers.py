"""That the comparison compares: taskbus stands in for a peer, with the real binary; and that the report hides nothing."""

import contextlib
import os
import pathlib
import tempfile
import unittest
import unittest.mock

import install
import measure
import report
from mcp import Broken
from subject import Taskbus, TaskbusMcp

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("TASKBUS_BIN") or ROOT / "target/debug/taskbus").resolve()
PROGRAM = install.Peer("taskbus", commands=BINARY.parent)


class Partial(Taskbus):
    """A peer that has no `ready` and whose `complete` is refused."""

    lacks = {"ready": "not here"}

    def complete(self, task):
        raise Broken("refused")


class Measured(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="taskbus-peers-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def subject(self, kind, name, worker="zed"):
        subject = kind(PROGRAM, self.folder / name, worker)
        self.addCleanup(subject.close)
        return subject

    def pair(self, ours, theirs, size):
        for subject in (ours, theirs):
            subject.open()
            if size:
                subject.fill(size)
        pair = measure.Pair(ours, theirs, rounds=3, budget_s=60)
        pair.run()
        return {row["step"]: row for row in pair.rows()}

    def test_every_step_of_the_command_line_is_measured(self):
        rows = self.pair(self.subject(Taskbus, "a"), self.subject(Taskbus, "b"), 0)
        self.assertEqual(set(rows), {"add", "list", "ready", "claim", "complete", "next"})
        self.assertTrue(all(row["rounds"] == 3 and row["peer_ms"] > 0 and row["ratio"] > 0 for row in rows.values()))

    def test_every_step_over_mcp_is_measured(self):
        rows = self.pair(self.subject(TaskbusMcp, "a"), self.subject(TaskbusMcp, "b"), 5)
        self.assertEqual(set(rows), {"add", "list", "ready", "claim", "complete", "next"})

    def test_what_a_peer_lacks_or_fails_has_a_reason(self):
        rows = self.pair(self.subject(Taskbus, "a"), self.subject(Partial, "b"), 0)
        self.assertEqual(rows["ready"], {"step": "ready", "reason": "not here"})
        self.assertEqual(rows["complete"], {"step": "complete", "reason": "failed: refused"})
        self.assertIn("ratio", rows["list"])

    def test_one_of_several_wins_and_nothing_is_handed_out_twice(self):
        workers = [self.subject(TaskbusMcp, "a", worker) for worker in ("zed", "amp", "jan")]
        workers[0].open()
        for worker in workers[1:]:
            worker.join(workers[0])
        raced = measure.race(workers, 3, 60)
        self.assertEqual((raced["tasks"], raced["winners"]), (3, [1, 1]))
        workers[0].fill(9)
        drained = measure.drain(workers, 9)
        self.assertEqual((drained["taken"], drained["twice"]), (9, 0))


class Budgeted(unittest.TestCase):
    def rounds(self, rounds, budget_s, round_s):
        """How many there are if each takes so long on a clock that stands still otherwise."""
        now = 0.0
        with unittest.mock.patch("measure.time.monotonic", lambda: now):
            for number in measure.within(rounds, budget_s):
                now += round_s
        return number + 1

    def test_a_slow_peer_gets_one_round_and_a_fast_one_all_of_them(self):
        self.assertEqual([self.rounds(15, 20, round_s) for round_s in (1, 3, 7, 19, 21, 100)], [15, 7, 3, 3, 1, 1])


class Reported(unittest.TestCase):
    def test_a_peer_that_is_not_there_stands_in_the_table_with_its_reason(self):
        about = {"surface": "cli", "tasks": 0, "peer": "one", "taskbus_ms": 2.0, "rounds": 3}
        rows = [
            about | {"step": "add", "ratio": 4.0, "peer_ms": 8.0, "note": "in its way"},
            about | {"step": "list", "ratio": 0.5, "peer_ms": 1.0, "rounds": 1},
        ]
        peers = [
            {"name": "one", "version": "1", "reason": "", "absent": {}},
            {"name": "two", "version": "", "reason": "cannot be installed: no network", "absent": {}},
        ]
        heading = report.head({"version": "0", "build": "debug"}, "3", 1.0)
        text = report.markdown(heading | {"peers": peers, "results": rows, "contention": []})
        self.assertIn("| one 1 | **4.0×** (8.0 / 2.0) [1] | **0.5×** (1.0 / 2.0) [2] |", text)
        self.assertIn("| two | — [3] | — [3] |", text)
        self.assertIn("1. in its way\n2. 1 of 3 rounds: each takes longer than the budget\n3. cannot be installed: no network", text)
        self.assertIn("- one, cli, 0 tasks, list: 0.50×", text)

    def test_a_peer_that_cannot_be_installed_says_why(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(None):
            place = install.Place(pathlib.Path(folder))
            place.from_pypi = lambda name: install.run(["false"], folder)
            self.assertIn("cannot be installed", place.peer("naxe").reason)


if __name__ == "__main__":
    unittest.main()
