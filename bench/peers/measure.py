"""Two subjects do the same steps turn by turn, so that whatever else the machine does falls on both; then several
workers of each at once."""

import concurrent.futures
import statistics
import threading
import time

from mcp import Broken
from subject import STEPS

# So many rounds even if they take longer than the budget, unless a single one does: then that one has to do.
ROUNDS_MIN = 3


class Pair:
    """taskbus and a peer, on lists of the same size."""

    def __init__(self, ours, theirs, rounds, budget_s):
        self.ours, self.theirs, self.rounds, self.budget_s = ours, theirs, rounds, budget_s
        self.times = {subject: {} for subject in (ours, theirs)}
        self.failed = {}

    def run(self):
        """Rounds until there are enough, or until the time is used up."""
        for number in within(self.rounds, self.budget_s):
            self.round(number)

    def round(self, number):
        turn = (self.ours, self.theirs) if number % 2 == 0 else (self.theirs, self.ours)
        self.tasks = {}
        for step in ("add", "claim", "complete", "spare", "list", "ready", "next"):
            for subject in turn:
                self.step(subject, step, number)

    def step(self, subject, step, number):
        """One step; a peer that fails one is not asked again."""
        if step in self.theirs.lacks or step in self.failed or "add" in self.failed:
            return
        try:
            if step in ("add", "spare"):
                self.tasks[subject] = subject.add(number) if step == "add" else self.tasks[subject]
                if step == "spare":
                    subject.add(number)
            elif step in ("claim", "complete"):
                getattr(subject, step)(self.tasks[subject])
            else:
                getattr(subject, step)()
        except Broken as error:
            if subject is self.ours:
                raise
            self.failed[step] = str(error)
            return
        self.times[subject].setdefault(step, []).append(subject.took)

    def start(self):
        """How long a server takes until it has greeted."""
        for _ in within(ROUNDS_MIN, self.budget_s):
            for subject in (self.ours, self.theirs):
                subject.start()
                self.times[subject].setdefault("start", []).append(subject.took)

    def rows(self):
        """A row for each step: the medians and the median of the ratios, or why there are none."""
        return [row for step in STEPS if (row := self.row(step))]

    def row(self, step):
        note = self.theirs.notes.get(step, "")
        if step in self.theirs.lacks:
            return {"step": step, "reason": self.theirs.lacks[step]}
        if reason := self.failed.get(step) or self.failed.get("add"):
            return {"step": step, "reason": f"failed: {reason}"}
        ours, theirs = (self.times[subject].get(step, []) for subject in (self.ours, self.theirs))
        if not theirs:
            return None
        return {"step": step, "note": note} | compared(ours, theirs)


def within(rounds, budget_s):
    """The numbers of the rounds for which there is time."""
    began = time.monotonic()
    for number in range(rounds):
        yield number
        passed = time.monotonic() - began
        if passed > budget_s and (number + 1 >= ROUNDS_MIN or passed > (number + 1) * budget_s):
            break


def compared(ours, theirs):
    """Medians in milliseconds, and how many times ours theirs is. The first round warms up, if there are others."""
    pairs = list(zip(ours, theirs))
    pairs = pairs[1:] if len(pairs) > ROUNDS_MIN else pairs
    return {
        "taskbus_ms": milliseconds(ours for ours, _ in pairs),
        "peer_ms": milliseconds(theirs for _, theirs in pairs),
        "ratio": round(statistics.median(theirs / ours for ours, theirs in pairs), 2),
        "rounds": len(pairs),
    }


def milliseconds(times):
    return round(statistics.median(times) * 1000, 3)


def race(workers, tasks, budget_s):
    """All workers claim the same task at the same moment, one task after the other; how many were told that it is
    theirs, at least and at most, and how long it took until all had their answer."""
    winners, took = [], []
    with concurrent.futures.ThreadPoolExecutor(len(workers)) as pool:
        for number in within(tasks, budget_s):
            task, barrier = workers[0].add(number), threading.Barrier(len(workers))
            started = time.perf_counter()
            won = list(pool.map(lambda worker: wins(worker, task, barrier), workers))
            took.append(time.perf_counter() - started)
            winners.append(sum(won))
    return {"tasks": len(winners), "winners": [min(winners), max(winners)], "ms": milliseconds(took)}


def wins(worker, task, barrier):
    barrier.wait()
    try:
        worker.claim(task)
        return True
    except Broken:
        return False


def drain(workers, count):
    """All workers take ready tasks until there are none; how long it took, and how many were handed out twice."""
    started = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(len(workers)) as pool:
        taken = [task for tasks in pool.map(take_all, workers) for task in tasks]
    took = time.perf_counter() - started
    return {"tasks": count, "taken": len(taken), "twice": len(taken) - len(set(taken)), "ms": round(took * 1000, 1)}


def take_all(worker):
    taken = []
    while task := worker.next():
        taken.append(task)
    return taken
