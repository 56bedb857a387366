"""The drop-in tools as the official Python SDK meets them: whole sessions in both eras of the protocol, on every store,
against the checked-in transcripts."""

import unittest

from mcp import Client, StdioServerParameters

import sessions
from place import Place


async def play(name, store, mode):
    place = Place()
    try:
        command, *args = sessions.server(place, name, store)
        parameters = StdioServerParameters(command=command, args=args, env=place.env, cwd=place.project)
        async with Client(parameters, mode=mode, read_timeout_seconds=60) as client:
            names, transcript = {}, ""
            for step in sessions.steps(name):
                result = await client.call_tool(step["tool"], sessions.resolved(step["arguments"], names))
                if "binds" in step:
                    names[f"${step['binds']}"] = result.structured_content["task"]["id"]
                text = result.content[0].text
                transcript += sessions.line(step, text, result.structured_content, bool(result.is_error))
            return sessions.normal(transcript)
    finally:
        place.close()


class Sessions(unittest.IsolatedAsyncioTestCase):
    maxDiff = None

    async def test_sessions_go_as_written(self):
        for name in sessions.SETS:
            for store in sessions.STORES:
                for mode in ("legacy", "auto"):
                    with self.subTest(set=name, store=store, mode=mode):
                        self.assertEqual(await play(name, store, mode), sessions.golden(name, store))


if __name__ == "__main__":
    unittest.main()
