"""That the guard closes: on a call that costs more, on one without a figure, and not on another toolchain."""

import importlib.machinery
import importlib.util
import pathlib
import unittest

loader = importlib.machinery.SourceFileLoader("run", str(pathlib.Path(__file__).resolve().parent / "run"))
run = importlib.util.module_from_spec(importlib.util.spec_from_loader("run", loader))
loader.exec_module(run)

KEPT = {"toolchain": {"rustc": "1"}, "tolerance": 0.03, "instructions": {"next": 1000}}


def code(instructions, toolchain={"rustc": "1"}):
    return run.judged(KEPT, {"toolchain": toolchain, "instructions": instructions})[1]


class Judged(unittest.TestCase):
    def test_within_the_tolerance_or_below_is_fine(self):
        self.assertEqual([code({"next": cost}) for cost in (1000, 1029, 500)], [0, 0, 0])

    def test_more_than_the_tolerance_fails(self):
        self.assertEqual(code({"next": 1031}), 1)

    def test_a_call_without_a_figure_fails(self):
        self.assertEqual(code({"next": 1000, "page": 5}), 1)

    def test_another_toolchain_is_not_judged(self):
        self.assertEqual(code({"next": 9999}, {"rustc": "2"}), 2)

    def test_the_figures_that_are_checked_in_cover_every_call(self):
        kept = run.json.loads(run.FIGURES.read_text())
        self.assertEqual(set(kept["instructions"]), set(run.CALLS))
        self.assertTrue(all(cost > 0 for cost in kept["instructions"].values()) and kept["tolerance"] <= 0.05)


if __name__ == "__main__":
    unittest.main()
