"""The peers, each as a subject of the same work: which command or tool stands for a step, and which step it has none
for. What is said here of a peer is what its own help and its answers say. A list is filled by the peer itself, or by
multiplying what it has written, and then it must show the last task."""

import json
import re
import uuid

from mcp import Broken
from subject import DETAILS, PAGE, McpSubject, Subject, expect, title

NO_TAKE = "no verb that takes the next ready task"
# What it would ask of the network is switched off, and every tool is on.
TASK_MASTER = {"CI": "1", "TASKMASTER_SKIP_AUTO_UPDATE": "1", "TASK_MASTER_TOOLS": "all"}


def found(pattern, text):
    """The first group of a pattern in an answer."""
    match = re.search(pattern, text)
    if not match:
        raise Broken(f"no `{pattern}` in the answer: {' '.join(text.split())[:120]}")
    return match[1]


class Taskwarrior(Subject):
    name, surface = "taskwarrior", "cli"
    lacks = {"next": NO_TAKE}
    notes = {"claim": "`start`, which records no owner"}

    def __init__(self, program, place, worker="zed"):
        super().__init__(program, place, worker)
        self.env |= {"TASKRC": str(place / "taskrc"), "TASKDATA": str(place / "data")}

    def open(self):
        (self.place / "data").mkdir()
        (self.place / "taskrc").write_text("confirmation=off\nnews.version=9\nverbose=new-uuid\n")

    def task(self, *arguments):
        return self.run(self.program_for("task"), *arguments)

    def fill(self, count):
        tasks = [{"description": title(n), "annotations": []} for n in range(count)]
        (self.place / "tasks.json").write_text(json.dumps(tasks))
        self.task("import", self.place / "tasks.json")

    def add(self, number):
        return found(r"Created task ([0-9a-f-]+)", self.task("add", title(number)))

    def list(self):
        expect("task ", self.task(f"limit:{PAGE}", "list"))

    def ready(self):
        expect("task ", self.task("+READY", f"limit:{PAGE}", "list"))

    def claim(self, task):
        self.task(task, "start")

    def complete(self, task):
        self.task(task, "done")


def backlog_project(subject):
    """A Backlog.md project, without git, which it would read otherwise."""
    command = (subject.program_for("backlog"), "init", "demo", "--defaults", "--integration-mode", "none", "--no-git")
    subject.run(*command)


def backlog_files(subject, count):
    """The file of one task, which Backlog.md writes, as many times as wanted."""
    subject.run(subject.program_for("backlog"), "task", "create", title(0), "-d", DETAILS, "--plain")
    folder = subject.place / "backlog/tasks"
    (first,) = folder.glob("*.md")
    text = first.read_text()
    for number in range(1, count):
        own = text.replace("TASK-1\n", f"TASK-{number + 1}\n").replace(title(0), title(number))
        own = own.replace("ordinal: 1000\n", f"ordinal: {(number + 1) * 1000}\n")
        name = first.name.replace("task-1 ", f"task-{number + 1} ").replace("task-0", f"task-{number}")
        (folder / name).write_text(own)
    expect(title(count - 1), subject.run(subject.program_for("backlog"), "task", f"TASK-{count}", "--plain"))


class Backlog(Subject):
    name, surface = "backlog.md", "cli"
    lacks = {"next": NO_TAKE}
    notes = {"claim": "`task edit` with status and assignee, which nothing guards"}

    def open(self):
        backlog_project(self)

    def fill(self, count):
        backlog_files(self, count)

    def task(self, *arguments):
        return self.run(self.program_for("backlog"), "task", *arguments, "--plain")

    def add(self, number):
        return found(r"Task (TASK-\d+)", self.task("create", title(number), "-d", DETAILS))

    def list(self):
        expect("task ", self.task("list", "--limit", PAGE))

    def ready(self):
        expect("task ", self.task("list", "--ready", "--limit", PAGE))

    def claim(self, task):
        expect("In Progress", self.task("edit", task, "-s", "In Progress", "-a", f"@{self.worker}"))

    def complete(self, task):
        expect("Done", self.task("edit", task, "-s", "Done"))


