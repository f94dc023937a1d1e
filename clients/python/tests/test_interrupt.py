"""Programs that are interrupted by Ctrl-C, as processes."""

from __future__ import annotations

import signal
import subprocess
import sys

from .support import PATIENCE, ServerCase, eventually

# A program that a shell starts in the background ignores SIGINT otherwise.
PROGRAM = """
import signal
import sys

import lockd

signal.signal(signal.SIGINT, signal.default_int_handler)
with lockd.Client(sys.argv[1]) as locks:
    locks.acquire("k")
"""


class Interrupts(ServerCase):
    def test_ctrl_c_in_a_wait_prints_one_traceback(self) -> None:
        with self.locks.lock("k"):
            program = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, self.server.address],
                stderr=subprocess.PIPE,
                text=True,
            )
            eventually(lambda: self.locks.stats()["locks"][0]["waiters"] == 1, "a waiter")
            program.send_signal(signal.SIGINT)
            _, said = program.communicate(timeout=PATIENCE)
        self.assertEqual(said.count("Traceback"), 1, said)
        self.assertTrue(said.endswith("KeyboardInterrupt\n"), said)
