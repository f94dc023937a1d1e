// What runs with the clock: a lease that runs down, and a time that something has lasted. They are
// told what is so when the server says it, and the time as often as the screen is drawn.
import { element, nameElement, setName, setText } from './dom.js';
import { formatDuration } from './format.js';

const lowShare = 0.2;

export class LeaseMeter {
  #fill = element('span', { class: 'lease-fill' });
  #left = element('span', { class: 'lease-left' });
  element = element(
    'span',
    { class: 'lease' },
    element('span', { class: 'lease-bar', 'aria-hidden': 'true' }, this.#fill),
    this.#left,
  );
  #expiresAt = 0;
  #ttlMs = 1;
  #drawnShare = -1;
  #step;

  // A change of less than half a pixel cannot be seen, and is not drawn.
  constructor(barPixels) {
    this.#step = 0.5 / barPixels;
  }

  // `hold` as the server lists it.
  show(hold) {
    this.#expiresAt = hold.expires_at_unix_ms;
    this.#ttlMs = Math.max(hold.ttl_ms, 1);
    this.element.title = `lease of ${formatDuration(hold.ttl_ms)}`;
  }

  tick(now) {
    const left = Math.max(this.#expiresAt - now, 0);
    const share = Math.min(left / this.#ttlMs, 1);
    setText(this.#left, formatDuration(left));
    if (Math.abs(share - this.#drawnShare) < this.#step && share > 0) return;
    this.#drawnShare = share;
    this.#fill.style.transform = `scaleX(${share.toFixed(4)})`;
    this.element.classList.toggle('low', share < lowShare);
  }
}

export class Age {
  element = element('span', { class: 'age' });
  #since = 0;

  show(sinceUnixMs) {
    this.#since = sinceUnixMs;
  }

  tick(now) {
    setText(this.element, formatDuration(now - this.#since));
  }
}

// Who holds, and the lease.
export class HoldLine {
  #holder = nameElement('span', '', { class: 'holder' });
  #lease = new LeaseMeter(100);
  element = element('div', { class: 'hold' }, this.#holder, this.#lease.element);

  show(hold) {
    setName(this.#holder, hold.holder);
    this.#lease.show(hold);
  }

  tick(now) {
    this.#lease.tick(now);
  }
}

// Who waits, and since when.
export class WaitLine {
  #holder = nameElement('span', '', { class: 'holder' });
  #age = new Age();
  element = element('li', { class: 'waiter' }, this.#holder, ' ', this.#age.element);

  show(waiter, repliedAt) {
    setName(this.#holder, waiter.holder);
    this.#age.show(repliedAt - waiter.waited_ms);
  }

  tick(now) {
    this.#age.tick(now);
  }
}

// The server's time when it described `lock`: every hold says it; `otherwise` when there is none.
export function repliedAt(lock, otherwise) {
  const hold = lock.holds[0];
  return hold ? hold.expires_at_unix_ms - hold.expires_in_ms : otherwise;
}

// Keeps `lines`, made by `make`, as many as `count`.
export function fitLines(lines, count, make) {
  while (lines.length < count) lines.push(make());
  lines.length = count;
  return lines;
}
