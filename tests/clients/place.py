"""A place for one test: a private home with a store of its own, and the taskbus commands in it."""

import json
import os
import pathlib
import subprocess
import tempfile

BINARY = os.environ.get("TASKBUS_BIN", "")
LIST = "tasks/demo"


class Place:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="taskbus-")
        self.home = pathlib.Path(self.folder.name)
        self.project = self.home / "project"
        self.project.mkdir()
        self.env = {
            "HOME": str(self.home),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "TASKBUS_STORE": f"sqlite:{self.home / 'taskbus.db'}",
        }
        self.server = [BINARY, "mcp"]

    def close(self):
        self.folder.cleanup()

    def cli(self, *arguments, stdin=None, expect=0):
        """Runs a command with --json; its answer."""
        done = subprocess.run(
            [BINARY, "--json", "--list", "demo", *map(str, arguments)],
            cwd=self.project,
            env=self.env,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
        )
        if done.returncode != expect:
            raise AssertionError(f"taskbus {arguments} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout)

    def plan(self, *tasks):
        """Makes the list with these tasks; their ids, in order."""
        answer = self.cli("plan", "--create", "-", stdin=json.dumps(tasks))
        return [task["id"] for task in answer["tasks"]]

    def task(self, task_id):
        """One task as it is in the store now."""
        answer = self.cli("show", task_id, "--history")
        return answer.get("task", answer)
