"""The smallest MCP client that will do: JSON-RPC over the standard input and output of a server, with a deadline for
every answer, and the time that passed until an answer was there whole. Reading JSON is not part of that time."""

import json
import os
import select
import subprocess
import time

PROTOCOL = "2025-06-18"
CHUNK = 1 << 20


class Broken(Exception):
    """A program ended, was too slow, or answered something else than it was asked."""


class Server:
    """A running MCP server; `took` is how long the last call lasted, in seconds."""

    def __init__(self, command, place, env, deadline_s=120.0):
        self.deadline_s, self.number, self.buffer = deadline_s, 0, bytearray()
        self.errors = open(place / "stderr.log", "ab")
        began = time.perf_counter()
        self.process = subprocess.Popen(
            command, cwd=place, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors
        )
        client = {"name": "peers", "version": "1"}
        hello = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client}
        self.ask("initialize", hello)
        self.took = time.perf_counter() - began
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.errors.close()

    def tool(self, name, arguments):
        """Calls a tool; its text."""
        result = self.ask("tools/call", {"name": name, "arguments": arguments})
        text = "".join(part.get("text", "") for part in result.get("content", []))
        if result.get("isError"):
            raise Broken(f"{name}: {text[:120]}")
        return text

    def ask(self, method, params):
        """Sends a request; its result."""
        self.number += 1
        began = time.perf_counter()
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        while True:
            line = self.line(began + self.deadline_s)
            took = time.perf_counter() - began
            message = parsed(line)
            if "method" in message:
                self.serve(message)
            elif message.get("id") == self.number:
                self.took = took
                if "error" in message:
                    raise Broken(f"{method}: {message['error'].get('message', '')[:120]}")
                return message["result"]

    def serve(self, message):
        """Answers what a server asks of its client."""
        if "id" in message:
            result = {"roots": []} if message["method"] == "roots/list" else {}
            self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def send(self, message):
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Broken("the server has ended") from None

    def line(self, until):
        seen = 0
        while (end := self.buffer.find(b"\n", seen)) < 0:
            seen = len(self.buffer)
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, until - time.perf_counter()))
            if not ready:
                raise Broken(f"no answer within {self.deadline_s:.0f} s")
            chunk = os.read(self.process.stdout.fileno(), CHUNK)
            if not chunk:
                raise Broken("the server has ended")
            self.buffer += chunk
        line = bytes(self.buffer[:end])
        del self.buffer[: end + 1]
        return line


def parsed(line):
    """A message; some servers print other things in between, which are nobody's."""
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}
