"""What is measured, one function for each group of bars."""

import concurrent.futures
import os
import select
import shutil
import statistics
import time

from bars import bar, median_ms, missing, times, versus
from programs import Broken, Store, Talker, printed, spawned

LIST = 10_000
PAGE = 50
CLAIMS = 200
WORKERS = 4
WAIT_SECONDS = 50
MIB = 1024 * 1024


def commands(run):
    """Whole processes of the command line against one of the same binary that only says its version, and a flush where
    they flush; told beside that: against a program that does nothing."""
    store = Store(run.binary, run.place())
    store.fill(LIST)
    took = {}
    for number in range(run.rounds):
        task = str(1 + number)
        turns = {
            "empty": lambda: spawned([run.empty], store.env, store.place),
            "version": lambda: store.run("--version"),
            "claim": lambda: store.run("claim", task),
            "relaxed": lambda: store.run("claim", str(int(task) + run.rounds), TASKBUS_SQLITE_SYNC="relaxed"),
            "list": lambda: store.run("list", "--limit", str(PAGE)),
            "flush": lambda: flush(store.place / "flushed"),
        }
        for name, turn in turns.items():
            took.setdefault(name, []).append(turn())
    version, empty = took["version"], took["empty"]
    flushed = [one + other for one, other in zip(version, took["flush"])]
    judged = [("claim_relaxed", "relaxed", version), ("claim", "claim", flushed), ("list_50_of_10k", "list", version)]
    told = [("version", "version"), ("claim_relaxed", "relaxed"), ("list_50_of_10k", "list")]
    return [
        *(bar(f"{name}_process", times(took[turn], base), 2.5, words=versus(took[turn], base)) for name, turn, base in judged),
        *(bar(f"{name}_to_empty_program", times(took[turn], empty), words=versus(took[turn], empty)) for name, turn in told),
    ]


