"""The drop-in tools as the official TypeScript SDK meets them: whole sessions against the checked-in transcripts."""

import json
import subprocess
import unittest

import sessions
from agents import HERE, INSTALLED, node_bin
from place import Place


def play(name, store):
    place = Place()
    try:
        command = sessions.server(place, name, store)
        played = subprocess.run(
            [node_bin() / "node", HERE / "session.mjs", HERE / "sessions" / f"{name}.json", *command],
            cwd=place.project,
            env=place.env | {"TASKBUS_NPM": str(INSTALLED / "npm")},
            capture_output=True,
            text=True,
            timeout=60,
        )
        if played.returncode != 0:
            raise AssertionError(f"{played.stdout}\n{played.stderr}")
        answers = [json.loads(line) for line in played.stdout.splitlines()]
        steps = sessions.steps(name)
        assert len(answers) == len(steps), (len(answers), len(steps))
        lines = [sessions.line(step, it["text"], it["data"], it["refused"]) for step, it in zip(steps, answers)]
        return sessions.normal("".join(lines))
    finally:
        place.close()


class TypeScript(unittest.TestCase):
    maxDiff = None

    def test_sessions_go_as_written(self):
        for name in sessions.SETS:
            for store in sessions.STORES:
                with self.subTest(set=name, store=store):
                    self.assertEqual(play(name, store), sessions.golden(name, store))


if __name__ == "__main__":
    unittest.main()
