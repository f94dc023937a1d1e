// Who held one key in the last minutes, as far as events tell: a lane for each of those
// who held it at once, a bar for each hold, with a mark at its end when it was not released but
// expired, was revoked or was lost with its connection.
import { element, svg } from './dom.js';
import { describeShare, formatDuration, visibleName } from './format.js';

const spanMs = 120_000;
const laneHeight = 18;
const laneGap = 4;
const lanesMost = 8;
const axisHeight = 16;
const letterWidth = 7; // about, and rather more

export class Timeline {
  #drawing = svg('svg', {
    class: 'timeline',
    role: 'img',
    'aria-label': 'Who held it, last two minutes',
  });
  element = element('div', { class: 'timeline-place' }, this.#drawing);

  // `events` are those of the key, oldest first; `holds` as the server lists them now.
  draw(events, holds, now) {
    const width = this.element.clientWidth;
    if (width === 0) return;
    const lanes = layLanes(collectSpans(events, holds, now));
    const height = Math.max(lanes.length, 1) * (laneHeight + laneGap) + axisHeight;
    const x = (at) => Math.max(width - ((now - at) / spanMs) * width, 0);
    const ground = lanes.map((_, i) =>
      svg('rect', {
        class: 'lane',
        width,
        height: laneHeight,
        rx: 2,
        y: i * (laneHeight + laneGap),
      }),
    );
    const bars = lanes.flatMap((lane, i) =>
      lane.map((span) => drawBar(span, x, i * (laneHeight + laneGap))),
    );
    this.#drawing.setAttribute('width', width);
    this.#drawing.setAttribute('height', height);
    this.#drawing.replaceChildren(
      ...ground,
      ...bars,
      svg('text', { x: 0, y: height - 2 }, '2 min ago'),
      svg('text', { x: width, y: height - 2, 'text-anchor': 'end' }, 'now'),
    );
  }
}

// Holds as spans of time, in the order they began: those that ended, and those that go on.
function collectSpans(events, holds, now) {
  const spans = new Map(); // token -> span; a hold is told of by its end, and by the listing
  for (const event of events) {
    if (event.held_ms === undefined || event.type === 'slow_hold') continue;
    spans.set(event.token, {
      holder: event.holder,
      share: describeShare(event),
      token: event.token,
      end: event.type,
      from: event.at_unix_ms - event.held_ms,
      to: event.at_unix_ms,
    });
  }
  for (const hold of holds) {
    if (spans.has(hold.token)) continue;
    spans.set(hold.token, {
      holder: hold.holder,
      share: describeShare(hold),
      token: hold.token,
      end: null,
      from: hold.expires_at_unix_ms - hold.expires_in_ms - hold.held_ms,
      to: now,
    });
  }
  return [...spans.values()]
    .filter((span) => span.to > now - spanMs)
    .sort((a, b) => a.from - b.from);
}

// Each span goes into the first lane that is free when it begins.
function layLanes(spans) {
  const lanes = [];
  for (const span of spans) {
    const free = lanes.find((lane) => lane.at(-1).to <= span.from + 1);
    if (free) free.push(span);
    else if (lanes.length < lanesMost) lanes.push([span]);
  }
  return lanes;
}

function drawBar(span, x, y) {
  const left = x(span.from);
  const width = Math.max(x(span.to) - left, 2);
  const bar = svg(
    'g',
    { class: `span ${span.token % 2 === 0 ? 'even' : 'odd'} ${span.end ?? 'held'}` },
    svg(
      'title',
      {},
      `${visibleName(span.holder)}: ${formatDuration(span.to - span.from)}, ` +
        `${span.share === '' ? '' : `${span.share}, `}${span.end ?? 'still held'}, ` +
        `fence ${span.token}`,
    ),
    svg('rect', { x: left, y, width: Math.max(width - 1, 1), height: laneHeight, rx: 2 }),
  );
  if (span.end !== null && span.end !== 'released') {
    bar.append(
      svg('rect', {
        class: 'cut',
        x: left + Math.max(width - 3, 0),
        y,
        width: 2,
        height: laneHeight,
      }),
    );
  }
  // A name that is cut short says less than none.
  if (width > span.holder.length * letterWidth + 10) {
    bar.append(
      svg('text', { x: left + 5, y: y + laneHeight / 2, dy: '0.35em' }, visibleName(span.holder)),
    );
  }
  return bar;
}
