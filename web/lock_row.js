// One key in the table: its name, who holds it, since when and for how much longer, and who waits.
// A search for somebody's keys shows what is theirs, and how many others there are.
import { permitsInUse } from './capacity.js';
import { arrange, element, nameElement, setHidden, setText } from './dom.js';
import { formatCount, plural } from './format.js';
import { Age, fitLines, HoldLine, repliedAt, WaitLine } from './lease.js';
import { keyAddress } from './route.js';

const holdsShown = 3;
const waitersShown = 4;

export class LockRow {
  #permits = element('span', { class: 'permits' });
  #idle = element('span', { class: 'quiet' });
  #free = element(
    'span',
    { class: 'quiet' },
    'free: the first in the queue waits for other keys too',
  );
  #moreHolds = element('span', { class: 'quiet' });
  #holdCell = element('td', { role: 'cell', class: 'holds' });
  #count = element('span', { class: 'queue-count' });
  #queueList = element('ol', { class: 'queue' });
  #queueCell = element('td', { role: 'cell', class: 'waiting' }, this.#count, this.#queueList);
  #fence = element('td', { role: 'cell', class: 'fence' });
  #holds = [];
  #waiters = [];
  #idleAge = new Age();
  #newest = null; // the largest fence seen here

  constructor(lock) {
    const name = nameElement('a', lock.key, { class: 'key', href: keyAddress(lock.key) });
    this.element = element(
      'tr',
      { role: 'row' },
      element('th', { role: 'rowheader', scope: 'row' }, name, this.#permits),
      this.#holdCell,
      this.#queueCell,
      this.#fence,
    );
    this.#idle.append('idle for ', this.#idleAge.element);
  }

  static identity(lock) {
    return `${lock.kind}:${lock.key}`;
  }

  show(lock, now) {
    const replied = repliedAt(lock, now);
    setText(
      this.#permits,
      lock.kind === 'semaphore'
        ? `${formatCount(permitsInUse(lock))} of ${formatCount(lock.limit)}`
        : '',
    );
    this.#showHolds(lock, replied);
    this.#showQueue(lock, replied);
    this.#showFence(Math.max(0, ...lock.holds.map((hold) => hold.token)));
    this.tick(now);
  }

  tick(now) {
    for (const line of this.#holds) line.tick(now);
    for (const line of this.#waiters) line.tick(now);
    if (this.#idle.isConnected) this.#idleAge.tick(now);
  }

  #showHolds(lock, replied) {
    const shown = lock.holds.slice(0, holdsShown);
    fitLines(this.#holds, shown.length, () => new HoldLine());
    shown.forEach((hold, i) => this.#holds[i].show(hold, replied, lock.waiters > 0));
    const parts = this.#holds.map((line) => line.element);
    const hidden = lock.holders - shown.length;
    if (hidden > 0) parts.push(this.#moreHolds);
    setText(this.#moreHolds, `${shown.length > 0 ? 'and ' : ''}${plural(hidden, 'other')}`);
    if (lock.holders === 0 && lock.waiters > 0) parts.push(this.#free);
    if (lock.idle_ms !== undefined) {
      this.#idleAge.show(replied - lock.idle_ms);
      parts.push(this.#idle);
    }
    arrange(this.#holdCell, parts);
  }

  #showQueue(lock, replied) {
    const shown = lock.queue.slice(0, waitersShown);
    fitLines(this.#waiters, shown.length, () => new WaitLine());
    shown.forEach((waiter, i) => this.#waiters[i].show(waiter, replied));
    arrange(
      this.#queueList,
      this.#waiters.map((line) => line.element),
    );
    setText(this.#count, lock.waiters > 0 ? formatCount(lock.waiters) : '');
    setHidden(this.#queueList, lock.waiters === 0);
  }

  // Of the newest grant that is held, or 0.
  #showFence(newest) {
    setText(this.#fence, newest > 0 ? String(newest) : '');
    if (this.#newest !== null && newest > this.#newest) this.#flash();
    this.#newest = Math.max(this.#newest ?? 0, newest);
  }

  // The key has passed on: for a moment the row says so. Two animations that look the same, in
  // turns: one that is set again would not run again.
  #flash() {
    this.element.dataset.passed = this.element.dataset.passed === 'once' ? 'again' : 'once';
  }
}