class BacklogMcp(McpSubject):
    name = "backlog.md"
    lacks, notes = {"next": NO_TAKE}, {"claim": "`task_edit` with status and assignee, which nothing guards"}

    def command(self):
        return [self.program_for("backlog"), "mcp", "start"]

    def open(self):
        backlog_project(self)
        self.start()

    def fill(self, count):
        self.close()
        backlog_files(self, count)
        self.start()

    def add(self, number):
        return found(r"Task (TASK-\d+)", self.call("task_create", title=title(number), description=DETAILS))

    def list(self):
        expect("task ", self.call("task_list", limit=PAGE))

    def ready(self):
        expect("task ", self.call("task_list", ready=True, limit=PAGE))

    def claim(self, task):
        expect("In Progress", self.call("task_edit", id=task, status="In Progress", assignee=[f"@{self.worker}"]))

    def complete(self, task):
        expect("Done", self.call("task_edit", id=task, status="Done"))


def task_master_project(subject):
    """A Task Master project, which tells nobody of what is done in it."""
    subject.run(subject.program_for("task-master"), "init", "-y", "--name=demo", "--no-git", "--no-aliases")
    config = subject.place / ".taskmaster/config.json"
    config.write_text(config.read_text().replace('"anonymousTelemetry": true', '"anonymousTelemetry": false'))
    task_master_tasks(subject, 0)


def task_master_tasks(subject, count):
    """Its one file, in the form that it writes itself."""
    empty = {"details": "", "testStrategy": "", "dependencies": [], "subtasks": []}
    fixed = empty | {"description": DETAILS, "status": "pending", "priority": "medium"}
    tasks = [{"id": n + 1, "title": title(n)} | fixed for n in range(count)]
    (subject.place / ".taskmaster/tasks/tasks.json").write_text(json.dumps({"master": {"tasks": tasks}}, indent=2))


class TaskMaster(Subject):
    name, surface, settings = "task-master-ai", "cli", TASK_MASTER
    lacks = {"next": "`next` shows a task and does not take it"}
    notes = {"claim": "`set-status`, which records no owner", "list": "whole list: it has no pages"}
    notes |= {"ready": "whole list: it has no pages"}

    def open(self):
        task_master_project(self)

    def fill(self, count):
        task_master_tasks(self, count)
        expect(title(count - 1), self.task("show", count))

    def task(self, *arguments):
        return self.run(self.program_for("task-master"), *arguments)

    def add(self, number):
        return found(
            r"Task (\d+) Created", self.task("add-task", f"--title={title(number)}", f"--description={DETAILS}")
        )

    def list(self):
        expect("task ", self.task("list", "--json"))

    def ready(self):
        expect("task ", self.task("list", "--ready", "--json"))

    def claim(self, task):
        expect("Successfully updated", self.task("set-status", f"--id={task}", "--status=in-progress"))

    def complete(self, task):
        expect("Successfully updated", self.task("set-status", f"--id={task}", "--status=done"))


class TaskMasterMcp(McpSubject):
    name, settings = "task-master-ai", TASK_MASTER
    lacks = {"ready": "no tool that lists what is ready", "next": "`next_task` shows a task and does not take it"}
    notes = {"claim": "`set_task_status`, which records no owner", "list": "whole list: it has no pages"}

    def command(self):
        return [self.program_for("task-master-mcp")]

    def open(self):
        task_master_project(self)
        self.start()

    def fill(self, count):
        task_master_tasks(self, count)
        expect(title(count - 1), self.task("get_task", id=str(count)))

    def task(self, tool, **arguments):
        return self.call(tool, projectRoot=str(self.place), **arguments)

    def add(self, number):
        return found(r'"taskId": (\d+)', self.task("add_task", title=title(number), description=DETAILS))

    def list(self):
        expect("task ", self.task("get_tasks"))

    def claim(self, task):
        expect("Successfully updated 1 task", self.task("set_task_status", id=task, status="in-progress"))

    def complete(self, task):
        expect("Successfully updated 1 task", self.task("set_task_status", id=task, status="done"))


