"""taskbus as the official Python SDK meets it: over stdio and HTTP, in both protocol eras, with real processes."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import time
import unittest

from mcp import Client, StdioServerParameters

from place import BINARY, LIST, Place

CORE = ["register", "create_channel", "task_create", "task_plan", "task_next", "task_claim", "task_release",
        "task_update", "task_get", "task_list", "send", "receive"]  # fmt: skip
FULL = [*CORE, "list_channels", "subscribe", "unsubscribe", "history", "search", "get_memory", "edit_memory",
        "delete_memory", "discover"]  # fmt: skip
ALWAYS_LOADED = {"register", "task_next", "task_update", "task_list"}
KEYWORDS_BANNED = {"anyOf", "oneOf", "allOf", "$ref", "$defs", "format", "default", "not"}
SESSION_EXPIRY_S = 30
CALL_TIMEOUT_S = 60


class Server:
    """A client with a server process of its own, whose pid is known so that it can be killed."""

    def __init__(self, client, pid_file):
        self.client, self.pid_file = client, pid_file

    async def call(self, tool, /, **arguments):
        """What a call answers; `as_` stands for the argument `as`."""
        arguments = {name.rstrip("_"): value for name, value in arguments.items()}
        result = await self.client.call_tool(tool, arguments)
        return Answer(result)

    async def ok(self, tool, /, **arguments):
        answer = await self.call(tool, **arguments)
        if answer.is_error:
            raise AssertionError(f"{tool} {arguments} was refused: {answer.text}")
        return answer.data

    async def refused(self, tool, /, **arguments):
        answer = await self.call(tool, **arguments)
        if not answer.is_error:
            raise AssertionError(f"{tool} {arguments} was not refused: {answer.text}")
        return answer.data

    def kill(self):
        os.kill(int(self.pid_file.read_text()), signal.SIGKILL)


class Answer:
    """A result. Text and structured form carry the same facts: some clients show only one of them."""

    def __init__(self, result):
        self.is_error = bool(result.is_error)
        self.text = result.content[0].text
        self.data = result.structured_content
        told = json.loads(self.text)
        if isinstance(told, list):  # a page is a bare array of rows, and an element that says how to go on
            rows = [row for row in told if not row.get("truncated")]
            assert rows in [value for value in self.data.values() if isinstance(value, list)], (told, self.data)
        else:
            assert told == self.data, (told, self.data)


@contextlib.asynccontextmanager
async def server(place, mode="auto", tools="core"):
    pid_file = place.home / f"pid-{time.monotonic_ns()}"
    shell = f'echo $$ >"{pid_file}"; exec "$0" "$@"'
    parameters = StdioServerParameters(
        command="/bin/sh", args=["-c", shell, *place.server, "--tools", tools], env=place.env, cwd=place.project
    )
    async with Client(parameters, mode=mode, read_timeout_seconds=CALL_TIMEOUT_S) as client:
        yield Server(client, pid_file)


@contextlib.contextmanager
def serving(place):
    """A server over HTTP; its URL."""
    command = [BINARY, "serve", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, env=place.env, cwd=place.project, stderr=subprocess.PIPE, text=True)
    with process:
        told = process.stderr.readline()
        yield told.split(" at ")[1].split(";")[0]
        process.terminate()
        assert process.wait() == 0, process.returncode


@contextlib.asynccontextmanager
async def doomed(place):
    """A server that the test kills; the client's own complaints about that are expected."""
    try:
        async with server(place) as it:
            yield it
            it.kill()
    except* (OSError, RuntimeError):
        pass


class WithServers(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.close)

    async def list_of(self, server, *tasks, who="planner"):
        """A fresh list with these tasks; their ids by key."""
        await server.ok("register", name=who)
        await server.ok("create_channel", as_=who, name=LIST, kind="memory")
        planned = await server.ok("task_plan", as_=who, channel=LIST, tasks=list(tasks))
        return {task["key"]: task["id"] for task in planned["tasks"]}


