// Waits (or holds) over the last minutes: each second a column, each bucket of the histogram a cell
// that is the darker the more fell into it, and over them the lines of p50 and p99. The scale is
// logarithmic and covers what there is to see.
import { element, setText, svg } from './dom.js';
import { formatLatency } from './format.js';

const height = 180;
const margin = { top: 8, right: 4, bottom: 18, left: 50 };
const shades = 5;
const lineWindowMs = 10_000;
const figureWindowMs = 60_000;
const lowestMs = 0.001;
const emptyTexts = {
  wait: 'Nobody had to wait since this page was opened.',
  hold: 'No hold has ended since this page was opened.',
};

export class LatencyChart {
  #figures;
  #shades = Array.from({ length: shades }, (_, i) => svg('path', { class: `cell shade-${i + 1}` }));
  #lines = { 0.5: svg('path', { class: 'p50' }), 0.99: svg('path', { class: 'p99' }) };
  #axis = svg('g', { class: 'axis' });
  #drawing = svg(
    'svg',
    { class: 'chart', height, role: 'img' },
    ...this.#shades,
    this.#axis,
    ...Object.values(this.#lines),
  );
  #empty = element('p', { class: 'chart-empty' });
  #width = 0;
  #drawn = null; // the last arguments of draw, for another width

  // `figures` are the elements that show the last minute's p50 and p99 as text.
  constructor(place, figures) {
    this.#figures = figures;
    place.append(this.#drawing, this.#empty);
    new ResizeObserver(([entry]) => {
      this.#width = Math.floor(entry.contentRect.width);
      if (this.#drawn) this.draw(...this.#drawn);
    }).observe(place);
  }

  // `name` is 'wait' or 'hold'.
  draw(history, name) {
    this.#drawn = [history, name];
    this.#showFigures(history, name);
    if (this.#width === 0) return;
    const columns = history.columns(name);
    const scale = this.#scale(history, name, columns);
    this.#drawing.setAttribute('width', this.#width);
    this.#drawCells(columns, history.bounds(name), scale);
    this.#drawAxis(scale);
    for (const [q, line] of Object.entries(this.#lines)) {
      line.setAttribute('d', linePath(history.percentiles(name, Number(q), lineWindowMs), scale));
    }
    setText(this.#empty, scale.seen ? '' : emptyTexts[name]);
  }

  #showFigures(history, name) {
    const text = (q) => {
      const value = history.percentile(name, q, figureWindowMs);
      return value === null ? '–' : formatLatency(value);
    };
    setText(this.#figures.p50, text(0.5));
    setText(this.#figures.p99, text(0.99));
    this.#drawing.setAttribute(
      'aria-label',
      `${name} times lately; of the last minute, ` +
        `half within ${text(0.5)}, 99 of 100 within ${text(0.99)}`,
    );
  }

  // From the lowest to the highest bucket with something in it, and two decades at least.
  #scale(history, name, columns) {
    const bounds = history.bounds(name);
    const [now, spanMs] = [history.last().at, history.spanMs()];
    let [lowest, highest] = [Infinity, -Infinity];
    for (const { counts } of columns) {
      counts.forEach((count, i) => {
        if (count > 0) [lowest, highest] = [Math.min(lowest, i), Math.max(highest, i)];
      });
    }
    const seen = highest >= 0;
    const high = Math.ceil(Math.log10(seen ? bounds[Math.min(highest, bounds.length - 1)] : 1000));
    const low = Math.floor(Math.log10(!seen ? 1 : lowest > 0 ? bounds[lowest - 1] : lowestMs / 10));
    const from = Math.min(low, high - 2);
    const [bottom, ceiling] = [height - margin.bottom, margin.top];
    return {
      seen,
      spanMs,
      from,
      to: high,
      bottom,
      right: this.#width - margin.right,
      x: (at) =>
        this.#width -
        margin.right -
        ((now - at) / spanMs) * (this.#width - margin.left - margin.right),
      y: (ms) =>
        bottom - ((Math.log10(Math.max(ms, 1e-9)) - from) / (high - from)) * (bottom - ceiling),
    };
  }

  #drawCells(columns, bounds, scale) {
    const most = Math.max(1, ...columns.map(({ counts }) => Math.max(...counts)));
    const paths = this.#shades.map(() => '');
    for (const { from, to, counts } of columns) {
      const [left, right] = [Math.max(scale.x(from), margin.left), scale.x(to)];
      counts.forEach((count, i) => {
        if (count === 0 || right <= left) return;
        const shade = Math.floor((Math.log1p(count) / Math.log1p(most)) * (shades - 0.01));
        const top = scale.y(bounds[Math.min(i, bounds.length - 1)]);
        const bottom = Math.min(i === 0 ? scale.bottom : scale.y(bounds[i - 1]), scale.bottom);
        paths[shade] +=
          `M${left.toFixed(1)} ${top.toFixed(1)}H${right.toFixed(1)}` +
          `V${Math.max(bottom, top + 1).toFixed(1)}H${left.toFixed(1)}Z`;
      });
    }
    paths.forEach((path, i) => this.#shades[i].setAttribute('d', path));
  }

  #drawAxis(scale) {
    const parts = [];
    const step = scale.to - scale.from > 5 ? 2 : 1;
    for (let decade = scale.from; scale.seen && decade <= scale.to; decade += step) {
      const y = scale.y(10 ** decade).toFixed(1);
      parts.push(svg('line', { x1: margin.left, x2: scale.right, y1: y, y2: y }));
      parts.push(
        svg(
          'text',
          { x: margin.left - 8, y, 'text-anchor': 'end', dy: '0.32em' },
          formatLatency(Number((10 ** decade).toPrecision(1))),
        ),
      );
    }
    const minutes = (scale.spanMs / 60_000).toFixed(1).replace('.0', '');
    parts.push(svg('text', { x: margin.left, y: height - 3 }, `${minutes} min ago`));
    parts.push(svg('text', { x: scale.right, y: height - 3, 'text-anchor': 'end' }, 'now'));
    this.#axis.replaceChildren(...parts);
  }
}

// A line with gaps where nothing was observed.
function linePath(points, scale) {
  let path = '';
  let pen = 'M';
  for (const { at, value } of points) {
    if (value === null) {
      pen = 'M';
    } else {
      const y = Math.min(scale.y(value), scale.bottom);
      path += `${pen}${scale.x(at).toFixed(1)} ${y.toFixed(1)}`;
      pen = 'L';
    }
  }
  return path;
}
