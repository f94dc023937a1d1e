// One key: its holders with their leases, its queue in order, and who held it lately. A lock and a
// semaphore may share a name; then both are shown.
import { arrange, byId, element, nameElement, setHidden, setName, setText } from './dom.js';
import { formatCount, plural, spellOut } from './format.js';
import { Age, fitLines, LeaseMeter, repliedAt } from './lease.js';
import { Poll } from './poll.js';
import { Timeline } from './timeline.js';

const linesAtFirst = 100;
const eventsDrawn = 500;

export class Detail {
  #api;
  #clock;
  #log;
  #key = null;
  #parts = new Map(); // kind -> DetailPart
  #poll = new Poll((signal) => this.#refresh(signal), { everyMs: 1000, soonestMs: 250 });

  constructor(api, clock, log) {
    this.#api = api;
    this.#clock = clock;
    this.#log = log;
  }

  start(key) {
    if (key !== this.#key) this.#open(key);
    this.#poll.start();
  }

  stop() {
    this.#poll.stop();
  }

  poke() {
    this.#poll.poke();
  }

  tick(now) {
    for (const part of this.#parts.values()) part.tick(now);
  }

  #open(key) {
    this.#key = key;
    this.#parts.clear();
    byId('detail-parts').replaceChildren();
    setHidden(byId('detail-none'), true);
    setName(byId('detail-key'), key);
    const spelled = spellOut(key);
    setText(byId('detail-spelled'), spelled === null ? '' : `spelled out: ${spelled}`);
    setText(byId('detail-size'), plural(new TextEncoder().encode(key).length, 'byte'));
  }

  async #refresh(signal) {
    let locks;
    try {
      ({ locks } = await this.#api.get('v1/locks', { key: this.#key, idle: 'true' }, signal));
    } catch {
      return; // the heartbeat says what is wrong
    }
    if (signal.aborted) return;
    const now = this.#clock.now();
    const parts = new Map();
    for (const lock of locks) {
      const part = this.#parts.get(lock.kind) ?? new DetailPart(lock.kind);
      parts.set(lock.kind, part);
    }
    this.#parts = parts;
    arrange(
      byId('detail-parts'),
      [...parts.values()].map((part) => part.element),
    );
    for (const lock of locks) {
      const events = this.#log.recent(
        (event) => event.key === lock.key && event.kind === lock.kind,
        eventsDrawn,
      );
      parts.get(lock.kind).show(lock, events, now);
    }
    setHidden(byId('detail-none'), locks.length > 0);
  }
}

class DetailPart {
  #what = element('strong');
  #timeline = new Timeline();
  #holds = new Lines('Held by', 'ul', () => new HoldEntry());
  #queue = new Lines('Queue', 'ol', () => new WaitEntry());
  #idle = element('span', { class: 'quiet' }, 'idle for ');
  #idleAge = new Age();

  constructor(kind) {
    this.#idle.append(this.#idleAge.element);
    this.element = element(
      'section',
      { class: 'detail-part', 'data-kind': kind },
      element('p', { class: 'detail-state' }, this.#what, this.#idle),
      this.#timeline.element,
      element('div', { class: 'detail-lists' }, this.#holds.element, this.#queue.element),
    );
  }

  show(lock, events, now) {
    const replied = repliedAt(lock, now);
    this.#showState(lock, replied);
    this.#holds.show(lock.holds, lock.holders, replied);
    this.#queue.show(lock.queue, lock.waiters, replied);
    this.#timeline.draw(events, lock.holds, now);
    this.tick(now);
  }

  tick(now) {
    this.#holds.tick(now);
    this.#queue.tick(now);
    this.#idleAge.tick(now);
  }

  #showState(lock, replied) {
    const what =
      lock.kind === 'semaphore'
        ? `Semaphore, ${formatCount(lock.holders)} of ${formatCount(lock.limit)} held`
        : `Lock, ${lock.holders > 0 ? 'held' : 'free'}`;
    setText(this.#what, what);
    setHidden(this.#idle, lock.idle_ms === undefined);
    this.#idleAge.show(replied - (lock.idle_ms ?? 0));
  }
}

// A list under a heading, of which a part is shown until the reader asks for more.
class Lines {
  #title;
  #list;
  #more = element('button', { type: 'button', class: 'more', click: () => this.#showMore() });
  #heading = element('h3');
  #make;
  #lines = [];
  #most = linesAtFirst;
  #shown = null; // the last arguments of show

  constructor(title, tag, make) {
    this.#title = title;
    this.#make = make;
    this.#list = element(tag, { class: 'detail-list' });
    this.element = element('div', {}, this.#heading, this.#list, this.#more);
  }

  show(entries, total, replied) {
    this.#shown = [entries, total, replied];
    const visible = entries.slice(0, this.#most);
    fitLines(this.#lines, visible.length, this.#make);
    visible.forEach((entry, i) => this.#lines[i].show(entry, replied));
    arrange(
      this.#list,
      this.#lines.map((line) => line.element),
    );
    setText(
      this.#heading,
      total > 0 ? `${this.#title} (${formatCount(total)})` : `${this.#title}: nobody`,
    );
    const hidden = total - visible.length;
    setHidden(this.#more, hidden === 0);
    this.#more.disabled = visible.length === entries.length; // the server names no more than these
    setText(this.#more, `${this.#more.disabled ? 'and' : 'show'} ${formatCount(hidden)} more`);
  }

  tick(now) {
    for (const line of this.#lines) line.tick(now);
  }

  #showMore() {
    this.#most *= 4;
    this.show(...this.#shown);
  }
}

class HoldEntry {
  #holder = nameElement('span', '', { class: 'holder' });
  #fence = element('span', { class: 'quiet fence' });
  #age = new Age();
  #lease = new LeaseMeter(400);
  element = element(
    'li',
    { class: 'hold-entry' },
    this.#holder,
    this.#lease.element,
    element('span', { class: 'quiet' }, 'for ', this.#age.element),
    this.#fence,
  );

  show(hold, replied) {
    setName(this.#holder, hold.holder);
    setText(this.#fence, `fence ${hold.token}`);
    this.#age.show(replied - hold.held_ms);
    this.#lease.show(hold);
  }

  tick(now) {
    this.#age.tick(now);
    this.#lease.tick(now);
  }
}

class WaitEntry {
  #holder = nameElement('span', '', { class: 'holder' });
  #age = new Age();
  element = element('li', { class: 'wait-entry' }, this.#holder, this.#age.element);

  show(waiter, replied) {
    setName(this.#holder, waiter.holder);
    this.#age.show(replied - waiter.waited_ms);
  }

  tick(now) {
    this.#age.tick(now);
  }
}
