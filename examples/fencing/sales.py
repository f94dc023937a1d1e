"""A day's sales: many tills add to them side by side, and one closes the day alone.

usage: LOCKD_FENCE=N sales.py DATABASE add AMOUNT    for who shares the lock
       LOCKD_FENCE=N sales.py DATABASE close         for who has it alone
"""

import os
import sqlite3
import sys

CREATE = """
    CREATE TABLE IF NOT EXISTS sales (
      day TEXT PRIMARY KEY, total INTEGER NOT NULL,
      largest INTEGER NOT NULL, largest_alone INTEGER NOT NULL)
"""
OPEN = "INSERT INTO sales VALUES ('today', 0, 0, 0) ON CONFLICT DO NOTHING"
ADD = """
    UPDATE sales SET total = total + :amount, largest = max(largest, :fence)
    WHERE day = 'today' AND largest_alone <= :fence
"""
CLAIM = """
    UPDATE sales SET largest = :fence, largest_alone = :fence
    WHERE day = 'today' AND largest <= :fence
"""
TOTAL = "SELECT total FROM sales WHERE day = 'today'"
EMPTY = "UPDATE sales SET total = 0 WHERE day = 'today'"


def add(database, fence, amount):
    with database:  # one transaction
        if database.execute(ADD, {"fence": fence, "amount": amount}).rowcount == 0:
            sys.exit("refused: somebody has had it alone meanwhile")
    print(f"added {amount}")


def close(database, fence):
    with database:
        if database.execute(CLAIM, {"fence": fence}).rowcount == 0:
            sys.exit("refused: a later holder was here")
        total = database.execute(TOTAL).fetchone()[0]
        database.execute(EMPTY)
    print(f"closed with {total}")


database = sqlite3.connect(sys.argv[1])
with database:
    database.execute(CREATE)
    database.execute(OPEN)
fence = int(os.environ["LOCKD_FENCE"])
if sys.argv[2] == "add":
    add(database, fence, int(sys.argv[3]))
else:
    close(database, fence)
