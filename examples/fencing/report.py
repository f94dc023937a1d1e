"""Writes a report into a table, unless somebody has come after us.

usage: LOCKD_FENCE=N report.py DATABASE COMMAND    what COMMAND prints is the report
"""

import os
import sqlite3
import subprocess
import sys

CREATE = """
    CREATE TABLE IF NOT EXISTS reports (
      name TEXT PRIMARY KEY, content TEXT, fence INTEGER NOT NULL)
"""
CLAIM = """
    INSERT INTO reports (name, fence) VALUES ('nightly', :fence)
    ON CONFLICT (name) DO UPDATE SET fence = :fence WHERE fence <= :fence
"""
WRITE = """
    UPDATE reports SET content = :content
    WHERE name = 'nightly' AND fence = :fence
"""


def applies(database, statement, **values):
    with database:  # one transaction
        return database.execute(statement, values).rowcount == 1


database = sqlite3.connect(sys.argv[1])
database.execute(CREATE)
fence = int(os.environ["LOCKD_FENCE"])

# Before anything is read: from here on, whoever holds an older grant is refused.
if not applies(database, CLAIM, fence=fence):
    sys.exit("refused: a later holder was here")
# This may take hours, and the lock may be lost meanwhile.
content = subprocess.check_output(sys.argv[2], shell=True, text=True).strip()
if not applies(database, WRITE, content=content, fence=fence):
    sys.exit("refused: a later holder came meanwhile")
print(f"written: {content}")