class Shrimp(McpSubject):
    name = "mcp-shrimp-task-manager"
    lacks = {"ready": "no tool that lists what is ready", "next": NO_TAKE}
    notes = {"add": "`split_tasks` with one task", "claim": "`execute_task`, which records no owner"}
    notes |= {"complete": "`verify_task` with a score of 95", "list": "whole list: it has no pages"}

    def __init__(self, program, place, worker="zed"):
        super().__init__(program, place, worker)
        self.env |= {"DATA_DIR": str(place / "data"), "TEMPLATES_USE": "en", "ENABLE_GUI": "false"}

    def command(self):
        return [self.program_for("mcp-shrimp-task-manager")]

    def open(self):
        self.start()

    def add(self, number):
        task = {"name": title(number), "description": DETAILS, "implementationGuide": "Do it.", "notes": ""}
        raw = json.dumps([task | {"dependencies": []}])
        return found(r"\*\*ID:\*\* `([0-9a-f-]+)`", self.call("split_tasks", updateMode="append", tasksRaw=raw))

    def fill(self, count):
        self.add(0)
        path = self.place / "data/tasks.json"
        kept = json.loads(path.read_text())
        first = kept["tasks"][0]
        kept["tasks"] += [first | {"id": str(uuid.uuid4()), "name": title(n)} for n in range(1, count)]
        path.write_text(json.dumps(kept, indent=2))
        expect(title(count - 1), self.call("query_task", query=title(count - 1)))

    def list(self):
        expect("task ", self.call("list_tasks", status="all"))

    def claim(self, task):
        expect(task, self.call("execute_task", taskId=task))

    def complete(self, task):
        expect("completed", self.call("verify_task", taskId=task, summary="It was done as asked. " * 3, score=95))


class Corvee(Subject):
    name, surface = "corvee", "cli"
    lacks = {"next": NO_TAKE}

    def __init__(self, program, place, worker="zed"):
        super().__init__(program, place, worker)
        self.env |= {"CORVEE_ACTOR": f"agent:{worker}", "CORVEE_SESSION_ID": worker}

    def corvee(self, *arguments):
        return self.run(self.program_for("corvee"), *arguments)

    def open(self):
        self.corvee("init")

    def fill(self, count):
        tasks = [{"title": title(n), "description": DETAILS} for n in range(count)]
        (self.place / "tasks.json").write_text(json.dumps(tasks))
        self.corvee("task", "add", "--from-file", self.place / "tasks.json", "-o", "json")

    def add(self, number):
        answer = self.corvee("task", "add", title(number), "--description", DETAILS, "-o", "json")
        return json.loads(answer)[0]["id"]

    def list(self):
        expect("task ", self.corvee("task", "list", "-n", PAGE, "-o", "json"))

    def ready(self):
        expect("task ", self.corvee("task", "ready", "-n", PAGE, "-o", "json"))

    def claim(self, task):
        expect("in_progress", self.corvee("task", "start", task, "-o", "json"))

    def complete(self, task):
        expect('"done"', self.corvee("task", "update", task, "--state", "done", "-o", "json"))


class CorveeMcp(McpSubject):
    name = "corvee"
    lacks = {"list": "no tool that lists tasks", "next": NO_TAKE}
    notes = {"ready": "`brief`, which shows five"}

    def __init__(self, program, place, worker="zed"):
        super().__init__(program, place, worker)
        self.behind = Corvee(program, place, worker)
        self.env = self.behind.env

    def command(self):
        return [self.program_for("corvee"), "mcp", "serve"]

    def open(self):
        self.behind.open()
        self.start()

    def fill(self, count):
        self.behind.fill(count)

    def add(self, number):
        return found(r"(TASK-\d+)", self.call("task_add", title=title(number), description=DETAILS))

    def ready(self):
        expect("task ", self.call("brief"))

    def claim(self, task):
        expect("in_progress", self.call("task_start", ref=task))

    def complete(self, task):
        expect("done", self.call("task_done", ref=task))


class Naxe(McpSubject):
    name = "naxe"
    notes = {"list": "`get_job_status`, the whole list: it has no pages", "ready": "all that is ready: it has no pages"}
    notes |= {"add": "`add_tasks` with one task"}

    def command(self):
        return [self.program_for("naxe")]

    def open(self):
        self.start()
        self.job = json.loads(self.call("create_job", name="demo"))["job_id"]

    def join(self, first):
        super().join(first)
        self.job = first.job

    def fill(self, count):
        for start in range(0, count, 1000):
            numbers = range(start, min(count, start + 1000))
            self.call("add_tasks", job_id=self.job, tasks=[{"name": title(n), "description": DETAILS} for n in numbers])

    def add(self, number):
        task = {"name": title(number), "description": DETAILS}
        return json.loads(self.call("add_tasks", job_id=self.job, tasks=[task]))["task_ids"][0]

    def list(self):
        expect("task ", self.call("get_job_status", job_id=self.job))

    def ready(self):
        expect("task ", self.call("get_next_actions", job_id=self.job))

    def claim(self, task):
        expect("in_progress", self.call("claim_task", task_id=task, agent_id=self.worker))

    def complete(self, task):
        expect('"completed"', self.call("complete_task", task_id=task, agent_id=self.worker))

    def next(self):
        task = json.loads(self.call("claim_next_action", job_id=self.job, agent_id=self.worker)).get("task")
        return task and task["id"]


