// What runs with the clock: a lease that runs down, and a time that something has lasted. They are
// told what is so when the server says it, and the time as often as the screen is drawn.
import { element, setText } from './dom.js';
import { formatDuration } from './format.js';
import { Who } from './who.js';

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

// From when on a time is long, and very long; the legend of the table says so. A hold hurts nobody
// until somebody waits for its end.
const waitIsLong = { longMs: 30_000, veryLongMs: 300_000 };
const holdIsLong = { longMs: 300_000, veryLongMs: 3_600_000 };
const neverLong = { longMs: Infinity, veryLongMs: Infinity };

export class Age {
  element = element('span', { class: 'age' });
  #since = 0;
  #bounds = neverLong;

  show(sinceUnixMs) {
    this.#since = sinceUnixMs;
  }

  showWait(sinceUnixMs) {
    this.#bounds = waitIsLong;
    this.show(sinceUnixMs);
  }

  showHold(sinceUnixMs, somebodyWaits) {
    this.#bounds = somebodyWaits ? holdIsLong : neverLong;
    this.show(sinceUnixMs);
  }

  tick(now) {
    const age = now - this.#since;
    setText(this.element, formatDuration(age));
    this.element.classList.toggle('long', age > this.#bounds.longMs);
    this.element.classList.toggle('very-long', age > this.#bounds.veryLongMs);
  }
}

// Who holds, for how long by now, and the lease.
export class HoldLine {
  #who = new Who();
  #age = new Age();
  #lease = new LeaseMeter(100);
  element = element(
    'div',
    { class: 'hold' },
    this.#who.element,
    this.#age.element,
    this.#lease.element,
  );

  show(hold, repliedAt, somebodyWaits) {
    this.#who.show(hold);
    this.#age.showHold(repliedAt - hold.held_ms, somebodyWaits);
    this.#lease.show(hold);
  }

  tick(now) {
    this.#age.tick(now);
    this.#lease.tick(now);
  }
}

// Who waits, and since when.
export class WaitLine {
  #who = new Who();
  #age = new Age();
  element = element('li', { class: 'waiter' }, this.#who.element, ' ', this.#age.element);

  show(waiter, repliedAt) {
    this.#who.show(waiter);
    this.#age.showWait(repliedAt - waiter.waited_ms);
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
