"""Scenarios as they are in the files, and as they are once every ``for_each`` is written out."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Scenario", "load"]

Json = Any
_SCENARIO_WORDS = "name why for_each needs client server servers cluster strangers steps seen"
_SERVER_WORDS = "connections then answers down_ms"
_ACT_WORDS = (
    "on argument after_ms say bytes repeat cut drip_ms write_token close reset stall down down_ms"
)
_STEP_WORDS = (
    "do key keys wait_ms lease_s shared limit permits max_hold_ms hold place cancel_after_ms "
    "channel payload pattern group ms expect"
)


class Scenario(NamedTuple):
    name: str
    needs: tuple[str, ...]
    """What a driver must be able to do for it."""
    client: dict[str, Json]
    servers: list[dict[str, Json]]
    is_cluster: bool
    strangers: int
    """How many of the last servers the client is not given."""
    steps: list[dict[str, Json]]
    seen: dict[str, Json]


def load(folder: Path) -> list[Scenario]:
    """All of them, in the order of their files. Raises ``ValueError`` for one that is no scenario:
    a misspelt word must not pass in silence."""
    scenarios: list[Scenario] = []
    for file in sorted(folder.glob("*.json")):
        for pattern in json.loads(file.read_text())["scenarios"]:
            scenarios += [_scenario(file.stem, written) for written in _each(pattern)]
    names = [scenario.name for scenario in scenarios]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two scenarios have the name {name!r}")
    return scenarios


def _each(pattern: dict[str, Json]) -> Iterator[dict[str, Json]]:
    """One for every combination of what ``for_each`` lists."""
    given = pattern.get("for_each", {})
    lists = [_values(values) for values in given.values()]
    for combination in itertools.product(*lists):
        yield _fill(pattern, dict(zip(given, combination)))


def _values(values: Json) -> list[Json]:
    if isinstance(values, dict):
        return list(range(values["from"], values["to"] + 1))
    return list(values)


def _fill(value: Json, words: dict[str, Json]) -> Json:
    """Replaces ``{name}``, and ``{name.member}``; a text that is nothing else becomes the value."""
    if isinstance(value, dict):
        return {name: _fill(one, words) for name, one in value.items() if name != "for_each"}
    if isinstance(value, list):
        return [_fill(one, words) for one in value]
    if not isinstance(value, str) or not words:
        return value
    known = "|".join(map(re.escape, words))
    blank = re.compile(r"\{(" + known + r")(?:\.(\w+))?\}")

    def of(match: re.Match[str]) -> Json:
        word = words[match[1]]
        return word if match[2] is None else word[match[2]]

    whole = blank.fullmatch(value)
    return of(whole) if whole else blank.sub(lambda match: str(of(match)), value)


def _scenario(group: str, written: dict[str, Json]) -> Scenario:
    name = f"{group}: {written['name']}"
    _check_words(name, written, _SCENARIO_WORDS)
    servers = written.get("servers", [written.get("server", {})])
    for server in servers:
        _check_words(name, server, _SERVER_WORDS)
        for acts in (*server.get("connections", []), server.get("then", [])):
            for act in acts:
                _check_words(name, act, _ACT_WORDS)
    for step in written["steps"]:
        _check_words(name, step, _STEP_WORDS)
    return Scenario(
        name,
        tuple(written.get("needs", ())),
        written.get("client", {}),
        servers,
        written.get("cluster", False),
        written.get("strangers", 0),
        written["steps"],
        written.get("seen", {}),
    )


def _check_words(name: str, given: dict[str, Json], known: str) -> None:
    strange = set(given) - set(known.split())
    if strange:
        raise ValueError(f"{name}: nobody knows {', '.join(sorted(strange))}")
