"""The programs that are measured: whole processes, started as leanly as a script can, and servers that are spoken to
over their pipes. What a process prints goes to a file, so that nobody waits for a reader."""

import json
import os
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "peers"))

from mcp import Broken, Server  # noqa: E402

DETAILS = "What there is to say about this task, in a sentence or two. " * 3
READ_ONLY, WRITE = os.O_RDONLY, os.O_WRONLY | os.O_CREAT | os.O_TRUNC
CHUNK = 1 << 20


def spawned(command, env, place, name="out", codes=(0,)):
    """Runs a whole process; how long it took, from before its start until it was gone."""
    command = [str(part) for part in command]
    out, errors = str(place / f"{name}.txt"), str(place / f"{name}.err")
    files = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, READ_ONLY, 0)]
    files += [(os.POSIX_SPAWN_OPEN, fd, path, WRITE, 0o600) for fd, path in ((1, out), (2, errors))]
    began = time.perf_counter()
    _, status = os.waitpid(os.posix_spawn(command[0], command, env, file_actions=files), 0)
    took = time.perf_counter() - began
    if os.waitstatus_to_exitcode(status) not in codes:
        said = pathlib.Path(errors).read_text(errors="replace").strip() or printed(place, name)
        raise Broken(f"{' '.join(command)[:80]} ended with {os.waitstatus_to_exitcode(status)}: {said[:200]}")
    return took


def printed(place, name="out"):
    """What the last process of that name has printed."""
    return (place / f"{name}.txt").read_text(errors="replace").strip()


class Store:
    """A store of taskbus in a directory of its own, and its commands."""

    def __init__(self, binary, place, **settings):
        place.mkdir(parents=True)
        self.binary, self.place = str(binary), place
        self.env = {"HOME": str(place), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TASKBUS_LIST": "demo"}
        # The brake on a runaway agent is far below what a loop can do.
        self.env |= {"TASKBUS_STORE": f"sqlite:{place / 'taskbus.db'}", "TASKBUS_SEND_MESSAGES_PER_SECOND": "10000"}
        self.env |= settings

    def run(self, *arguments, worker="zed", codes=(0,), **settings):
        """Runs a command; how long it took."""
        env = self.env | {"TASKBUS_AS": worker} | settings
        return spawned([self.binary, *arguments], env, self.place, worker, codes)

    def said(self, worker="zed"):
        """What the last command of that worker has answered."""
        return json.loads(printed(self.place, worker))

    def fill(self, count):
        """Makes the list, with so many ready tasks."""
        tasks = [{"subject": f"task {n}", "description": DETAILS} for n in range(count)]
        path = self.place / "plan.json"
        for start in range(0, count, 1000):
            path.write_text(json.dumps(tasks[start : start + 1000]))
            self.run("plan", *([] if start else ["--create"]), path)

    def server(self, name):
        """A server that has greeted, under a name of its own."""
        server = Talker([self.binary, "mcp"], self.place, self.env)
        server.tool("register", {"name": name})
        return server


class Talker(Server):
    """A server that is also spoken to in lines made beforehand, so that little but the server is timed."""

    def line_of(self, tool, arguments):
        """A call as a line; its answer has no other number."""
        self.number += 1
        call = {"jsonrpc": "2.0", "id": self.number, "method": "tools/call"}
        return json.dumps(call | {"params": {"name": tool, "arguments": arguments}}).encode() + b"\n"

    def exchange(self, line):
        """Sends a line and reads the one that answers it; how long that took, and what came."""
        came = b""
        began = time.perf_counter()
        os.write(self.process.stdin.fileno(), line)
        while not came.endswith(b"\n"):
            chunk = os.read(self.process.stdout.fileno(), CHUNK)
            if not chunk:
                raise Broken("the server has ended")
            came += chunk
        return time.perf_counter() - began, came

    def facts(self, tool, arguments):
        """Calls a tool; its facts."""
        result = json.loads(self.exchange(self.line_of(tool, arguments))[1])["result"]
        if result.get("isError"):
            raise Broken(f"{tool}: {result['content'][0]['text'][:200]}")
        return result["structuredContent"]

    def memory_kib(self):
        """Resident memory, and the part of it that is nobody else's or this one's share of it."""
        rollup = dict(
            line.split(":", 1)
            for line in pathlib.Path(f"/proc/{self.process.pid}/smaps_rollup").read_text().splitlines()[1:]
        )
        return [int(rollup[key].split()[0]) for key in ("Rss", "Pss")]

    def cpu_s(self):
        """The processor time of the process so far, ended threads included. Linux counts it under a clock whose number
        is made from the process's (CPUCLOCK_SCHED in its sources), to the nanosecond."""
        return time.clock_gettime((~self.process.pid << 3) | 2)
