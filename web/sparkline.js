// A small line of the last minutes, newest at the right. Colours come from the style sheet.
import { svg } from './dom.js';

const width = 300;
const height = 36;
const top = 2; // room for half the line's width

export class Sparkline {
  #area = svg('path', { class: 'spark-area' });
  #line = svg('path', { class: 'spark-line' });
  element = svg(
    'svg',
    {
      class: 'spark',
      viewBox: `0 0 ${width} ${height}`,
      preserveAspectRatio: 'none',
      'aria-hidden': 'true',
    },
    this.#area,
    this.#line,
  );

  // `points` are [{at, value}]; the line ends at `now` and covers `spanMs`.
  draw(points, now, spanMs) {
    const highest = points.reduce((most, { value }) => Math.max(most, value), 0) || 1;
    const x = (at) => width - ((now - at) / spanMs) * width;
    const y = (value) => height - (value / highest) * (height - top) - 1;
    const steps = points.map(({ at, value }) => `${x(at).toFixed(1)} ${y(value).toFixed(1)}`);
    const line = steps.length > 1 ? `M${steps.join('L')}` : '';
    this.#line.setAttribute('d', line);
    this.#area.setAttribute('d', line && `${line}V${height}H${x(points[0].at).toFixed(1)}Z`);
  }
}
