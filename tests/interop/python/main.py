"""Runs every case that the installed client can take part in, over each of its APIs.

    main.py <dflockd> <work folder>

Prints a line a case, and the traceback of each that failed. Exits with 1 if any did.
"""

import concurrent.futures
import importlib
import logging
import pathlib
import shutil
import sys
import time
import traceback

from certificates import Certificates
from client import AsyncApi, SyncApi
from scene import Scene

# The slowest first.
SUBJECTS = ("leases", "access", "signals", "locks", "semaphores", "sharding", "limits",
            "connections")
# Cases mostly wait for leases to go by, so many run at once, each with servers of its own.
AT_ONCE = 16


def main(binary, work):
    logging.disable()  # the clients log what the cases provoke
    certificates = None
    if shutil.which("openssl"):
        certificates = Certificates(pathlib.Path(work) / "certificates")
    runs = [(subject, case, api) for api in (SyncApi(), AsyncApi())
            for subject in SUBJECTS for case in cases_of(subject)]
    playable = [run for run in runs if not lacking(*run[1:])]
    report_absences(set().union(*(lacking(*run[1:]) for run in runs)))

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as threads:
        played = [threads.submit(play, *run, binary, certificates) for run in playable]
        passed = [report(*run.result()) for run in concurrent.futures.as_completed(played)]
    print(f"{sum(passed)} of {len(passed)} cases passed")
    return 0 if all(passed) else 1


def cases_of(subject):
    module = importlib.import_module(f"cases.{subject}")
    return [case for case in vars(module).values() if hasattr(case, "needs")]


def lacking(case, api):
    """What the case needs and neither the client nor the machine has."""
    present = api.offers() | ({"openssl"} if shutil.which("openssl") else set())
    return set(case.needs) - present


def report_absences(absent):
    if "openssl" in absent:
        print("skip    cases with TLS: there is no openssl to make certificates with")
    if beyond := absent - {"openssl"}:
        print(f"        this version of the client does not have: {', '.join(sorted(beyond))}")


def play(subject, case, api, binary, certificates):
    """Plays one case. The title, how long it took, and the traceback if it failed."""
    title = f"{api.name} {subject}: {case.__name__.replace('_', ' ')}"
    began = time.monotonic()
    failure = None
    try:
        with Scene(api, binary, certificates) as scene:
            case(scene)
    except Exception:
        failure = traceback.format_exc()
    return title, time.monotonic() - began, failure


def report(title, seconds, failure):
    print(f"{'FAILED' if failure else 'ok':7} {title} ({seconds:.1f} s)", flush=True)
    if failure:
        print(failure, flush=True)
    return failure is None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
