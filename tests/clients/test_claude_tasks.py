"""Claude Code's own task tools on a directory that taskbus uses at the same time, and the mirror beside it.

The model is scripted, everything else is real: Claude Code, its task tools, its files and locks, taskbus. The model
stops at a turn, taskbus works on the directory or on the shared list, and the next turns show what Claude Code makes
of it.
"""

import json
import subprocess
import time
import unittest

from agents import ClaudeCode, npm
from model import Model
from place import BINARY, Place

LIST_ID = "shared-list"
TOOLS = "TaskCreate TaskUpdate TaskList TaskGet"
WAIT_S = 30


class WithTasks(ClaudeCode):
    """Claude Code with its task tools and no server."""

    def environment(self):
        return super().environment() | {"CLAUDE_CODE_TASK_LIST_ID": LIST_ID, "ENABLE_TOOL_SEARCH": "false"}

    def configure(self):
        pass

    def command(self, prompt):
        return [npm("claude"), "-p", prompt, "--allowedTools", TOOLS, "--output-format", "stream-json", "--verbose"]


class Beside(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.close)
        self.home = self.place.home / "claude"
        self.directory = self.home / ".claude" / "tasks" / LIST_ID

    def cli(self, *arguments):
        """Runs a command on the directory; its answer."""
        command = [BINARY, "--json", "--store", f"claude:{self.directory}", "--as", "amp", *map(str, arguments)]
        done = subprocess.run(command, env=self.place.env, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def file(self, task_id):
        return json.loads((self.directory / f"{task_id}.json").read_text())

    def tasks(self):
        return {int(path.stem): json.loads(path.read_text()) for path in self.directory.glob("[0-9]*.json")}

    def play(self, before, act, after):
        """Claude Code makes the calls `before`, then `act` runs, then the calls `after` are made; what it saw of each."""
        with Model(before + after, hold_at=len(before)) as model:
            process = WithTasks(model, self.home, self.place.server, {}).start("Work on the tasks.")
            try:
                self.assertTrue(model.held.wait(WAIT_S), "Claude Code makes its calls in time")
                act()
            finally:
                model.let_go.set()
                output, _ = process.communicate(timeout=120)
        self.assertEqual((process.returncode, model.errors), (0, []), output)
        for call, result in zip(before + after, model.last().results, strict=True):
            print(f"  {call[0]} {json.dumps(call[1])}\n    -> {result}")
        return model.last().results

    def until(self, what, is_so):
        end = time.monotonic() + WAIT_S
        while not is_so():
            self.assertLess(time.monotonic(), end, f"{what} takes too long")
            time.sleep(0.02)


class SharesItsDirectory(Beside):
    def test_its_tools_write_what_taskbus_reads_changes_and_hands_back(self):
        before = [
            ("TaskCreate", {"subject": "Write the store", "description": "All of it", "activeForm": "Writing"}),
            ("TaskCreate", {"subject": "Test it", "description": "", "metadata": {"area": "core", "deep": {"a": [1]}}}),
            ("TaskCreate", {"subject": "Throw away", "description": ""}),
            ("TaskUpdate", {"taskId": "2", "addBlockedBy": ["1"]}),
            ("TaskUpdate", {"taskId": "1", "status": "in_progress", "owner": "worker-1"}),
            ("TaskUpdate", {"taskId": "3", "status": "deleted"}),
        ]

        def act():
            listed = {task["id"]: task for task in self.cli("list")["tasks"]}
            self.assertEqual(
                [(task["subject"], task["status"]) for task in listed.values()],
                [("Write the store", "in_progress"), ("Test it", "pending")],
            )
            self.assertEqual((listed[1]["owner"], listed[2]["open_blockers"]), ("worker-1", [1]))
            shown = self.cli("show", 2)["task"]
            self.assertEqual((shown["metadata"], shown["blocked_by"]), ({"area": "core", "deep": {"a": [1]}}, [1]))
            self.assertEqual(self.cli("show", 1)["task"]["active_form"], "Writing")
            self.cli("done", 1, "--result", "written")
            self.cli("update", 2, "--owner", "amp", "--meta", "seen=yes")
            made = self.cli("add", "From taskbus", "--description", "Hello", "--blocked-by", 2, "--label", "rust")
            self.assertEqual(made["task"]["id"], 4, "a deleted number is not given again")

        after = [
            ("TaskList", {}),
            ("TaskGet", {"taskId": "4"}),
            ("TaskUpdate", {"taskId": "4", "status": "in_progress", "metadata": {"claude": True}}),
            ("TaskUpdate", {"taskId": "2", "status": "completed"}),
            ("TaskCreate", {"subject": "After", "description": ""}),
        ]
        results = self.play(before, act, after)
        listed = results[len(before)]
        for fact in ("#1 [completed] Write the store", "#2 [pending] Test it", "amp", "#4 [pending] From taskbus"):
            self.assertIn(fact, listed)
        self.assertIn("blocked by #2", listed)
        self.assertNotIn("blocked by #1", listed, "a completed blocker blocks no more")
        self.assertIn("From taskbus", results[len(before) + 1])
        self.assertIn("Hello", results[len(before) + 1])
        task = self.cli("show", 4)["task"]
        self.assertEqual((task["status"], task["labels"], task["metadata"]), ("in_progress", ["rust"], {"claude": True}))
        self.assertEqual(task["revision"], 2, "what Claude Code changed is a revision")
        self.assertEqual(self.cli("show", 1)["task"]["result"], "written")
        self.assertEqual(set(self.tasks()), {1, 2, 4, 5})
        self.assertEqual((self.file(2)["blocks"], self.file(4)["blockedBy"]), (["4"], ["2"]))
        self.assertEqual(self.cli("doctor")["ok"], True)

    def test_it_reads_a_directory_that_taskbus_made(self):
        self.directory.parent.mkdir(parents=True)
        self.cli("add", "First", "--description", "One")
        self.cli("add", "Second", "--blocked-by", 1, "--parent", 1)
        self.cli("claim", 1)
        mine = self.file(1)
        results = self.play(
            [("TaskList", {}), ("TaskUpdate", {"taskId": "1", "status": "completed"})],
            lambda: self.assertEqual(self.cli("ready")["tasks"][0]["id"], 2),
            [("TaskGet", {"taskId": "2"}), ("TaskList", {})],
        )
        self.assertIn("#1 [in_progress] First", results[0])
        self.assertIn("amp", results[0])
        self.assertIn("#2 [pending] Second", results[0])
        self.assertIn("[blocked by #1]", results[0])
        self.assertIn("Second", results[2])
        self.assertNotIn("[blocked by", results[3])
        now = self.file(1)
        self.assertEqual(now["metadata"], mine["metadata"], "what taskbus keeps survives")
        self.assertEqual(list(now), list(mine), "and so does the order of the keys")
        self.assertEqual(self.cli("show", 2)["task"]["parent"], 1)


class IsMirrored(Beside):
    def start_mirror(self):
        command = [BINARY, "--json", "--list", "demo", "mirror", f"claude:{self.directory}"]
        mirror = subprocess.Popen(command, env=self.place.env, stdout=subprocess.PIPE, text=True)

        def stop():
            mirror.terminate()
            said, _ = mirror.communicate(timeout=WAIT_S)
            print("".join(f"  mirror: {line}\n" for line in said.splitlines()))
            self.assertEqual(mirror.returncode, 0, said)
            return [json.loads(line) for line in said.splitlines()]

        return stop

    def shared(self, subject):
        found = [task for task in self.place.cli("list")["tasks"] if task["subject"] == subject]
        return found[0] if found else None

    def test_a_shared_list_and_its_tasks_stay_in_step(self):
        self.directory.parent.mkdir(parents=True)
        first, second = self.place.plan(
            {"key": "a", "subject": "Shared first", "description": "One"},
            {"key": "b", "subject": "Shared second", "blocked_by": ["a"]},
        )
        stop = self.start_mirror()
        self.until("the first files", lambda: len(self.tasks()) == 2 and self.file(2)["blockedBy"])
        before = [
            ("TaskList", {}),
            ("TaskUpdate", {"taskId": "1", "status": "in_progress", "owner": "claude-1"}),
            ("TaskCreate", {"subject": "Found on the way", "description": "By Claude Code"}),
        ]

        def act():
            self.until("the claim", lambda: self.place.task(first)["owner"] == "claude-1")
            self.until("the new task", lambda: self.shared("Found on the way"))
            self.place.cli("update", second, "--description", "Changed on the list")
            self.place.cli("--as", "amp", "claim", self.shared("Found on the way")["id"])
            self.until("the claim on the list", lambda: self.file(3).get("owner") == "amp")

        after = [
            ("TaskUpdate", {"taskId": "1", "status": "completed"}),
            ("TaskUpdate", {"taskId": "3", "status": "completed"}),
            ("TaskList", {}),
            ("TaskGet", {"taskId": "2"}),
        ]
        results = self.play(before, act, after)
        self.assertIn("#2 [pending] Shared second", results[0])
        self.assertIn("[blocked by #1]", results[0])
        self.assertIn("Changed on the list", results[-1])
        self.until("the completion", lambda: self.place.task(first)["status"] == "completed")
        found = self.shared("Found on the way")
        self.until("the list's word", lambda: self.file(3)["status"] == "in_progress")
        self.assertEqual((found["owner"], self.place.task(found["id"])["status"]), ("amp", "in_progress"))
        for path in self.directory.glob("[0-9]*.json"):
            path.unlink()
        self.place.cli("update", second, "--description", "Still here")
        told = stop()
        self.assertEqual(len(self.place.cli("list")["tasks"]), 3, "nothing was deleted on the list")
        self.assertIn("refused", [event["event"] for event in told])
        self.assertEqual([event["event"] for event in told][-1], "ended")


if __name__ == "__main__":
    unittest.main()
