"""The bars: what was measured, what it may be at most, and how that is told to people and to programs."""

import datetime
import os
import platform
import statistics

MARKS = {True: "✓", False: "✗", None: ""}


def bar(name, value, target=None, unit="x", words=""):
    """A figure; without a target it is told and not judged."""
    return {"name": name, "value": round(value, 4), "target": target, "unit": unit, "met": met(value, target)} | (
        {"words": words} if words else {}
    )


def missing(name, reason):
    """A figure that could not be had, which is never the same as a good one."""
    return {"name": name, "reason": reason, "met": None}


def met(value, target):
    return None if target is None else value <= target


def code(bars):
    """The exit code: 0 every bar is met, 1 one is not, 2 none is missed but one could not be measured."""
    if any(bar["met"] is False for bar in bars):
        return 1
    return 2 if any("reason" in bar for bar in bars) else 0


def median_ms(times):
    return statistics.median(times) * 1000


def times(ours, theirs):
    """How many times theirs ours is, by the medians; both were measured turn by turn."""
    return statistics.median(ours) / statistics.median(theirs)


def versus(ours, theirs):
    """Both medians in words."""
    return f"{median_ms(ours):.2f} ms / {median_ms(theirs):.2f} ms"


def machine():
    """What is known of the machine, without its name."""
    system = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    known = {"os": system, "kernel": platform.release(), "arch": platform.machine(), "cpus": os.cpu_count()}
    return known | {"load": round(os.getloadavg()[0], 1)}


def head(version, build):
    """The first keys of the JSON."""
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {"schema_version": 1, "date": date, "machine": machine(), "taskbus": {"version": version, "build": build}}


def markdown(report):
    """The table, and below it what could not be measured and what was missed."""
    about, build, bars = report["machine"], report["taskbus"], report["bars"]
    lines = [
        f"Measured on {report['date']}: {about['os']}, {about['cpus']} cores, {about['arch']}, load {about['load']:.1f} "
        f"before; taskbus {build['version']} ({build['build']}).",
        "",
        "| Bar | Value | At most | | |",
        "|---|---|---|---|---|",
        *(row(bar) for bar in bars),
    ]
    missed = [bar["name"] for bar in bars if bar["met"] is False]
    lost = [f"{bar['name']}: {bar['reason']}" for bar in bars if "reason" in bar]
    lines += ["", f"Missed: {', '.join(missed)}." if missed else "Every bar that was measured is met."]
    return "\n".join(lines + [f"NOT MEASURED: {one}." for one in lost]) + "\n"


def row(bar):
    if "reason" in bar:
        return f"| {bar['name']} | not measured | | | {bar['reason']} |"
    unit = {"x": "×"}.get(bar["unit"], f" {bar['unit']}")
    target = "" if bar["target"] is None else f"{short(bar['target'])}{unit}"
    return f"| {bar['name']} | {short(bar['value'])}{unit} | {target} | {MARKS[bar['met']]} | {bar.get('words', '')} |"


def short(value):
    """Three figures, and no more behind the point than that takes."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