class Agentbus(Subject):
    """An event log with locks, not a task list: an event stands for a task, a lock on a name for its claim."""

    name, surface = "okf-agentbus", "cli"
    lacks = {"ready": "events have no blockers", "next": NO_TAKE}
    notes = {"add": "`publish` of an event", "list": "`poll`", "claim": "`lock acquire`", "complete": "`lock release`"}

    def agentbus(self, *arguments):
        return self.run(self.program_for("agentbus"), *arguments, "--workspace", self.place)

    def event(self, number):
        return {"summary": f"{title(number)} {uuid.uuid4()} {DETAILS}", "from": self.worker, "to": "amp"}

    def fill(self, count):
        lines = [json.dumps({"topic": "okf/handoff", "payload": self.event(n)}) for n in range(count)]
        (self.place / "events.jsonl").write_text("\n".join(lines) + "\n")
        self.agentbus("publish-batch", "--producer-id", self.worker, "--file", self.place / "events.jsonl")

    def add(self, number):
        payload = json.dumps(self.event(number))
        printed = self.agentbus("publish", "--producer-id", self.worker, "--topic", "okf/handoff", "--payload", payload)
        return self.resource(found(r'"event_id": (\d+)', printed))

    def resource(self, event):
        return str(self.place / f"task-{event}")

    def list(self):
        expect("task ", self.agentbus("poll", "--topic", "okf/handoff", "--limit", PAGE))

    def claim(self, task):
        expect('"acquired": true', self.agentbus("lock", "acquire", "--resource", task, "--owner-id", self.worker))

    def complete(self, task):
        expect('"released": true', self.agentbus("lock", "release", "--resource", task, "--owner-id", self.worker))


class AgentbusMcp(McpSubject):
    name, lacks = "okf-agentbus", Agentbus.lacks
    notes = {"add": "`agentbus_publish` of an event", "list": "`agentbus_poll`", "claim": "`agentbus_lock_acquire`"}
    notes |= {"complete": "`agentbus_lock_release`"}

    def __init__(self, program, place, worker="zed"):
        super().__init__(program, place, worker)
        self.behind, self.leases = Agentbus(program, place, worker), {}
        self.env |= {"AGENTBUS_PRODUCER_ID": worker}

    def command(self):
        return [self.program_for("agentbus"), "-q", "serve", "--workspace", str(self.place)]

    def open(self):
        self.start()
        token = self.place / ".agentbus/token"
        self.token = token.read_text().strip() if token.exists() else None

    def join(self, first):
        super().join(first)
        self.token = first.token

    def fill(self, count):
        self.behind.fill(count)

    def add(self, number):
        event = {"topic": "okf/handoff", "payload": self.behind.event(number), "producer_id": self.worker}
        answer = self.call("agentbus_publish", auth_token=self.token, **event)
        return self.behind.resource(found(r'"event_id": (\d+)', answer))

    def list(self):
        expect("task ", self.call("agentbus_poll", topic="okf/handoff", limit=PAGE))

    def claim(self, task):
        answer = self.call("agentbus_lock_acquire", resource=task, owner_id=self.worker, auth_token=self.token)
        expect('"acquired": true', answer)
        self.leases[task] = found(r'"lease_id": "([^"]+)"', answer)

    def complete(self, task):
        lease = {"lease_id": self.leases.pop(task), "auth_token": self.token}
        expect('"released": true', self.call("agentbus_lock_release", resource=task, owner_id=self.worker, **lease))


SUBJECTS = {
    "taskwarrior": [Taskwarrior],
    "backlog.md": [Backlog, BacklogMcp],
    "task-master-ai": [TaskMaster, TaskMasterMcp],
    "mcp-shrimp-task-manager": [Shrimp],
    "corvee": [Corvee, CorveeMcp],
    "naxe": [Naxe],
    "okf-agentbus": [Agentbus, AgentbusMcp],
}
ABSENT = {
    ("taskwarrior", "mcp"): "no MCP server",
    ("mcp-shrimp-task-manager", "cli"): "no command line for tasks",
    ("naxe", "cli"): "no command line for tasks",
}
