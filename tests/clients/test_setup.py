"""What `taskbus setup` writes, read by the real clients: each starts the server, and the hooks of Claude Code run.

Nothing else configures the clients here. The model is scripted, everything else is real.
"""

import json
import re
import subprocess
import unittest

from agents import ClaudeCode, Codex, GeminiCli, npm, write
from model import Model
from place import BINARY, LIST, Place

MARK = "You are the helper."


class Conversations(Model):
    """A model with a plan for the agent and one for its subagent, told apart by how the conversation begins."""

    def __init__(self, plan, subagent_plan):
        super().__init__(plan)
        self.plans = {False: plan, True: subagent_plan}
        self.heard = {False: [], True: []}

    def answer(self, vendor, body):
        is_subagent = MARK in json.dumps(body["messages"][0])
        seen = vendor.see(body)
        if seen.tools:
            self.heard[is_subagent].append(seen)
        turn, plan = len(seen.results), self.plans[is_subagent]
        if not seen.tools or turn >= len(plan):
            return vendor.say(seen, turn, "finished")
        suffix, arguments = plan[turn]
        return vendor.call(seen, turn, seen.tool(suffix), arguments)

    def taken(self):
        return [json.loads(self.results(is_subagent)[0])["task"]["id"] for is_subagent in (False, True)]

    def results(self, is_subagent):
        return max(self.heard[is_subagent], key=lambda seen: len(seen.results)).results


class Stopping(Model):
    """A model that registers, wants to stop, and receives its messages only when it is told that there are some."""

    def __init__(self, name):
        super().__init__([("register", {"name": name}), ("receive", {"as": name})])
        self.told = None

    def answer(self, vendor, body):
        seen = vendor.see(body)
        unread = re.search(r"taskbus: [0-9]+ messages? unread.*", seen.whole)
        if seen.tools and len(seen.results) == 1:
            if unread is None:
                self.held.set()
                self.let_go.wait()
                return vendor.say(seen, 1, "finished")
            self.told = self.told or unread.group()[:400].split("Before you stop")[0]
        return super().answer(vendor, body)


class SetUp:
    """An agent that is configured by `taskbus setup` alone."""

    client = None

    def environment(self):
        return super().environment() | self.env

    def configure(self):
        done = taskbus(self.environment(), self.project, "setup", self.client)
        assert done.returncode == 0, done.stdout + done.stderr


class SetUpClaudeCode(SetUp, ClaudeCode):
    client = "claude-code"

    def environment(self):
        return super().environment() | {"ENABLE_TOOL_SEARCH": "false"}

    def command(self, prompt):
        return [npm("claude"), "-p", prompt, "--allowedTools", "mcp__taskbus", "Agent", "TaskCreate", "TaskUpdate",
                "--output-format", "stream-json", "--verbose"]  # fmt: skip


class SetUpCodex(SetUp, Codex):
    client = "codex"

    def configure(self):
        write(
            self.home / ".codex" / "config.toml",
            f"""# of the user
model = "scripted"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "{self.model.url}/v1"
wire_api = "responses"
""",
        )
        super().configure()

    def command(self, prompt):
        return [*super().command(prompt), "--dangerously-bypass-hook-trust"]


class SetUpGemini(SetUp, GeminiCli):
    client = "gemini"

    def configure(self):
        settings = {
            "privacy": {"usageStatisticsEnabled": False},
            "security": {"auth": {"selectedType": "gemini-api-key"}},
        }
        write(self.home / ".gemini" / "settings.json", "// of the user\n" + json.dumps(settings, indent=2) + "\n")
        super().configure()


