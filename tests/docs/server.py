"""A server of a test's own, on a port that the system chose."""

import re
import subprocess


def start(program, *flags):
    """The process and its port, or None when it ends before it listens."""
    process = subprocess.Popen([program, "--host", "127.0.0.1", "--port", "0",
                                "--http-addr", "off", "--memory", *flags],
                               stderr=subprocess.PIPE, text=True, env={})
    listening = (re.search(r" listening .*\bport=(\d+)", line) for line in process.stderr)
    port = next(filter(None, listening), None)
    return process, port and int(port[1])


def end(process):
    process.kill()
    process.communicate()