def flush(path):
    """How long a bare write and flush takes."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    began = time.perf_counter()
    os.write(file, bytes(4096))
    os.fdatasync(file)
    took = time.perf_counter() - began
    os.close(file)
    return took


def servers(run):
    """One server against the least that one can be on the same SDK."""
    store = Store(run.binary, run.place())
    store.fill(PAGE)
    least = lambda: Talker([run.two_tools], store.place, store.env)  # noqa: E731
    starts = {"ours": [], "theirs": []}
    for _ in range(run.rounds):
        for name, start in (("ours", lambda: Talker([store.binary, "mcp"], store.place, store.env)), ("theirs", least)):
            server = start()
            starts[name].append(server.took)
            server.close()
    ours, theirs = store.server("zed"), least()
    try:
        # Both answers are of the same length.
        answer = ours.tool("task_get", {"task_id": "1"})
        theirs.tool("write", {"note": answer})
        for server in (ours, theirs):
            server.ask("tools/list", {})
        reads = {"ours": [], "theirs": []}
        for _ in range(20 * run.rounds):
            reads["ours"].append(ours.exchange(ours.line_of("task_get", {"task_id": "1"}))[0])
            reads["theirs"].append(theirs.exchange(theirs.line_of("read", {}))[0])
        (rss, pss), (least_rss, least_pss) = ours.memory_kib(), theirs.memory_kib()
    finally:
        ours.close()
        theirs.close()
    allowed = 2 * median_ms(starts["theirs"]) + 5
    return [
        bar("mcp_initialize", median_ms(starts["ours"]), round(allowed, 2), "ms", versus(*starts.values())),
        bar("mcp_read_to_two_tools", times(*reads.values()), 3, words=versus(*reads.values())),
        bar("mcp_idle_rss_to_two_tools", rss / least_rss, 3, words=f"{rss:,} KiB / {least_rss:,} KiB"),
        bar("mcp_idle_pss_to_two_tools", pss / least_pss, words=f"{pss:,} KiB / {least_pss:,} KiB"),
    ]


def claims(run):
    """Several processes take ready tasks until there are none: by commands, by servers, and by the shell of SQLite."""
    names = ["claims_by_commands_to_sqlite3", "claims_by_mcp_to_sqlite3"]
    took, twice = {"shell": [], "commands": [], "mcp": []}, 0
    for _ in range(run.drains):
        turns = {"commands": by_commands, "mcp": by_mcp} | ({"shell": by_shell} if run.sqlite3 else {})
        for name, turn in turns.items():
            seconds, taken = turn(run)
            took[name].append(seconds)
            twice += len(taken) - len(set(taken))
            if set(taken) != set(range(1, CLAIMS + 1)):
                raise Broken(f"{name}: {len(set(taken))} of {CLAIMS} tasks were taken")
    ours = [bar("claims_twice", twice, 0, "tasks", f"{run.drains} × {CLAIMS} by commands, servers and the shell each")]
    if not run.sqlite3:
        return [missing(name, "sqlite3 is not there: on Debian, apt-get install sqlite3") for name in names] + ours
    shell = took["shell"]
    return [
        bar(names[0], times(took["commands"], shell), 3, words=versus(took["commands"], shell)),
        bar(names[1], times(took["mcp"], shell), 1, words=versus(took["mcp"], shell)),
        *ours,
    ]


def drained(takers):
    """All of them until nothing is left; how long it took, and what was taken."""

    def all_of(take):
        taken = []
        while (task := take()) is not None:
            taken.append(int(task))
        return taken

    with concurrent.futures.ThreadPoolExecutor(len(takers)) as pool:
        began = time.perf_counter()
        taken = [task for tasks in pool.map(all_of, takers) for task in tasks]
        return time.perf_counter() - began, taken


def by_commands(run):
    store = Store(run.binary, run.place())
    store.fill(CLAIMS)

    def taker(worker):
        def take():
            store.run("--json", "next", worker=worker)
            task = store.said(worker).get("task")
            return task and task["id"]

        return take

    return drained([taker(f"worker-{n}") for n in range(WORKERS)])


def by_mcp(run):
    store = Store(run.binary, run.place())
    store.fill(CLAIMS)
    workers = [store.server(f"worker-{n}") for n in range(WORKERS)]

    def taker(server):
        def take():
            task = server.facts("task_next", {}).get("task")
            return task and task["id"]

        return take

    try:
        return drained([taker(server) for server in workers])
    finally:
        for server in workers:
            server.close()


SHELL_TABLE = """
PRAGMA journal_mode = WAL;
CREATE TABLE task (id INTEGER PRIMARY KEY, status TEXT NOT NULL, owner TEXT, fence INTEGER NOT NULL, text TEXT NOT NULL);
CREATE INDEX ready ON task (id) WHERE status = 'pending';
WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < {tasks})
INSERT INTO task SELECT id, 'pending', NULL, 0, 'task ' || id FROM n;
"""
SHELL_CLAIM = """
PRAGMA synchronous = FULL;
BEGIN IMMEDIATE;
UPDATE task SET status = 'in_progress', owner = '{owner}', fence = fence + 1
WHERE id = (SELECT id FROM task WHERE status = 'pending' ORDER BY id LIMIT 1) RETURNING id;
COMMIT;
"""


def by_shell(run):
    place = run.place()
    place.mkdir()
    command = [run.sqlite3, "-batch", "-init", os.devnull, "-cmd", ".timeout 10000", place / "list.db"]
    env = {"HOME": str(place), "PATH": os.environ["PATH"]}
    spawned([*command, SHELL_TABLE.format(tasks=CLAIMS)], env, place)

    def taker(worker):
        def take():
            spawned([*command, SHELL_CLAIM.format(owner=worker)], env, place, worker)
            return printed(place, worker) or None

        return take

    return drained([taker(f"worker-{n}") for n in range(WORKERS)])


def idle(run):
    """Many servers on one store: what they hold, what they use while nobody writes, and how soon all are awake."""
    store = Store(run.binary, run.place())
    store.fill(PAGE)
    crowd, count = [], run.idle_servers
    try:
        for number in range(count):
            crowd.append(store.server(f"worker-{number}"))
            crowd[-1].tool("task_list", {"limit": PAGE})
        sender = store.server("sender")
        crowd.append(sender)
        held = [server.memory_kib() for server in crowd[:-1]]
        rss, pss = (sum(kib) / 1024 for kib in zip(*held))
        waiting_s = min(run.idle_seconds, WAIT_SECONDS - 10)
        shares = [share(crowd[:-1], run.idle_seconds)]
        for server in crowd[:-1]:
            begin_to_wait(server)
        shares.append(share(crowd[:-1], waiting_s))
        woken = wake(sender, crowd[:-1])
    finally:
        for server in crowd:
            server.close()
    each = f"{count} servers, {rss / count:.1f} MiB each"
    return [
        bar("idle_rss", rss, unit="MiB", words=each),
        bar("idle_pss", pss, unit="MiB", words=f"{count} servers, {pss / count:.1f} MiB each"),
        bar("idle_cpu_each", shares[0], 0.01, "%", f"of a core, {run.idle_seconds} s, {count} servers without a call"),
        bar("waiting_cpu_each", shares[1], 0.01, "%", f"of a core, {waiting_s} s, {count} servers with a call that waits"),
        bar("woken_last", woken[-1] * 1000, 1000, "ms", f"{count} servers, half of them in {median_ms(woken):.1f} ms"),
    ]


def share(crowd, seconds):
    """The processor time of each while nothing happens, in per cent of a core."""
    before, began = [server.cpu_s() for server in crowd], time.monotonic()
    # Nothing happens, and it is the time in which nothing happens that is measured.
    time.sleep(seconds)
    passed = time.monotonic() - began
    used = sum(server.cpu_s() for server in crowd) - sum(before)
    return used / passed / len(crowd) * 100


def begin_to_wait(server):
    """A call that waits; calls begin in order, so that the answer to the next one means that it does."""
    os.write(server.process.stdin.fileno(), server.line_of("receive", {"wait_seconds": WAIT_SECONDS}))
    server.exchange(server.line_of("task_get", {"task_id": "1"}))


def wake(sender, crowd):
    """One message to all; when each had its answer, in seconds from before the message was sent, in order."""
    line = sender.line_of("send", {"channel": "general", "content": "wake up"})
    open_ones = {server.process.stdout.fileno(): server for server in crowd}
    poll = select.poll()
    for fd in open_ones:
        poll.register(fd, select.POLLIN)
    began, woken = time.perf_counter(), []
    os.write(sender.process.stdin.fileno(), line)
    while open_ones:
        ready = poll.poll(WAIT_SECONDS * 1000)
        if not ready:
            raise Broken(f"{len(open_ones)} of {len(crowd)} did not wake up")
        now = time.perf_counter() - began
        for fd, _ in ready:
            poll.unregister(fd)
            if b"wake up" not in read_line(fd):
                raise Broken("a server woke up without the message")
            del open_ones[fd]
            woken.append(now)
    return woken


def read_line(fd):
    came = b""
    while not came.endswith(b"\n"):
        chunk = os.read(fd, 1 << 20)
        if not chunk:
            raise Broken("the server has ended")
        came += chunk
    return came


def binary(run):
    """What is shipped."""
    size = run.binary.stat().st_size / MIB
    return [bar("binary_size", size, 20, "MiB")]


GROUPS = {"commands": commands, "servers": servers, "claims": claims, "idle": idle, "binary": binary}


def sqlite3():
    """The shell of SQLite, if it is there."""
    return shutil.which("sqlite3")
