"""A scripted model on loopback, in place of the three vendors' services.

An agent that is pointed at it meets a model that makes the planned tool calls, one a turn, and then says "finished".
A planned call may compute its arguments from what the model has seen so far, so that a test proves what reached the
model, not only what was sent. Every request is kept.
"""

import http.server
import json
import threading


class Seen:
    """What one request showed the model."""

    def __init__(self, tools, results, body):
        self.tools = tools  # name as the model knows it -> definition
        self.results = results  # tool results so far, as text
        self.body = body
        self.whole = json.dumps(body, ensure_ascii=False)

    def tool(self, suffix):
        """The name of the one tool that ends in this."""
        names = [name for name in self.tools if name.endswith(suffix)]
        if len(names) != 1:
            raise LookupError(f"{len(names)} tools end in {suffix}: {sorted(self.tools)}")
        return names[0]


class Anthropic:
    """The messages API."""

    @staticmethod
    def fits(path):
        return path.split("?")[0].endswith("/messages")

    @staticmethod
    def see(body):
        blocks = [
            block
            for message in body.get("messages", [])
            if isinstance(message["content"], list)
            for block in message["content"]
        ]
        results = [text_of(block.get("content")) for block in blocks if block.get("type") == "tool_result"]
        return Seen({tool["name"]: tool for tool in body.get("tools", [])}, results, body)

    @staticmethod
    def call(seen, turn, name, arguments):
        block = {"type": "tool_use", "id": f"toolu_{turn}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        return Anthropic.message(seen, turn, block, delta, "tool_use")

    @staticmethod
    def say(seen, turn, text):
        return Anthropic.message(
            seen, turn, {"type": "text", "text": ""}, {"type": "text_delta", "text": text}, "end_turn"
        )

    @staticmethod
    def message(seen, turn, block, delta, stop):
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {
            "id": f"msg_{turn}",
            "type": "message",
            "role": "assistant",
            "model": seen.body.get("model", "scripted"),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        if not seen.body.get("stream"):
            whole = dict(message, content=[{"type": "text", "text": "finished"}], stop_reason="end_turn")
            return [(None, whole)]
        events = [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"},
        ]
        return [(event["type"], event) for event in events]


class OpenAI:
    """The responses API."""

    @staticmethod
    def fits(path):
        return path.split("?")[0].endswith("/responses")

    @staticmethod
    def see(body):
        tools = {}
        for tool in body.get("tools", []):
            if tool.get("type") == "namespace":
                for inner in tool.get("tools", []):
                    tools[f"{tool['name']}/{inner['name']}"] = inner
            elif "name" in tool:
                tools[tool["name"]] = tool
        outputs = [item for item in body.get("input", []) if item.get("type") == "function_call_output"]
        return Seen(tools, [text_of(item.get("output")) for item in outputs], body)

    @staticmethod
    def call(_seen, turn, name, arguments):
        item = {
            "type": "function_call",
            "id": f"fc_{turn}",
            "call_id": f"call_{turn}",
            "name": name.rsplit("/", 1)[-1],
            "arguments": json.dumps(arguments),
        }
        if "/" in name:
            item["namespace"] = name.split("/", 1)[0]
        return OpenAI.response(turn, item)

    @staticmethod
    def say(_seen, turn, text):
        content = [{"type": "output_text", "text": text}]
        return OpenAI.response(
            turn, {"type": "message", "id": f"msg_{turn}", "role": "assistant", "content": content}
        )

    @staticmethod
    def response(turn, item):
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        usage.update(input_tokens_details=None, output_tokens_details=None)
        events = [
            {"type": "response.created", "response": {"id": f"resp_{turn}"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"id": f"resp_{turn}", "usage": usage}},
        ]
        return [(event["type"], event) for event in events]


class Google:
    """The generateContent API."""

    @staticmethod
    def fits(path):
        return "enerateContent" in path

    @staticmethod
    def see(body):
        tools = {
            function["name"]: function
            for tool in body.get("tools", [])
            for function in tool.get("functionDeclarations", [])
        }
        parts = [part for content in body.get("contents", []) for part in content.get("parts", [])]
        answers = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
        return Seen(tools, [text_of(answer.get("output", answer.get("error", answer))) for answer in answers], body)

    @staticmethod
    def call(_seen, _turn, name, arguments):
        return Google.candidate({"functionCall": {"name": name, "args": arguments}})

    @staticmethod
    def say(_seen, _turn, text):
        return Google.candidate({"text": text})

    @staticmethod
    def candidate(part):
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        return [(None, {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"})]


VENDORS = (Anthropic, OpenAI, Google)


def text_of(content):
    """A tool result as the model reads it."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(part.get("text", json.dumps(part)) for part in content)
    return json.dumps(content)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """An agent that was killed does not read its answer; everything else is in `Model.errors`."""


class Model:
    """Serves a plan: a list of (tool suffix, arguments or a function from Seen to arguments).

    Reaching `hold_at`, the number of a turn, the model sets `held` and does not answer until `let_go` is set.
    """

    def __init__(self, plan, hold_at=None):
        self.plan = plan
        self.hold_at = hold_at
        self.held = threading.Event()
        self.let_go = threading.Event()
        self.seen = []
        self.errors = []
        self.server = Server(("127.0.0.1", 0), self.handler())
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.let_go.set()
        self.server.shutdown()
        self.server.server_close()

    def last(self):
        """What the model saw in the end."""
        return max(self.seen, key=lambda seen: len(seen.results))

    def answer(self, vendor, body):
        seen = vendor.see(body)
        turn = len(seen.results)
        if not seen.tools:  # a side question, such as a title for the session
            return vendor.say(seen, turn, "finished")
        self.seen.append(seen)
        if turn == self.hold_at:
            self.held.set()
            self.let_go.wait()
        if turn >= len(self.plan):
            return vendor.say(seen, turn, "finished")
        suffix, arguments = self.plan[turn]
        return vendor.call(seen, turn, seen.tool(suffix), arguments(seen) if callable(arguments) else arguments)

    def handler(model):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_HEAD(self):
                self.reply("application/json", b"")

            def do_GET(self):
                self.reply("application/json", b'{"data":[],"models":[]}')

            def do_POST(self):
                body = json.loads(self.read_body() or b"{}")
                vendor = next((vendor for vendor in VENDORS if vendor.fits(self.path)), None)
                if vendor is None:
                    return self.reply("application/json", b'{"input_tokens":1,"totalTokens":1}')
                try:
                    events = model.answer(vendor, body)
                except Exception as error:  # shown by the test; the agent only gets a 500
                    model.errors.append(error)
                    return self.reply("application/json", b"{}", 500)
                streamed = body.get("stream") or "stream" in self.path
                if not streamed:
                    return self.reply("application/json", json.dumps(events[-1][1]).encode())
                self.reply("text/event-stream", b"".join(map(as_event, events)))

            def read_body(self):
                if self.headers.get("transfer-encoding") != "chunked":
                    return self.rfile.read(int(self.headers.get("content-length") or 0))
                chunks = []
                while size := int(self.rfile.readline().strip() or b"0", 16):
                    chunks.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(chunks)

            def reply(self, kind, body, status=200):
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

        return Handler


def as_event(event):
    name, data = event
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()
