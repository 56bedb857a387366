"""What is measured: a subject does the same work through one surface, and says which part of it it cannot do.

A subject of the command line starts a process for each step, an MCP subject calls a tool of a server that runs.
Every step checks its answer, so that a refusal is never taken for a fast success, and leaves in `took` how long the
process or the call lasted."""

import json
import subprocess
import time

from mcp import Broken, Server

STEPS = ("start", "add", "list", "ready", "claim", "complete", "next")
PAGE = 50
DETAILS = "What there is to say about this task, in a sentence or two. " * 3
DEADLINE_S = 120.0


def title(number):
    return f"task {number}"


class Subject:
    """The same work on one program. Steps that are in `lacks` are not asked of it; `notes` says how a step is done."""

    name = ""
    surface = ""
    lacks = {}
    notes = {}
    settings = {}

    def __init__(self, program, place, worker="zed"):
        self.program, self.place, self.worker, self.took = program, place, worker, 0.0
        home = place / "home"
        home.mkdir(parents=True, exist_ok=True)
        self.env = {"HOME": str(home), "PATH": f"{program.commands}:{program.path}/usr/bin:/bin", "LANG": "C.UTF-8"}
        self.env |= self.settings

    def open(self):
        """Makes an empty list."""

    def fill(self, count):
        """Puts so many open tasks into it at once; not measured."""
        raise NotImplementedError

    def join(self, first):
        """Works on the list that another worker has made."""

    def close(self):
        """Ends what runs."""

    def program_for(self, command):
        return str(self.program.commands / command)

    def run(self, *command, stdin=None, codes=(0,)):
        """Runs one command whole; what it prints. Times it."""
        began = time.perf_counter()
        try:
            done = subprocess.run(
                [str(part) for part in command],
                cwd=self.place,
                env=self.env,
                input=stdin if stdin is None else stdin.encode(),
                stdin=subprocess.DEVNULL if stdin is None else None,
                capture_output=True,
                timeout=DEADLINE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Broken(f"no end within {DEADLINE_S:.0f} s") from None
        self.took = time.perf_counter() - began
        printed = done.stdout.decode(errors="replace")
        if done.returncode not in codes:
            last = (done.stderr.decode(errors="replace").strip() or printed.strip()).splitlines()
            raise Broken(f"ended with {done.returncode}: {last[-1][:120] if last else ''}")
        return printed


class McpSubject(Subject):
    """One that talks to a server."""

    surface = "mcp"
    server = None

    def command(self):
        """What starts the server."""
        raise NotImplementedError

    def start(self):
        """Starts it, in place of the one that runs."""
        self.close()
        self.server = Server(self.command(), self.place, self.env, DEADLINE_S)
        self.took = self.server.took

    def join(self, first):
        self.start()

    def close(self):
        if self.server:
            self.server.close()
            self.server = None

    def call(self, tool, **arguments):
        text = self.server.tool(tool, arguments)
        self.took = self.server.took
        return text


class Taskbus(Subject):
    """The command line of taskbus."""

    name, surface = "taskbus", "cli"

    def __init__(self, program, place, worker="zed"):
        super().__init__(program, place, worker)
        # The brake on a runaway agent is far below what a loop can do.
        self.env |= {"TASKBUS_STORE": f"sqlite:{place / 'taskbus.db'}", "TASKBUS_SEND_MESSAGES_PER_SECOND": "10000"}
        self.env |= {"TASKBUS_LIST": "demo", "TASKBUS_AS": worker}
        self.binary = self.program_for("taskbus")

    def json(self, *arguments, stdin=None):
        return json.loads(self.run(self.binary, "--json", *arguments, stdin=stdin))

    def open(self):
        self.json("plan", "--create", "-", stdin=json.dumps([{"subject": title(0)}]))
        self.json("rm", 1)

    def fill(self, count):
        for start in range(0, count, 1000):
            numbers = range(start, min(count, start + 1000))
            self.json("plan", "-", stdin=json.dumps([{"subject": title(n), "description": DETAILS} for n in numbers]))

    def add(self, number):
        return self.json("add", title(number), "--description", DETAILS)["task"]["id"]

    def list(self):
        expect("task ", self.run(self.binary, "list", "--limit", PAGE))

    def ready(self):
        expect("task ", self.run(self.binary, "ready", "--limit", PAGE))

    def claim(self, task):
        expect(self.worker, self.json("claim", task)["task"]["owner"])

    def complete(self, task):
        expect("completed", self.json("done", task)["task"]["status"])

    def next(self):
        task = self.json("next").get("task")
        return task and task["id"]


class TaskbusMcp(McpSubject):
    """The MCP server of taskbus."""

    name = "taskbus"

    def __init__(self, program, place, worker="zed"):
        super().__init__(program, place, worker)
        self.behind = Taskbus(program, place, worker)
        self.env = self.behind.env

    def command(self):
        return [self.program_for("taskbus"), "mcp"]

    def open(self):
        self.behind.open()
        self.start()

    def start(self):
        self.env = {key: value for key, value in self.env.items() if key != "TASKBUS_AS"}
        super().start()
        took = self.took
        self.worker = json.loads(self.call("register", name=self.worker))["as"]
        self.took = took

    def fill(self, count):
        self.behind.fill(count)

    def add(self, number):
        return json.loads(self.call("task_create", subject=title(number), description=DETAILS))["id"]

    def list(self):
        expect("task ", self.call("task_list", limit=PAGE))

    def ready(self):
        expect("task ", self.call("task_list", view="ready", limit=PAGE))

    def claim(self, task):
        expect(self.worker, json.loads(self.call("task_claim", task_id=task))["task"]["owner"])

    def complete(self, task):
        expect("completed", self.call("task_update", task_id=task, status="completed"))

    def next(self):
        task = json.loads(self.call("task_next")).get("task")
        return task and task["id"]


def expect(wanted, answer):
    """Fails unless the answer says what it should."""
    if wanted not in answer:
        raise Broken(f"`{wanted}` is missing from the answer: {' '.join(answer.split())[:120]}")
