"""That the bars judge, that nothing which could not be measured is taken for good, and that what is timed is what was
asked for: with the real binary, on small lists."""

import importlib.machinery
import importlib.util
import os
import pathlib
import tempfile
import types
import unittest

import bars
import programs
import rows

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("TASKBUS_BIN") or ROOT / "target/debug/taskbus").resolve()


class Judged(unittest.TestCase):
    def test_a_bar_is_met_up_to_its_target(self):
        self.assertEqual([bars.met(value, 2.5) for value in (2.4, 2.5, 2.51)], [True, True, False])
        self.assertIsNone(bars.bar("told", 5.0)["met"])

    def test_a_missed_bar_and_one_that_was_not_measured_are_told_apart(self):
        good, bad = bars.bar("good", 1, 2), bars.bar("bad", 3, 2)
        lost = bars.missing("lost", "no sqlite3")
        self.assertEqual([bars.code(some) for some in ([good], [good, bad, lost], [good, lost])], [0, 1, 2])

    def test_the_table_hides_nothing(self):
        some = [bars.bar("good", 1.234, 2.5, words="a / b"), bars.bar("bad", 31, 20, "MiB"), bars.bar("told", 4200, unit="KiB")]
        report = bars.head("1", "debug") | {"bars": [*some, bars.missing("lost", "no sqlite3")]}
        text = bars.markdown(report)
        self.assertIn("| good | 1.23× | 2.5× | ✓ | a / b |", text)
        self.assertIn("| bad | 31 MiB | 20 MiB | ✗ |  |", text)
        self.assertIn("| told | 4,200 KiB |  |  |  |", text)
        self.assertIn("Missed: bad.\nNOT MEASURED: lost: no sqlite3.", text)

    def test_the_medians_are_compared(self):
        self.assertEqual(bars.times([4.0, 5.0, 90.0], [1.0, 2.0, 2.0]), 2.5)


class Measured(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="taskbus-processes-")
        self.addCleanup(folder.cleanup)
        self.folder, self.places = pathlib.Path(folder.name), 0
        true = "/bin/true"
        self.run_ = types.SimpleNamespace(
            binary=BINARY, empty=true, rounds=2, drains=1, idle_servers=3, idle_seconds=0.1, place=self.place
        )
        self.run_.sqlite3 = rows.sqlite3()
        for name, small in (("LIST", 60), ("CLAIMS", 8)):
            self.addCleanup(setattr, rows, name, getattr(rows, name))
            setattr(rows, name, small)

    def place(self):
        self.places += 1
        return self.folder / str(self.places)

    def names(self, found):
        self.assertTrue(all("reason" in bar or bar["value"] >= 0 for bar in found), found)
        return [bar["name"] for bar in found]

    def test_commands(self):
        self.assertEqual(len(self.names(rows.commands(self.run_))), 6)

    def test_claims_end_with_every_task_taken_once(self):
        found = {bar["name"]: bar for bar in rows.claims(self.run_)}
        self.assertEqual(len(self.names(found.values())), 3)
        self.assertEqual(found["claims_twice"]["value"], 0)

    def test_without_the_shell_of_sqlite_its_rows_say_so(self):
        self.run_.sqlite3 = None
        reasons = [bar["reason"] for bar in rows.claims(self.run_) if "reason" in bar]
        self.assertEqual(len(reasons), 2)
        self.assertIn("sqlite3 is not there", reasons[0])

    def test_idle_servers_wake_up(self):
        found = {bar["name"]: bar for bar in rows.idle(self.run_)}
        self.assertEqual(len(self.names(found.values())), 5)
        self.assertGreater(found["idle_rss"]["value"], found["idle_pss"]["value"])

    def test_a_command_that_fails_is_no_fast_success(self):
        store = programs.Store(BINARY, self.place())
        with self.assertRaisesRegex(programs.Broken, "ended with"):
            store.run("show", "7")


class Run(unittest.TestCase):
    def test_a_group_that_breaks_stands_in_the_report(self):
        path = str(pathlib.Path(__file__).resolve().parent / "run")
        loader = importlib.machinery.SourceFileLoader("run", path)
        run = importlib.util.module_from_spec(importlib.util.spec_from_loader("run", loader))
        loader.exec_module(run)
        self.addCleanup(rows.GROUPS.update, {"idle": rows.idle})

        def broken(_):
            raise programs.Broken("on purpose")

        rows.GROUPS["idle"] = broken
        args = types.SimpleNamespace(only=["idle"], rounds=1, drains=1, idle_servers=1, idle_seconds=0)
        found = run.Run(args, pathlib.Path(".")).group("idle")
        self.assertEqual((bars.code(found), found[0]["reason"]), (2, "failed: on purpose"))


if __name__ == "__main__":
    unittest.main()
