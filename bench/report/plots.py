"""What the plots of docs/performance.md show, from the figures of a recorded run.

Each function takes a Run and returns a Plot. A server that was not measured (Redis, where it is not
installed) is left out; any other figure that is lacking is an error.
"""

from dataclasses import dataclass

from chart import FAINT, Panel, Row, Series, line_chart, number, row_chart

BLUE, RED, GREY, GREEN = "#0a5fc2", "#b3400b", "#5b6470", "#0b7a5a"
SERVERS = {"lockd": ("lockd", BLUE), "redis": ("Redis", RED), "floor": ("floor", GREY)}
OVER_HTTP = ("HTTP", GREEN)


class Lacking(Exception):
    """The recorded run has not measured what a plot needs."""


@dataclass
class Plot:
    name: str
    alt: str
    text: str  # what one has to know to read it
    svg: str


@dataclass
class Run:
    figures: list
    note: str  # where and when, for the foot of a plot

    def find(self, figure, **wanted):
        return [
            one
            for one in self.figures
            if one["figure"] == figure and all(one[name] == value for name, value in wanted.items())
        ]

    def need(self, figure, **wanted):
        found = self.find(figure, **wanted)
        if not found:
            what = ", ".join(f"{name} {value}" for name, value in wanted.items())
            raise Lacking(f"no figure '{figure}'" + (f" with {what}" if what else ""))
        return found


def points(figures, x, y):
    return sorted((one[x], one[y]) for one in figures)


def load_panel(run, title, pipeline, y, log=False, http=False):
    series = []
    for server, (name, colour) in SERVERS.items():
        get = run.find if server == "redis" else run.need
        if found := get("load", server=server, pipeline=pipeline):
            series.append(Series(name, colour, points(found, "connections", y)))
    if http:
        found = run.need("http", server="http", pipeline=pipeline)
        series.append(Series(*OVER_HTTP, points(found, "connections", y)))
    return Panel(title, "connections", series, log)


def of_load(run, server, connections, pipeline, y):
    return run.need("load", server=server, connections=connections, pipeline=pipeline)[0][y]


def throughput(run):
    rates = [of_load(run, "lockd", 64, pipeline, "rate") for pipeline in (1, 16)]
    return Plot(
        "throughput",
        f"Requests a second by connections: lockd answers {number(rates[0])} at 64 connections, "
        f"{number(rates[1])} with 16 requests at once on each.",
        "Acquire and release in turn, a key for each request under way, every reply checked; one "
        "thread a server, on a core of its own, and the load on another. The floor frames lines "
        "and answers with constants.",
        line_chart(
            "Throughput",
            "acquire and release in turn on each connection",
            run.note,
            [
                load_panel(run, "requests a second, one at a time", 1, "rate"),
                load_panel(run, "requests a second, 16 at once", 16, "rate"),
            ],
        ),
    )


def latency(run):
    p50, p99 = (of_load(run, "lockd", 64, 1, y) for y in ("p50_us", "p99_us"))
    return Plot(
        "latency",
        f"Latency by connections: at 64 connections half of lockd's replies come within "
        f"{number(p50)} µs, 99 % within {number(p99)} µs.",
        "The same runs, one request at a time on each connection. The loop is closed: all "
        "connections ask again at once, the server is saturated, and latency is the length of "
        "its queue. It says who is served evenly, not how long a request takes on a calm server.",
        line_chart(
            "Latency of a saturated server",
            "acquire and release in turn, one request at a time on each connection",
            run.note,
            [
                load_panel(run, "µs, median", 1, "p50_us", log=True),
                load_panel(run, "µs, 99th percentile", 1, "p99_us", log=True),
            ],
            alike=True,
        ),
    )


def cpu(run):
    costs = [of_load(run, "lockd", 64, pipeline, "cpu_ns") for pipeline in (1, 16)]
    return Plot(
        "cpu",
        f"CPU time a request by connections: lockd takes {number(costs[0])} ns at 64 "
        f"connections, {number(costs[1])} ns with 16 requests at once on each.",
        "CPU time of the whole server process, user and kernel, over the requests it answered. "
        "One at a time it is mostly the kernel's, and a server with one client goes to sleep "
        "between requests. HTTP is the same server under another protocol.",
        line_chart(
            "CPU time of the server",
            "acquire and release in turn on each connection; user and kernel (log scale)",
            run.note,
            [
                load_panel(run, "ns a request, one at a time", 1, "cpu_ns", log=True, http=True),
                load_panel(run, "ns a request, 16 at once", 16, "cpu_ns", log=True, http=True),
            ],
        ),
    )


