"""A recorded run: figures, and what they were measured on, as docs/performance.json keeps them."""

import datetime
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

QUIET_PERCENT = 10  # busier than that, and a run is a trial


def commands(seconds, quick):
    """Programs and what they are told: about seven minutes in all, less than two if `quick`."""
    rounds = 1 if quick else 7
    seconds = 0.2 if quick else seconds
    connections = "1,4,16,64,256,1000,4000"
    return [
        f"growth_bench {1_000_000 if quick else 10_000_000}",
        "engine_figures",
        "server_figures",
        f"server_bench --seconds {seconds:g} --rounds {rounds} --connections {connections}",
        f"http_bench {seconds:g}",
        f"handoff_bench {3 * seconds:g}",
        f"durable_bench {1 if quick else 3} {seconds:g}",
    ]


def measure(programs, seconds, quick):
    """Runs the benches in `programs`; returns the recorded run. SystemExit when one fails."""
    busy = busy_percent()
    if busy > QUIET_PERCENT:
        print(f"report: the machine is {busy} % busy: figures want one with nothing else to do")
    measured = commit()
    ran = commands(seconds, quick)
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "figures"
        for command in ran:
            print(f"\n== {command}", flush=True)
            name, *arguments = command.split()
            run_bench([programs / name, *arguments], lines)
        figures = [json.loads(line) for line in lines.read_text().splitlines()]
    return {
        "date": datetime.date.today().isoformat(),
        "commit": measured,
        "machine": machine(programs),
        "busy_percent_before": busy,
        "commands": ran,
        "figures": figures,
    }


def run_bench(words, lines):
    environment = {
        **os.environ,
        "LOCKD_BENCH_RECORD": str(lines),
        "LOCKD_BENCH_DISK": str(disk(words[0].parent)),
    }
    try:
        status = subprocess.run(words, env=environment).returncode
    except FileNotFoundError:
        sys.exit(f"report: there is no {words[0]}; make report builds it")
    if status != 0:
        sys.exit(f"report: {words[0].name} ended with status {status}; nothing was recorded")


def busy_percent(seconds=3):
    """How much of its time the machine works. (A load average still remembers the build.)"""

    def idle_and_all():
        times = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
        return times[3] + times[4], sum(times)

    idle, total = idle_and_all()
    time.sleep(seconds)
    idle_now, total_now = idle_and_all()
    return round(100 * (1 - (idle_now - idle) / (total_now - total)))


def disk(programs):
    """Where journals are written: beside the programs, unless told otherwise."""
    return os.environ.get("LOCKD_BENCH_DISK", programs)


def commit():
    """Of the sources; documents may have changed since."""
    head = said_by("git", "rev-parse", "--short=10", "HEAD")
    changed = said_by("git", "status", "--porcelain", "--", ":/", ":(top,exclude)docs")
    return (head or "unknown") + (" and changes" if changed else "")


def machine(programs):
    release = platform.release().split(".")
    return {
        "cpu": first_value("/proc/cpuinfo", "model name", ":"),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9),
        "system": first_value("/etc/os-release", "PRETTY_NAME", "=").strip('"'),
        "kernel": "Linux " + ".".join(release[:2]),
        "compiler": said_by("c++", "--version").split("\n")[0],
        "disk": said_by("findmnt", "-no", "FSTYPE", "--target", disk(programs)) or "unknown",
        "redis": redis_version(),
    }


def redis_version():
    found = re.search(r"v=(\S+)", said_by("redis-server", "--version"))
    return found[1] if found else "none"


def first_value(path, name, separator):
    for line in Path(path).read_text().splitlines():
        key, found, value = line.partition(separator)
        if found and key.strip() == name:
            return value.strip()
    return "unknown"


def said_by(*words):
    """What a command prints; nothing if there is no such command, or it fails."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def to_text(run):
    """JSON with a figure on each line, so that two runs can be compared line by line."""
    about = {name: value for name, value in run.items() if name != "figures"}
    head = json.dumps(about, indent=2, ensure_ascii=False)
    figures = ",\n".join("    " + json.dumps(figure) for figure in run["figures"])
    return head[: head.rindex("\n}")] + ',\n  "figures": [\n' + figures + "\n  ]\n}\n"