class Definitions(WithServers):
    async def test_both_eras_list_the_same_tools(self):
        listed = {}
        for mode in ("legacy", "auto"):
            async with server(self.place, mode) as it:
                version = it.client.session.protocol_version
                tools = (await it.client.list_tools()).tools
                listed[version] = [tool.model_dump(by_alias=True, exclude_none=True) for tool in tools]
                self.assertLessEqual(len((it.client.session.instructions or "").encode()), 2048)
                self.assertIn("claim", it.client.session.instructions)
        self.assertEqual(len(listed), 2, f"one era only: {list(listed)}")
        first, second = listed.values()
        self.assertEqual(first, second)
        self.assertEqual([tool["name"] for tool in first], CORE)
        size = len(json.dumps(first, separators=(",", ":"), ensure_ascii=False).encode())
        print(f"\n{len(first)} tools, {size} bytes, about {size // 4} tokens, in {' and '.join(listed)}")
        self.assertLessEqual(size // 4, 3000)

    async def test_definitions_suit_every_client(self):
        async with server(self.place) as it:
            tools = (await it.client.list_tools()).tools
        for tool in tools:
            with self.subTest(tool=tool.name):
                self.assertRegex(tool.name, r"^[a-z_]{1,25}$")
                self.assertTrue(0 < len(tool.description.encode()) <= 600, tool.description)
                hints = tool.annotations
                self.assertTrue(tool.title or hints.title)
                for hint in (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint):
                    self.assertIsInstance(hint, bool)
                self.assertIs(hints.open_world_hint, False)
                self.assertEqual(hints.read_only_hint, tool.name in ("task_get", "task_list"))
                self.assertEqual((tool.meta or {}).get("anthropic/alwaysLoad", False), tool.name in ALWAYS_LOADED)
                self.plain(tool.input_schema)

    def plain(self, schema):
        """What the least capable of the clients can read."""
        self.assertFalse(KEYWORDS_BANNED & schema.keys(), schema)
        self.assertIsInstance(schema.get("type"), str, schema)
        if schema["type"] == "array":
            self.plain(schema["items"])
        for inner in schema.get("properties", {}).values():
            self.plain(inner)


class Work(WithServers):
    async def test_plan_next_complete(self):
        async with server(self.place) as it:
            ids = await self.list_of(
                it,
                {"key": "a", "subject": "Lay the table", "description": "Four plates."},
                {"key": "b", "subject": "Serve", "blocked_by": ["a"]},
            )
            await it.ok("register", name="worker")
            took = (await it.ok("task_next", as_="worker", channel=LIST))["task"]
            self.assertEqual((took["id"], took["description"], took["owner"]), (ids["a"], "Four plates.", "worker"))
            nothing = await it.ok("task_next", as_="planner", channel=LIST)
            self.assertEqual((nothing.get("task"), nothing["idle"]["advice"]), (None, "wait"))
            done = await it.ok("task_update", as_="worker", task_id=took["id"], fence=took["fence"],
                               status="completed", result="Four plates, four glasses.")  # fmt: skip
            self.assertEqual(done["unblocked"], [ids["b"]])
            both = await it.ok("task_next", as_="worker", channel=LIST)
            last = await it.ok("task_next", as_="worker", channel=LIST, complete=both["task"]["id"])
            self.assertEqual(last["idle"]["advice"], "done")
            page = await it.ok("task_list", as_="worker", channel=LIST)
            self.assertEqual([row["status"] for row in page["tasks"]], ["completed"] * 2)
            got = await it.ok("task_get", as_="worker", task_id=ids["a"], history=True)
            self.assertEqual((got["result"], got["revision"]), ("Four plates, four glasses.", 3))
            self.assertEqual(len(got["history"]), 3)
        stored = self.place.cli("list")
        self.assertEqual([task["status"] for task in stored["tasks"]], ["completed"] * 2)

    async def test_refusals_are_results_with_the_facts(self):
        async with server(self.place) as it, server(self.place) as other:
            ids = await self.list_of(it, {"key": "a", "subject": "A"}, {"key": "b", "subject": "B", "blocked_by": ["a"]})
            await other.ok("register", name="rival")
            held = (await it.ok("task_claim", as_="planner", task_id=ids["a"]))["task"]
            cases = [
                ("conflict", "planner", "task_claim", {"task_id": ids["a"]}),
                ("conflict", "planner", "task_update", {"task_id": ids["a"], "status": "completed"}),
                ("conflict", str(ids["a"]), "task_claim", {"task_id": ids["b"]}),
                ("validation", str(ids["b"]), "task_update", {"task_id": ids["a"], "add_blocked_by": [ids["b"]], "force": True}),
                ("validation", "task_id", "task_claim", {"taskid": ids["a"]}),
                ("not_found", "99", "task_claim", {"task_id": 99}),
                ("not_found", "create_channel", "task_create", {"channel": "tasks/none", "subject": "C"}),
            ]  # fmt: skip
            for code, names, tool, arguments in cases:
                with self.subTest(tool=tool, arguments=arguments):
                    refusal = await other.refused(tool, as_="rival", **arguments)
                    self.assertEqual((refusal["code"], refusal["retryable"]), (code, False))
                    self.assertIn(names, refusal["message"])
            unknown = await it.refused("task_claim", as_="stranger", task_id=ids["b"])
            self.assertEqual(unknown["code"], "not_registered")
            now = await it.ok("task_get", as_="planner", task_id=ids["a"])
            self.assertEqual(now["revision"], held["revision"], "a refusal writes nothing")

    async def test_arguments_may_be_spelled_the_way_models_spell_them(self):
        async with server(self.place) as it:
            ids = await self.list_of(it, {"key": "a", "subject": "A"}, {"key": "b", "subject": "B"})
            changed = await it.ok("task_update", as_="planner", task_id=f"#{ids['b']}", description="null",
                                  add_blocked_by=f'["{ids["a"]}"]', force="false")  # fmt: skip
            self.assertEqual(changed["task"]["blocked_by"], [ids["a"]])


class Contention(WithServers):
    async def test_two_servers_claim_one_task(self):
        rounds = 20
        async with server(self.place) as left, server(self.place) as right:
            ids = await self.list_of(left, *({"key": str(n), "subject": f"Task {n}"} for n in range(rounds)))
            await left.ok("register", name="left")
            await right.ok("register", name="right")
            for task_id in ids.values():
                answers = await asyncio.gather(
                    left.call("task_claim", as_="left", task_id=task_id),
                    right.call("task_claim", as_="right", task_id=task_id),
                )
                won = [answer for answer in answers if not answer.is_error]
                lost = [answer for answer in answers if answer.is_error]
                self.assertEqual((len(won), len(lost)), (1, 1))
                self.assertEqual(lost[0].data["code"], "conflict")
                self.assertIn(won[0].data["task"]["owner"], lost[0].data["message"])

    async def test_a_killed_holder_loses_its_task_when_the_lease_ends(self):
        async with server(self.place) as other:
            ids = await self.list_of(other, {"key": "a", "subject": "A"})
            async with doomed(self.place) as holder:
                await holder.ok("register", name="holder")
                held = (await holder.ok("task_next", as_="holder", channel=LIST, lease_seconds=2))["task"]
            taken = await other.ok("task_next", as_="planner", channel=LIST, wait_seconds=20)
            self.assertEqual(taken["task"]["id"], ids["a"])
            self.assertGreater(taken["task"]["fence"], held["fence"])
            self.assertGreaterEqual(taken["task"]["updated_at"], held["leased_until"], "not before the lease ended")
            async with server(self.place) as again:
                name = (await again.ok("register", name="holder"))["as"]
                late = await again.refused("task_update", as_=name, task_id=ids["a"], fence=held["fence"],
                                           status="completed")  # fmt: skip
                self.assertEqual(late["code"], "conflict")
            kinds = [entry["kind"] for entry in (await self.history(other, ids["a"]))]
            self.assertEqual(kinds.count("reclaimed"), 1)

    async def test_a_killed_holder_without_a_lease_loses_its_task_when_its_session_dies(self):
        async with server(self.place) as other:
            ids = await self.list_of(other, {"key": "a", "subject": "A"})
            async with doomed(self.place) as holder:
                await holder.ok("register", name="holder")
                await holder.ok("task_claim", as_="holder", task_id=ids["a"])
            killed = time.monotonic()
            taken = await other.ok("task_next", as_="planner", channel=LIST, wait_seconds=45)
            waited = time.monotonic() - killed
            self.assertEqual(taken["task"]["id"], ids["a"])
            self.assertLessEqual(waited, SESSION_EXPIRY_S + 2, "back within the expiry of a heartbeat")

    async def test_a_server_that_ends_gives_its_tasks_back_at_once(self):
        async with server(self.place) as other:
            ids = await self.list_of(other, {"key": "a", "subject": "A"})
            async with server(self.place) as holder:
                await holder.ok("register", name="holder")
                await holder.ok("task_claim", as_="holder", task_id=ids["a"])
            taken = await other.ok("task_next", as_="planner", channel=LIST)
            self.assertEqual(taken["task"]["id"], ids["a"])

    async def history(self, server, task_id):
        return (await server.ok("task_get", as_="planner", task_id=task_id, history=True))["history"]


class OverHttp(WithServers):
    async def test_clients_of_both_eras_claim_one_task(self):
        async def client(stack, url, mode):
            it = await stack.enter_async_context(Client(url, mode=mode, read_timeout_seconds=CALL_TIMEOUT_S))
            return Server(it, None)

        with serving(self.place) as url:
            async with contextlib.AsyncExitStack() as stack:
                clients = [await client(stack, url, mode) for mode in ("legacy", "auto", "legacy", "auto")]
                versions = {it.client.session.protocol_version for it in clients}
                self.assertEqual(len(versions), 2, f"one era only: {versions}")
                tools = (await clients[0].client.list_tools()).tools
                self.assertEqual([tool.name for tool in tools], CORE)
                ids = await self.list_of(clients[0], *({"key": str(n), "subject": f"Task {n}"} for n in range(10)))
                names = [(await it.ok("register", name="rival"))["as"] for it in clients]
                self.assertEqual(len(set(names)), len(clients), names)
                for task_id in ids.values():
                    claims = [it.call("task_claim", as_=name, task_id=task_id) for it, name in zip(clients, names)]
                    answers = await asyncio.gather(*claims)
                    self.assertEqual([answer.is_error for answer in answers].count(False), 1)


class Bus(WithServers):
    async def test_the_full_set_is_all_of_the_bus(self):
        async with server(self.place, tools="full") as it:
            tools = (await it.client.list_tools()).tools
            self.assertEqual([tool.name for tool in tools], FULL)
            prompts = (await it.client.list_prompts()).prompts
            self.assertEqual([prompt.name for prompt in prompts], ["init", "work", "plan"])
            told = await it.client.get_prompt("plan", {"goal": "Ship it"})
            self.assertIn("Ship it", told.messages[0].content.text)

    async def test_messages_go_from_one_server_to_another(self):
        async with server(self.place, tools="full") as it, server(self.place, tools="full") as other:
            await it.ok("register", name="it")
            await other.ok("register", name="other")
            self.assertEqual([row["sender"] for row in (await it.ok("discover", as_="it"))["sessions"]], ["it", "other"])
            waiting = asyncio.create_task(other.ok("receive", as_="other", wait_seconds=20))
            sent = await it.ok("send", as_="it", channel="dm/other", content="hello", subject="Greeting", tags=["a"])
            heard = await waiting
            self.assertEqual((heard["messages"][0]["seq"], heard["messages"][0]["content"]), (sent["seq"], "hello"))
            again = await other.ok("receive", as_="other")
            self.assertTrue(again["redelivered"])
            empty = await other.ok("receive", as_="other", ack=again["batch"])
            self.assertEqual(empty["messages"], [])
            hidden = await it.refused("history", as_="it", channel="dm/other")
            self.assertEqual(hidden["code"], "not_found")

    async def test_memories_are_kept_found_and_revised(self):
        async with server(self.place, tools="full") as it:
            await it.ok("register", name="it")
            kept = await it.ok("send", as_="it", channel="memory", content="The build needs cmake", subject="Build")
            found = await it.ok("search", as_="it", query="CMAKE")
            self.assertEqual(found["hits"][0]["memory_id"], kept["memory_id"])
            edited = await it.ok("edit_memory", as_="it", id=kept["memory_id"], content="It needs ninja")
            self.assertEqual(edited["revision"], 2)
            now = await it.ok("get_memory", as_="it", id=kept["memory_id"])
            self.assertEqual((now["content"], now["subject"]), ("It needs ninja", "Build"))
            await it.ok("delete_memory", as_="it", id=kept["memory_id"])
            gone = await it.refused("get_memory", as_="it", id=kept["memory_id"])
            self.assertEqual(gone["code"], "not_found")

    async def test_a_subscription_hears_channels_tags_and_task_lists(self):
        async with server(self.place, tools="full") as it:
            await it.ok("register", name="it")
            await it.ok("register", name="other")
            for name, kind in (("talk", "ordinary"), (LIST, "memory")):
                await it.ok("create_channel", as_="it", name=name, kind=kind)
                await it.ok("subscribe", as_="other", channel=name)
            await it.ok("send", as_="it", channel="talk", content="one")
            task = await it.ok("task_create", as_="it", channel=LIST, subject="A")
            heard = await it.ok("receive", as_="other", channels=["talk", LIST])
            self.assertEqual([message["channel"] for message in heard["messages"]], ["talk", LIST])
            self.assertEqual(json.loads(heard["messages"][1]["content"])["subject"], "A")
            await it.ok("unsubscribe", as_="other", channel="talk")
            await it.ok("task_update", as_="it", task_id=task["id"], delete=True)
            heard = await it.ok("receive", as_="other", ack=heard["batch"], channels=["talk", LIST])
            self.assertEqual([message["type"] for message in heard["messages"]], ["deleted"])
            page = await it.ok("history", as_="it", channel="talk")
            self.assertEqual(len(page["messages"]), 1)
            names = [row["name"] for row in (await it.ok("list_channels", as_="it"))["channels"]]
            self.assertTrue({"general", "memory", "talk", LIST} <= set(names), names)

    async def test_resources_are_read_and_listened_to_in_both_eras(self):
        for mode in ("legacy", "auto"):
            with self.subTest(mode=mode):
                place = Place()
                self.addCleanup(place.close)
                async with server(place, mode) as it:
                    await it.ok("register", name="it")
                    await it.ok("create_channel", as_="it", name=LIST, kind="memory")
                    await it.ok("task_create", as_="it", channel=LIST, subject="A")
                    listed = (await it.client.list_resources()).resources
                    self.assertEqual([str(resource.uri) for resource in listed], ["taskbus://list/demo"])
                    held = await it.client.read_resource("taskbus://list/demo")
                    self.assertEqual(json.loads(held.contents[0].text)["tasks"][0]["subject"], "A")


if __name__ == "__main__":
    unittest.main()