def durable(run):
    names = {
        "lockd": ("no journal", GREY),
        "journal": ("journal", BLUE),
        "redis": ("Redis, every write", RED),
    }
    shapes = [
        (1, 1, "each", "1 connection"),
        (64, 1, "each", "64 connections"),
        (1000, 1, "each", "1,000 connections"),
        (64, 16, "each", "64 connections, 16 at once"),
        (64, 1, "one", "64 queue for one key"),
    ]
    rows = []
    for connections, pipeline, keys, group in shapes:
        shape = {"connections": connections, "pipeline": pipeline, "keys": keys}
        for server, (name, colour) in names.items():
            get = run.find if server == "redis" else run.need
            for one in get("durable", server=server, **shape):
                rows.append(Row(group, name, colour, one["rate"], number(one["rate"])))
    rate = run.need("durable", server="journal", connections=64, pipeline=1, keys="each")[0]["rate"]
    return Plot(
        "durable",
        f"Requests a second that are on the disk before they are answered: "
        f"{number(rate)} with a journal at 64 connections.",
        "Each acquire and each release is on the disk before it is answered, beside the same "
        "server without a journal and Redis with `appendfsync always`. One sync carries what all "
        "clients have asked meanwhile. Redis has no queue to wait in.",
        row_chart(
            "Durable",
            "acquire and release in turn, each synced before its reply (log scale)",
            run.note,
            "requests a second",
            rows,
            log=True,
        ),
    )


def handoff(run):
    found = run.need("handoff")
    longest = max(found, key=lambda one: one["waiting"])
    series = [
        Series("p99", BLUE, points(found, "waiting", "p99_us")),
        Series("p50", BLUE, points(found, "waiting", "p50_us")),
        Series("ping, p50", FAINT, points(found, "waiting", "ping_p50_us"), dashed=True),
    ]
    return Plot(
        "handoff",
        f"Hand-off by the length of the queue: with {number(longest['waiting'])} waiting, the next "
        f"in the queue has its grant {number(longest['p50_us'])} µs after the release was sent "
        f"(median); a ping takes {number(longest['ping_p50_us'])} µs.",
        "From the sending of a release until the next in the queue has read its grant, each waiter "
        "on a connection of its own. A ping in between shows what a round trip costs on this "
        "machine.",
        line_chart(
            "Hand-off",
            "from a release to the grant of the next in the queue, through the socket",
            run.note,
            [Panel("µs", "waiting in the queue", series, log=True)],
        ),
    )


def expiry_lag(run):
    cases = [
        ("engine", 1000, "1,000 leases, one a millisecond"),
        ("engine", 100000, "100,000 leases in one second"),
        ("socket", 500, "500 leases, through the socket"),
    ]
    rows = []
    for where, leases, group in cases:
        one = run.need("expiry_lag", where=where, leases=leases)[0]
        for name in ("p50", "p99", "max"):
            lag = one[name + "_ms"]
            rows.append(Row(group, name, BLUE, lag, f"{lag:.3f}"))
    worst = max(row.value for row in rows if row.name == "p99")
    return Plot(
        "expiry_lag",
        f"How late a lease ends: never early, and at most {worst:.1f} ms late in 99 of 100.",
        "From the end of a lease to the moment the next in the queue is told; through the socket, "
        "counted from the earliest moment it can have ended. A lease that ends early would fail "
        "the run.",
        row_chart(
            "Expiry lag",
            "from the end of a lease until the next in the queue is told (log scale)",
            run.note,
            "ms",
            rows,
            log=True,
        ),
    )


def memory(run):
    engine = run.need("engine_memory")[0]
    key, waiter = engine["key_bytes"], engine["waiter_bytes"]
    rows = [
        Row("a held key", "engine", BLUE, key, number(key)),
        Row("a place in the queue", "engine", BLUE, waiter, number(waiter)),
    ]
    states = {
        "opened": "an idle connection",
        "used": "the same after a request",
        "pipelined": "the same after 16 at once",
    }
    run.need("connection_memory", server="lockd")
    for state, group in states.items():
        for one in run.find("connection_memory"):
            name, colour = SERVERS[one["server"]]
            size = one[state + "_bytes"]
            rows.append(Row(group, name, colour, size, number(size)))
    return Plot(
        "memory",
        f"Memory: {number(key)} bytes a held key, {number(waiter)} a place in the queue, and what "
        f"a connection takes, beside Redis.",
        "Keys of 16 bytes, holders of 8: what the allocator says is in use, its own overhead "
        "included. Connections: the growth of the server's private pages; what the kernel keeps "
        "for a socket is not in it.",
        row_chart(
            "Memory",
            "of the process, without what the kernel keeps for it",
            run.note,
            "bytes",
            rows,
            log=False,
        ),
    )


def growth(run):
    found = run.need("growth")
    most = max(found, key=lambda one: one["keys"])
    time, size = number(most["pair_ns"]), number(most["key_bytes"])
    return Plot(
        "growth",
        f"Growth with the number of held keys: at {number(most['keys'])} keys, "
        f"{time} ns to release one and acquire it again, and {size} bytes a key.",
        "Of the held keys one after another, in an order that the caches cannot foresee, is "
        "released and acquired again. What a pointer to a random place costs, at the "
        "top of this page, is the measure for the growth.",
        line_chart(
            "Growth",
            "the engine alone, one thread, all keys held",
            run.note,
            [
                Panel(
                    "ns to release and acquire a key",
                    "held keys",
                    [Series(f"{time} ns", BLUE, points(found, "keys", "pair_ns"))],
                ),
                Panel(
                    "bytes a held key",
                    "held keys",
                    [Series(f"{size} bytes", BLUE, points(found, "keys", "key_bytes"))],
                ),
            ],
        ),
    )


ALL = [throughput, latency, cpu, durable, handoff, expiry_lag, memory, growth]
