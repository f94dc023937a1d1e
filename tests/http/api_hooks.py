# For schemathesis: what it makes up, so that the run ends.
import re

import schemathesis

WAIT_MS_MAX = 9_223_372_036_000  # of the API
PATIENCE_MS = 50
LIMIT_MAX = 2_147_483_647


def is_limit(number):  # 5.0 is one too
    is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
    return is_number and 1 <= number <= LIMIT_MAX and number == int(number)


# What a schema cannot say: permits are at most the limit.
def within_limit(body):
    if not isinstance(body, dict):
        return body
    limit, permits = body.get("limit"), body.get("permits")
    if is_limit(limit) and is_limit(permits):
        return {**body, "permits": min(limit, permits)}
    return body


# Nor that no kind and key come twice.
def different(items):
    seen = set()
    kept = []
    for item in items:
        name = repr((item.get("kind", "lock"), item.get("key"))) if isinstance(item, dict) else None
        if name is None or name not in seen:
            kept.append(item)
        seen.add(name)
    return kept


# A wait is as long as it says, and what it waits for may be held for a century. One that is out of
# range stays as it is: it has to be refused.
@schemathesis.hook
def map_body(context, body):
    if not isinstance(body, dict):
        return body
    wait_ms = body.get("wait_ms")
    is_number = isinstance(wait_ms, (int, float)) and not isinstance(wait_ms, bool)
    if is_number and PATIENCE_MS < wait_ms <= WAIT_MS_MAX and wait_ms == int(wait_ms):
        return {**body, "wait_ms": PATIENCE_MS}
    return body


def possible(body):
    body = within_limit(body)
    if isinstance(body.get("items"), list):
        body = {**body, "items": different([within_limit(item) for item in body["items"]])}
    return body


# A place in a listing looks like one, and is refused all the same unless the server made it.
@schemathesis.hook
def before_call(context, case, kwargs):
    if isinstance(case.body, dict):
        case.body = possible(case.body)
    after = (case.query or {}).get("after")
    if isinstance(after, str) and re.fullmatch("[0-9a-f]{32}", after):
        del case.query["after"]
