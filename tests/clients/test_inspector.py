"""The MCP Inspector's command line in strict mode: it checks the definitions the way careful hosts do."""

import json
import subprocess
import unittest

from agents import INSTALLED, node_bin
from place import LIST, Place

ERAS = ("legacy", "modern")
TOOL_ERROR = 5


class Inspector(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.close)

    def inspect(self, era, method, *options, expect=0):
        launcher = INSTALLED / "npm/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
        environment = [part for name, value in self.place.env.items() for part in ("-e", f"{name}={value}")]
        done = subprocess.run(
            [node_bin() / "node", launcher, "--cli", *self.place.server, *environment, "--protocol-era", era,
             "--format", "json", "--method", method, *options],
            cwd=self.place.project,
            env=self.place.env,
            capture_output=True,
            text=True,
            timeout=60,
        )  # fmt: skip
        self.assertEqual(done.returncode, expect, f"{done.stdout}\n{done.stderr}")
        if expect == 0:
            self.assertEqual(done.stderr, "", "the Inspector has something to remark")
        return json.loads(done.stdout)["result"]

    def test_definitions_pass_in_strict_mode(self):
        for era in ERAS:
            with self.subTest(era=era):
                self.assertEqual(len(self.inspect(era, "tools/list", "--strict")["tools"]), 12)

    def test_calls_and_refusals(self):
        for era in ERAS:
            with self.subTest(era=era):
                self.inspect(era, "tools/call", "--tool-name", "register", "--tool-arg", "name=inspector")
                arguments = json.dumps({"as": "nobody", "channel": LIST})
                refusal = self.inspect(
                    era, "tools/call", "--tool-name", "task_next", "--tool-args-json", arguments, expect=TOOL_ERROR
                )
                self.assertEqual(refusal["structuredContent"]["code"], "not_registered")


if __name__ == "__main__":
    unittest.main()
