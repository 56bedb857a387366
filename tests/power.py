#!/usr/bin/env python3
"""Real power cuts, as root on Linux: commands work on a store in an ext4 file system of its own, which is shut down
under them without being flushed (the file system's own ioctl for that), mounted again, and looked at: the store
verifies, and everything that was acknowledged is there. Then the same below a library that flushes nothing, which must be
seen to lose something, else the cuts would show nothing. Needs e2fsprogs and a C compiler.

    tests/power.py target/release/taskbus [--cuts 120] [--seed N]

Exit code 0: all of it held. 1: something is broken. 2: it could not be tried.
"""

import argparse
import fcntl
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

SHUT_DOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN
WITHOUT_FLUSHING = 2  # not even the journal
SIZE_MIB = 64
WORKERS = 4
# If nothing is flushed and nothing is lost in so many cuts, they cut nothing off.
CUTS_TO_LOSE = 10
FLUSHES_NOTHING = "int fsync(int file) { return 0; } int fdatasync(int file) { return 0; }"


class Disk:
    """A file system in a file, that can be cut off."""

    def __init__(self, home: Path) -> None:
        self.image, self.place = home / "disk", home / "mounted"
        self.place.mkdir()
        with self.image.open("wb") as image:
            image.truncate(SIZE_MIB * 1024 * 1024)
        run("mkfs.ext4", "-q", "-F", self.image)
        self.mount()

    def mount(self) -> None:
        run("mount", "-o", "loop", self.image, self.place)

    def cut(self) -> None:
        handle = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(handle, SHUT_DOWN, struct.pack("I", WITHOUT_FLUSHING))
        finally:
            os.close(handle)

    def unmount(self) -> None:
        deadline = time.monotonic() + 30
        while subprocess.run(["umount", self.place], capture_output=True).returncode != 0:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.place} cannot be unmounted")
            time.sleep(0.05)


class Crew:
    """Commands one after another in several threads, until the disk is gone; remembers what each was told."""

    def __init__(self, binary: Path, store: Path, list_name: str, preload: str) -> None:
        self.command = [binary, "--store", f"sqlite:{store}", "--list", list_name, "--json"]
        self.environment = os.environ | {"LD_PRELOAD": preload}
        self.told: dict[int, set[str]] = {}
        self.running: set[subprocess.Popen] = set()
        self.over = False
        self.lock = threading.Lock()

    def call(self, *words: str) -> dict | None:
        with self.lock:
            if self.over:
                return None
            command, quiet = [*self.command, *words], subprocess.DEVNULL
            child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=quiet, env=self.environment)
            self.running.add(child)
        output, _ = child.communicate()
        with self.lock:
            self.running.discard(child)
            # While the power goes nobody hears an answer, and a flush that is under way may end well and be lost.
            heard = child.returncode == 0 and not self.over
        return json.loads(output) if heard else None

    def work(self, name: str) -> None:
        while not self.over:
            added = self.call("add", "--create", f"by {name}", "--as", name)
            if added is None:
                continue
            task = added["task"]["id"]
            with self.lock:
                # Until the next answer it may be either.
                self.told[task] = {"pending", "completed"}
            if self.call("done", str(task), "--as", name) is not None:
                with self.lock:
                    self.told[task] = {"completed"}

    def work_until(self, seconds: float, cut) -> None:
        threads = [threading.Thread(target=self.work, args=[f"worker{n}"]) for n in range(WORKERS)]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        with self.lock:
            self.over = True
        cut()
        with self.lock:
            for child in self.running:
                child.kill()
        for thread in threads:
            thread.join()

    def found(self) -> dict[int, str]:
        """The status of each task of the list, page by page. Nothing, if nobody was ever told that there is a list."""
        found, more = {}, []
        while (page := self.call("list", "--limit", "200", *more)) is not None:
            found |= {task["id"]: task["status"] for task in page["tasks"]}
            if not page["truncated"]:
                break
            more = ["--cursor", page["next"]]
        return found

    def lost(self) -> list[str]:
        """What was acknowledged and is not so."""
        self.over = False
        found = self.found()
        return [
            f"task {task} is {found.get(task, 'gone')}, not {' or '.join(sorted(states))}"
            for task, states in self.told.items()
            if found.get(task) not in states
        ]


def run(*words) -> None:
    subprocess.run(words, check=True, capture_output=True)


def torture(binary: Path, cuts: int, dice: random.Random, preload: str = "") -> tuple[int, int, list[str]]:
    """So many cuts; says how many changes were acknowledged, in how many cuts something was lost, and what is wrong."""
    acknowledged, losing, wrong = 0, 0, []
    with tempfile.TemporaryDirectory() as home:
        disk = Disk(Path(home))
        try:
            for number in range(cuts):
                store = disk.place / f"cut{number % 8}.db"
                crew = Crew(binary, store, f"cut{number}", preload)
                crew.work_until(dice.uniform(0.1, 1.0), disk.cut)
                disk.unmount()
                disk.mount()
                acknowledged += sum(1 + (states == {"completed"}) for states in crew.told.values())
                lost = crew.lost() if crew.told else []
                losing += bool(lost)
                wrong += [f"cut {number}: {what}" for what in lost]
                if store.exists() and not lost:
                    command = [binary, "--store", f"sqlite:{store}", "verify"]
                    verdict = subprocess.run(command, capture_output=True, text=True)
                    if verdict.returncode != 0:
                        wrong.append(f"cut {number}: verify says {verdict.stdout}{verdict.stderr}")
                if number % 8 == 7:
                    for path in disk.place.glob("cut*"):
                        path.unlink()
        finally:
            disk.unmount()
    return acknowledged, losing, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("binary", type=Path)
    parser.add_argument("--cuts", type=int, default=120)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    asked = parser.parse_args()
    if os.geteuid() != 0:
        print("only root can cut a file system off", file=sys.stderr)
        return 2
    binary, dice = asked.binary.resolve(), random.Random(asked.seed)
    try:
        acknowledged, _, wrong = torture(binary, asked.cuts, dice)
        print(f"{asked.cuts} cuts, {acknowledged} changes acknowledged, {len(wrong)} wrong (seed {asked.seed})")
        with tempfile.TemporaryDirectory() as home:
            library = Path(home) / "flushes-nothing.so"
            subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", library, "-"], input=FLUSHES_NOTHING.encode(), check=True)
            _, losing, _ = torture(binary, CUTS_TO_LOSE, dice, str(library))
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        print(f"it could not be tried: {error}", file=sys.stderr)
        return 2
    print(f"with nothing flushed {losing} of {CUTS_TO_LOSE} cuts lost something")
    for line in wrong[:20]:
        print(line, file=sys.stderr)
    if losing == 0:
        print("nothing was flushed and nothing lost: the cuts cut nothing off", file=sys.stderr)
    return 1 if wrong or losing == 0 or acknowledged == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
