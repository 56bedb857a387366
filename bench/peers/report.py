"""The report: tables in Markdown for people, the same as JSON for programs."""

import datetime
import os
import platform

from measure import ROUNDS_MIN
from subject import STEPS


def machine():
    """What is known of the machine, without its name."""
    system = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    known = {"os": system, "kernel": platform.release(), "arch": platform.machine(), "cpus": os.cpu_count()}
    return known | {"load": round(os.getloadavg()[0], 1)}


def head(taskbus, python, empty_ms):
    """The first keys of the JSON."""
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {"schema_version": 1, "date": date, "machine": machine(), "taskbus": taskbus, "python": python} | {
        "empty_process_ms": empty_ms
    }


class Notes:
    """Remarks below a table, numbered as they come."""

    def __init__(self):
        self.texts = []

    def mark(self, text):
        if text not in self.texts:
            self.texts.append(text)
        return f"[{self.texts.index(text) + 1}]"

    def lines(self):
        return [f"{number + 1}. {text}" for number, text in enumerate(self.texts)]


def markdown(report):
    """All of it."""
    m = report["machine"]
    build = report["taskbus"]
    lines = [
        f"Measured on {report['date']}: {m['os']}, {m['cpus']} cores, {m['arch']}, load {m['load']:.1f} before; "
        f"taskbus {build['version']} ({build['build']}). An empty process takes {report['empty_process_ms']:.1f} ms, measured in the same way.",
        "",
        "A cell: how many times as long the peer takes as taskbus, and both medians in milliseconds.",
    ]
    for surface, words in (
        ("cli", "Command line, whole processes"),
        ("mcp", "MCP calls over standard input and output"),
    ):
        sizes = sorted({row["tasks"] for row in report["results"] if row["surface"] == surface})
        for size in sizes:
            lines += ["", f"### {words}, {size:,} tasks", "", *table(report, surface, size)]
    lines += ["", "### Several at once", "", *contention(report)]
    slower = [row for row in report["results"] if row.get("ratio", 1) < 1]
    lines += ["", "### Where taskbus is behind", ""]
    lines += [
        f"- {row['peer']}, {row['surface']}, {row['tasks']:,} tasks, {row['step']}: {row['ratio']:.2f}×"
        for row in slower
    ] or ["Nowhere in this run."]
    return "\n".join(lines) + "\n"


def table(report, surface, size):
    notes = Notes()
    rows = [row for row in report["results"] if row["surface"] == surface and row["tasks"] == size]
    steps = [step for step in STEPS if any(row["step"] == step for row in rows)]
    lines = ["| Peer | " + " | ".join(steps) + " |", "|---|" + "---|" * len(steps)]
    for peer in report["peers"]:
        name = f"{peer['name']} {peer['version']}".strip()
        if reason := peer["reason"] or peer["absent"].get(surface):
            cells = [f"— {notes.mark(reason)}"] * len(steps)
        else:
            own = {row["step"]: row for row in rows if row["peer"] == peer["name"]}
            cells = [cell(own.get(step) or own.get("all"), notes) for step in steps]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return [*lines, "", *notes.lines()]


def cell(row, notes):
    if row is None:
        return f"— {notes.mark('not measured at this size')}"
    if "ratio" not in row:
        return f"— {notes.mark(row['reason'])}"
    remarks = [row["note"]] if row.get("note") else []
    if row["rounds"] < ROUNDS_MIN:
        remarks.append(f"{row['rounds']} of {ROUNDS_MIN} rounds: each takes longer than the budget")
    mark = "".join(f" {notes.mark(remark)}" for remark in remarks)
    return f"**{row['ratio']:.1f}×** ({row['peer_ms']:.1f} / {row['taskbus_ms']:.1f}){mark}"


def contention(report):
    lines = [
        "| Who | Surface | Workers claim one task: winners of each | until all are answered, ms | Workers drain a list |"
    ]
    lines += ["|---|---|---|---|---|"]
    for row in report["contention"]:
        if "reason" in row:
            lines.append(f"| {row['who']} | {row['surface']} | — {row['reason']} | — | — |")
            continue
        low, high = row["race"]["winners"]
        winners = f"{low}" if low == high else f"{low} to {high}"
        drained = row.get("drain")
        words = (
            f"{drained['taken']} in {drained['ms']:.0f} ms, {drained['twice']} twice" if drained else row["no_drain"]
        )
        lines.append(
            f"| {row['who']} | {row['surface']} | {winners} of {row['workers']}, {row['race']['tasks']} tasks "
            f"| {row['race']['ms']:.1f} | {words} |"
        )
    return lines
