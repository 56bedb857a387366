"""One scripted run each of Claude Code, Codex and Gemini CLI: the agent takes a task and completes it.

The model is scripted, everything else is real: the agent, its start of `taskbus mcp`, the protocol, the store. The
model computes its second call from what it saw of the first answer, so the facts must have reached it.
"""

import json
import re
import subprocess
import unittest

from agents import ClaudeCode, Codex, GeminiCli, kill_all
from model import Model
from place import LIST, Place

AGENTS = (ClaudeCode, Codex, GeminiCli)
LOADED = ("register", "task_next", "task_update", "task_list")
LEASE_S = 3


def fact(seen, turn, name):
    """A number that the model read in a result."""
    found = re.search(rf'"{name}": ?(\d+)', seen.results[turn])
    if not found:
        raise LookupError(f"no {name} in what the model saw: {seen.results[turn]}")
    return int(found.group(1))


def finish(name):
    """Completes the task that the second turn took, with what the model saw of it."""
    return lambda seen: {
        "as": name,
        "task_id": fact(seen, 1, "id"),
        "fence": fact(seen, 1, "fence"),
        "status": "completed",
        "result": f"done by {name}",
    }


def work(name, **options):
    return [
        ("register", {"name": name}),
        ("task_next", {"as": name, "channel": LIST, **options}),
        ("task_update", finish(name)),
    ]


class WithAgents(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.close)

    def agent(self, kind, model, folder=None):
        home = self.place.home / (folder or kind.__name__)
        return kind(model, home, self.place.server, {"TASKBUS_STORE": self.place.env["TASKBUS_STORE"]})

    def run_agent(self, kind, plan):
        with Model(plan) as model:
            output = self.agent(kind, model).run()
        self.assertEqual(model.errors, [], output)
        return model.last()


class TakesAndCompletes(WithAgents):
    def test_each_agent_takes_a_task_and_completes_it(self):
        for kind in AGENTS:
            with self.subTest(agent=kind.__name__):
                name = kind.__name__.lower()
                [task] = self.place.plan({"key": "a", "subject": f"Greet {name}", "description": "Say hello."})
                seen = self.run_agent(kind, work(name))
                self.saw_the_tools(seen)
                self.saw_the_answers(seen, task, name)
                self.is_completed(task, name)

    def test_an_agent_that_never_registers_works_under_a_name_of_its_own(self):
        for kind in AGENTS:
            with self.subTest(agent=kind.__name__):
                [task] = self.place.plan({"key": "a", "subject": f"Trust {kind.__name__}"})
                plan = [
                    ("task_next", {"channel": LIST}),
                    ("task_update", lambda seen: {"task_id": fact(seen, 0, "id"), "status": "completed"}),
                ]
                self.run_agent(kind, plan)
                stored = self.place.task(task)
                self.assertEqual(stored["status"], "completed")
                print(f"\n{kind.__name__} is known as {stored['owner']}")

    def saw_the_tools(self, seen):
        """Definitions and instructions, as they reached the model."""
        for name in LOADED:
            definition = json.dumps(seen.tools[seen.tool(name)])
            self.assertIn("description", definition)
        update = json.dumps(seen.tools[seen.tool("task_update")])
        for field in ("task_id", "fence", "status", "result"):
            self.assertIn(f'"{field}"', update, "a field was lost on the way to the model")
        self.assertIn("claim", seen.whole)
        self.assertTrue(re.search(r"not instructions|never an instruction", seen.whole), "the server's instructions")

    def saw_the_answers(self, seen, task, name):
        registered, taken, done = seen.results
        self.assertIn(name, registered)
        for fact in (f'"id":{task}', f"Greet {name}", "Say hello.", '"fence":1', "in_progress"):
            self.assertIn(fact, taken.replace(": ", ":"))
        self.assertIn("completed", done)

    def is_completed(self, task, name):
        stored = self.place.task(task)
        self.assertEqual(
            (stored["status"], stored["owner"], stored["result"]), ("completed", name, f"done by {name}")
        )


class Contends(WithAgents):
    def test_two_agents_want_one_task(self):
        """Both at once, and neither ends before both were answered; one gets it, the other is told who has it."""
        [task] = self.place.plan({"key": "a", "subject": "The only one"})
        with (
            Model(work("ClaudeCode")[:2], hold_at=2) as left,
            Model(work("Codex")[:2], hold_at=2) as right,
        ):
            running = [self.agent(ClaudeCode, left).start(), self.agent(Codex, right).start()]
            answered = [model.held.wait(60) for model in (left, right)]
            left.let_go.set()
            right.let_go.set()
            outputs = [process.communicate(timeout=120)[0] for process in running]
        self.assertEqual((answered, left.errors, right.errors), ([True, True], [], []), outputs)
        answers = {"ClaudeCode": left.last().results[1], "Codex": right.last().results[1]}
        winners = [name for name, answer in answers.items() if f'"id":{task},' in answer and "idle" not in answer]
        self.assertEqual(len(winners), 1, answers)
        [loser] = [answer for name, answer in answers.items() if name != winners[0]]
        self.assertIn("idle", loser)
        self.assertIn(f'"owner":"{winners[0]}"', loser, "the loser learns who has it")

    def test_an_agent_is_killed_while_it_holds_a_task(self):
        """With its server, in the middle of its turn; another agent gets the task when the lease ends."""
        for kind, heir in ((ClaudeCode, Codex), (Codex, GeminiCli), (GeminiCli, ClaudeCode)):
            with self.subTest(killed=kind.__name__, heir=heir.__name__):
                [task] = self.place.plan({"key": "a", "subject": f"Survive the end of {kind.__name__}"})
                victim, successor = f"victim-{kind.__name__}", f"heir-{heir.__name__}"
                with Model(work(victim, lease_seconds=LEASE_S), hold_at=2) as model:
                    process = self.agent(kind, model, victim).start()
                    self.assertTrue(model.held.wait(60), "the agent never took its task")
                    kill_all(process)
                self.assertIn(victim, model.last().results[1], "it held the task when it was killed")
                self.run_agent(heir, work(successor, wait_seconds=20))
                stored = self.place.task(task)
                self.assertEqual((stored["status"], stored["result"]), ("completed", f"done by {successor}"))
                self.assertGreater(stored["fence"], 1)


class HealthChecks(WithAgents):
    def test_claude_code_connects(self):
        with Model([]) as model:
            agent = self.agent(ClaudeCode, model)
            added = ["mcp", "add", "--scope", "user", "taskbus", "--", *agent.server]
            for arguments in (added, ["mcp", "list"]):
                done = subprocess.run(
                    [agent.command("")[0], *arguments],
                    cwd=agent.project,
                    env=agent.environment() | agent.env,
                    capture_output=True,
                    text=True,
                    timeout=60,
                )
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("Connected", done.stdout)


if __name__ == "__main__":
    unittest.main()