def taskbus(environment, cwd, *arguments):
    return subprocess.run(
        [BINARY, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=60
    )


class WithSetUp(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.close)

    def agent(self, kind, model):
        env = {"TASKBUS_STORE": self.place.env["TASKBUS_STORE"]}
        agent = kind(model, self.place.home / kind.__name__, self.place.server, env)
        agent.configure()
        return agent

    def ask(self, agent, *command):
        """Runs a command of the client."""
        done = subprocess.run(
            [str(part) for part in command],
            cwd=agent.project,
            env=agent.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done


class EveryClientStartsTheServer(WithSetUp):
    def test_claude_code(self):
        with Model([]) as model:
            agent = self.agent(SetUpClaudeCode, model)
            said = self.ask(agent, npm("claude"), "mcp", "list").stdout
            self.assertRegex(said, r"taskbus: .*taskbus mcp - .*Connected")
            undone = taskbus(agent.environment(), agent.project, "setup", "claude-code", "--undo")
            self.assertEqual(undone.returncode, 0, undone.stdout + undone.stderr)
            self.assertNotIn("taskbus", self.ask(agent, npm("claude"), "mcp", "list").stdout)

    def test_gemini(self):
        with Model([]) as model:
            agent = self.agent(SetUpGemini, model)
            said = self.ask(agent, npm("gemini"), "mcp", "list").stderr
        self.assertRegex(said, r"taskbus: .*taskbus mcp \(stdio\) - Connected")

    def test_codex(self):
        with Model([]) as model:
            agent = self.agent(SetUpCodex, model)
            listed = json.loads(self.ask(agent, npm("codex"), "mcp", "list", "--json").stdout)
            tools = self.codex_tools(agent)
        [entry] = [server for server in listed if server["name"] == "taskbus"]
        self.assertEqual(entry["transport"]["args"], ["mcp"])
        self.assertIn("TASKBUS_STORE", entry["transport"]["env_vars"])
        self.assertIn("task_next", tools)

    def codex_tools(self, agent):
        """The tools that Codex got from the server it started."""
        process = subprocess.Popen(
            [str(npm("codex")), "app-server"],
            cwd=agent.project,
            env=agent.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            about = {"clientInfo": {"name": "test", "title": "test", "version": "1"}}
            for message in (
                {"id": 1, "method": "initialize", "params": about},
                {"method": "initialized"},
                {"id": 2, "method": "mcpServerStatus/list", "params": {}},
            ):
                process.stdin.write(json.dumps(message) + "\n")
                process.stdin.flush()
            for line in process.stdout:
                message = json.loads(line)
                if message.get("id") == 2:
                    [server] = [entry for entry in message["result"]["data"] if entry["name"] == "taskbus"]
                    return list(server["tools"])
        finally:
            process.kill()
            process.communicate()
        raise AssertionError("Codex ended without an answer")


class EveryClientWorks(WithSetUp):
    def test_each_takes_and_completes_a_task(self):
        for kind in (SetUpClaudeCode, SetUpCodex, SetUpGemini):
            with self.subTest(client=kind.client):
                [task] = self.place.plan({"key": "a", "subject": f"Greet {kind.client}"})
                plan = [
                    ("task_next", {"channel": LIST}),
                    ("task_update", {"task_id": task, "status": "completed", "result": kind.client}),
                ]
                with Model(plan) as model:
                    output = self.agent(kind, model).run()
                self.assertEqual(model.errors, [], output)
                stored = self.place.task(task)
                self.assertEqual((stored["status"], stored["result"]), ("completed", kind.client), output)


class TheHooks(WithSetUp):
    def test_a_subagent_acts_under_its_own_name(self):
        """Both share one server; the hook before the call says who of them calls."""
        tasks = self.place.plan({"key": "a", "subject": "One"}, {"key": "b", "subject": "Two"})
        helper = {"description": "help", "prompt": MARK, "subagent_type": "general-purpose"}
        take = ("task_next", {"channel": LIST})
        with Conversations([take, ("Agent", helper)], [take]) as model:
            output = self.agent(SetUpClaudeCode, model).run()
        self.assertEqual(model.errors, [], output)
        parent, child = (json.loads(model.results(is_subagent)[0])["task"]["owner"] for is_subagent in (False, True))
        self.assertRegex(parent, r"^claude-code-[0-9a-z-]+$")
        self.assertRegex(child, rf"^{parent}/general-purpose-[0-9a-z]+$")
        self.assertEqual(sorted(model.taken()), tasks, "each got one")

    def test_a_session_is_told_who_it_is(self):
        """And of the skill. Codex asks its user once before it runs a hook; here it is told not to ask."""
        for kind in (SetUpClaudeCode, SetUpCodex, SetUpGemini):
            with self.subTest(client=kind.client), Model([("task_list", {"channel": LIST})]) as model:
                agent = self.agent(kind, model)
                subprocess.run(["git", "init", "-q", str(agent.project)], check=True)
                done = taskbus(agent.environment(), agent.project, "init")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.place.plan({"key": "a", "subject": "One"})
                output = agent.run()
                self.assertEqual(model.errors, [], output)
                self.assertIn("In this repository you are project on taskbus", model.last().whole)
                self.assertIn("Work together with other agents through taskbus", model.last().whole)

    def test_an_agent_that_wants_to_stop_is_told_of_messages_that_it_has_not_seen(self):
        """It says that it is done; the hook keeps it going; it reads its messages; it stops."""
        for kind in (SetUpClaudeCode, SetUpCodex, SetUpGemini):
            name = f"Zed-{kind.client}"
            with self.subTest(client=kind.client), Stopping(name) as model:
                agent = self.agent(kind, model)
                process = agent.start()
                self.assertTrue(model.held.wait(60), "the agent never registered")
                self.place.cli("send", f"dm/{name}", "Secret words.", "--subject", "Read me")
                model.let_go.set()
                output, _ = process.communicate(timeout=120)
                self.assertEqual((process.returncode, model.errors), (0, []), output)
                self.assertRegex(model.told, rf"1 message unread for {name}, in dm/{name} \(1\)")
                self.assertNotIn("Secret", model.told, "a hook does not repeat what agents wrote")
                self.assertIn("Secret words.", model.last().results[1])

    def test_its_own_tasks_are_shown_where_the_repository_wants_it(self):
        own = [
            ("TaskCreate", {"subject": "Read the code", "description": "All of it."}),
            ("TaskUpdate", {"taskId": "1", "status": "in_progress"}),
            ("TaskUpdate", {"taskId": "1", "status": "completed"}),
        ]
        with Model(own) as model:
            agent = self.agent(SetUpClaudeCode, model)
            subprocess.run(["git", "init", "-q", str(agent.project)], check=True)
            write(agent.project / ".local" / "taskbus.json", json.dumps({"identity": "Zed", "mirror_tasks": True}))
            self.place.plan({"key": "a", "subject": "Shared"})
            agent.env["TASKBUS_LIST"] = "demo"
            output = agent.run()
        self.assertEqual(model.errors, [], output)
        shown = self.place.task(2)
        self.assertEqual((shown["subject"], shown["status"]), ("Read the code", "completed"), output)
        self.assertRegex(shown["owner"], r"^claude-code-[0-9a-z-]+/own-tasks$")


if __name__ == "__main__":
    unittest.main()
