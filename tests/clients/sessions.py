"""Sessions of the drop-in tools as data: the calls (`sessions/*.json`) and the transcripts that they must give
(`sessions/*.txt`, written by the test `golden` of the binary). Every client here plays the same ones."""

import json
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent / "sessions"
SETS = ("kin", "claude")
STORES = {"shared": "sqlite:{home}/taskbus.db", "sidecar": "file:{home}/session.tasks.json", "directory": "claude:{home}/tasks"}  # fmt: skip


def steps(name):
    """The calls of a session."""
    return json.loads((HERE / f"{name}.json").read_text())


def golden(name, store):
    """The transcript of a session on a kind of store."""
    return (HERE / f"{name}.{store}.txt").read_text()


def server(place, name, store):
    """The command of a server that offers this set on this kind of store."""
    place.env |= {"TASKBUS_AS": "zed", "TASKBUS_STORE": STORES[store].format(home=place.home)}
    shared = ["--list", "demo"] if store == "shared" else []
    return [*place.server, "--tools", name, *shared]


def resolved(value, names):
    """A value of a call with ids where names stand."""
    match value:
        case str():
            return names.get(value, value)
        case list():
            return [resolved(item, names) for item in value]
        case dict():
            return {key: resolved(item, names) for key, item in value.items()}
        case _:
            return value


def line(step, text, data, is_error):
    """What a transcript says of a call."""
    compact = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    arguments = json.dumps(step["arguments"], separators=(",", ":"), ensure_ascii=False)
    words = [] if text == compact else [f"text| {words}" for words in text.splitlines()]
    lines = [f"> {step['tool']} {arguments}", *(["refused"] if is_error else []), *words, f"data| {compact}"]
    return "\n".join(lines) + "\n"


def normal(transcript):
    """The ids of a sidecar numbered as they come, and times 0: the rest must be the same each time."""
    seen = {}
    numbered = re.sub(r"t_1[0-9]{12}_[0-9a-f]{4}", lambda id: f"t_{seen.setdefault(id[0], len(seen) + 1)}", transcript)
    return re.sub(r'"completed_at":[0-9]+', '"completed_at":0', numbered)
