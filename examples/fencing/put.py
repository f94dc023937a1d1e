"""Writes an object under a fence, with nothing but the store's conditional writes.

usage: LOCKD_FENCE=N put.py URL TEXT
"""

import json
import os
import sys
import urllib.error
import urllib.request


def look(url):
    """The fence of the object, and the condition for writing over it."""
    try:
        with urllib.request.urlopen(url) as reply:
            return json.load(reply)["fence"], {"If-Match": reply.headers["ETag"]}
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        return 0, {"If-None-Match": "*"}


def put(url, text, fence):
    """False when the object was written under a larger fence."""
    body = json.dumps({"fence": fence, "text": text}).encode()
    while True:
        there, condition = look(url)
        if there > fence:
            return False
        try:
            urllib.request.urlopen(
                urllib.request.Request(url, body, condition, method="PUT")).close()
            return True
        except urllib.error.HTTPError as error:
            if error.code != 412:  # somebody wrote between our look and our write: look again
                raise


url, text = sys.argv[1:]
if not put(url, text, int(os.environ["LOCKD_FENCE"])):
    sys.exit("refused: a later holder was here")
print(f"written: {text}")
