"""Charts as SVG, in plain text: lines over a logarithmic axis, and rows of labelled dots.

The same figures give the same bytes. A chart is white, so that it reads on a dark page too. What a
line or a dot stands for is written beside it, in its colour.
"""

import math
from dataclasses import dataclass
from html import escape

WIDTH = 880
INK, FAINT, GRID, GUIDE = "#1f2937", "#57606a", "#e3e6ea", "#c4cad1"
FONT = "font-family=\"system-ui, 'Segoe UI', 'DejaVu Sans', Helvetica, sans-serif\""
HEAD, FOOT = 50, 34  # above and below the panels


@dataclass
class Series:
    name: str
    colour: str
    points: list  # of (x, y)
    dashed: bool = False


@dataclass
class Panel:
    title: str  # with the unit of y
    x_title: str
    series: list
    log: bool = False  # the y axis; x always is

    def heights(self):
        return [y for series in self.series for _, y in series.points]


@dataclass
class Row:
    group: str  # written once, above the first row of it
    name: str
    colour: str
    value: float
    label: str


def number(value):
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:g}"


class Scale:
    """Values to places on the paper, and the values worth a tick."""

    def __init__(self, values, start, end, log):
        self.start, self.end, self.log = start, end, log
        self.ticks = log_ticks(values) if log else linear_ticks(values)
        self.low, self.high = self.ticks[0], self.ticks[-1]

    def __call__(self, value):
        if self.log:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)


def linear_ticks(values):
    """From 0 past the largest, four to six steps of 1, 2 or 5."""
    rough = max(values) / 4.5
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * part for part in (1, 2, 5, 10) if power * part >= rough * 0.9)
    return [step * i for i in range(math.ceil(max(values) / step - 1e-9) + 1)]


def log_ticks(values):
    """Around all values: 1, 2, 5, 10 over two decades or less, powers of ten over more."""
    powers = range(math.floor(math.log10(min(values))) - 1, math.ceil(math.log10(max(values))) + 2)
    wide = max(values) / min(values) > 100
    steps = [float(f"{part}e{power}") for power in powers for part in ((1,) if wide else (1, 2, 5))]
    first = max(i for i, step in enumerate(steps) if step <= min(values))
    last = min(i for i, step in enumerate(steps) if step >= max(values))
    return steps[first : max(last, first + 1) + 1]


def text(x, y, words, size=12, colour=INK, anchor="start", weight="normal"):
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}"'
        f' font-weight="{weight}">{escape(words, quote=False)}</text>'
    )


def line(x1, y1, x2, y2, colour=GRID, width=1):
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"'
        f' stroke-width="{width}"/>'
    )


def dot(x, y, colour, radius=3.5):
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}"/>'


def page(title, subtitle, note, height, marks):
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}"'
        f' height="{height}" role="img" {FONT}>',
        f"<title>{escape(title, quote=False)}</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="6" fill="#ffffff"/>',
        text(20, 27, title, 15, weight="600"),
        text(20, 45, subtitle, 12, FAINT),
        text(20, height - 12, note, 10.5, FAINT),
    ]
    return "\n".join(head + marks + ["</svg>", ""])


def apart(places, gap=14):
    """The places of labels, moved until none is closer than `gap` to the one above it."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = list(places)
    for before, i in zip(order, order[1:]):
        moved[i] = max(moved[i], moved[before] + gap)
    # What was pushed down is centred on where it belongs.
    shift = sum(moved[i] - places[i] for i in order) / max(len(order), 1)
    return [place - shift for place in moved]


def draw_panel(panel, heights, left, right, top, bottom):
    xs = sorted({x for series in panel.series for x, _ in series.points})
    x_of = Scale(xs, left, right, log=True)
    x_of.low, x_of.high = xs[0], xs[-1]
    y_of = Scale(heights, bottom, top, panel.log)
    marks = [text(left - 6, top - 14, panel.title, 12.5, weight="600")]
    for y in y_of.ticks:
        marks.append(line(left, y_of(y), right, y_of(y)))
        marks.append(text(left - 8, y_of(y) + 4, number(y), 11, FAINT, "end"))
    for x in xs:
        marks.append(line(x_of(x), bottom, x_of(x), bottom + 4, FAINT))
        marks.append(text(x_of(x), bottom + 18, number(x), 11, FAINT, "middle"))
    marks.append(text((left + right) / 2, bottom + 36, panel.x_title, 12, FAINT, "middle"))
    for series in panel.series:
        places = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in series.points)
        dashes = ' stroke-dasharray="5 4"' if series.dashed else ""
        marks.append(
            f'<polyline points="{places}" fill="none" stroke="{series.colour}"'
            f' stroke-width="2" stroke-linejoin="round"{dashes}/>'
        )
        marks += [dot(x_of(x), y_of(y), series.colour, 3) for x, y in series.points]
    ends = [y_of(series.points[-1][1]) for series in panel.series]
    for series, y in zip(panel.series, apart(ends)):
        marks.append(text(right + 9, y + 4, series.name, 12, series.colour, weight="600"))
    return marks


def line_chart(title, subtitle, note, panels, alike=False):
    """Panels side by side; `alike` gives them the same y axis."""
    top, bottom = HEAD + 36, HEAD + 256
    each = WIDTH / len(panels)
    marks = []
    for i, panel in enumerate(panels):
        heights = [y for one in (panels if alike else [panel]) for y in one.heights()]
        marks += draw_panel(panel, heights, i * each + 74, (i + 1) * each - 84, top, bottom)
    return page(title, subtitle, note, bottom + 44 + FOOT, marks)


def row_chart(title, subtitle, note, x_title, rows, log):
    """Each row a dot, its name on the left and its value on the right of it."""
    left, right, step, gap = 300, WIDTH - 110, 20, 12
    top = HEAD + 24
    groups = sorted({row.group for row in rows}, key=[row.group for row in rows].index)
    bottom = top + len(rows) * step + (len(groups) - 1) * gap
    x_of = Scale([row.value for row in rows], left, right, log)
    marks = []
    for x in x_of.ticks:
        marks.append(line(x_of(x), top - 6, x_of(x), bottom))
        marks.append(text(x_of(x), bottom + 16, number(x), 11, FAINT, "middle"))
    marks.append(text((left + right) / 2, bottom + 34, x_title, 12, FAINT, "middle"))
    y, group = top + 8, None
    for row in rows:
        if row.group != group:
            y += gap if group is not None else 0
            marks.append(text(20, y + 4, row.group, 12))
            group = row.group
        marks.append(text(left - 12, y + 4, row.name, 12, row.colour, "end", "600"))
        # A length means something only where the axis begins at 0.
        marks.append(line(left, y, x_of(row.value), y, *((GUIDE, 1) if log else (row.colour, 3))))
        marks.append(dot(x_of(row.value), y, row.colour, 4.5))
        marks.append(text(x_of(row.value) + 10, y + 4, row.label, 12))
        y += step
    return page(title, subtitle, note, bottom + 42 + FOOT, marks)
