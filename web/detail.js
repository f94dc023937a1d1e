// One key: its holders with their leases, its queue in order, who held it lately, and what its
// holders wait for themselves. A lock and a semaphore may share a name; then both are shown.
import { firstWithRoom, isShared, permitsInUse } from './capacity.js';
import { arrange, byId, element, setHidden, setName, setText } from './dom.js';
import { formatCount, plural, spellOut } from './format.js';
import { Age, fitLines, LeaseMeter, repliedAt } from './lease.js';
import { Poll } from './poll.js';
import { Timeline } from './timeline.js';
import { WaitChain } from './wait_chain.js';
import { Who } from './who.js';

const linesAtFirst = 100;
const eventsDrawn = 500;

export class Detail {
  #api;
  #clock;
  #log;
  #admin;
  #chain;
  #key = null;
  #parts = new Map(); // kind -> DetailPart
  #poll = new Poll((signal) => this.#refresh(signal), { everyMs: 1000, soonestMs: 250 });

  constructor(api, clock, log, admin) {
    this.#api = api;
    this.#clock = clock;
    this.#log = log;
    this.#admin = admin;
    this.#chain = new WaitChain(api, clock);
  }

  start(key) {
    if (key !== this.#key) this.#open(key);
    this.#poll.start();
    this.#chain.start(key);
  }

  stop() {
    this.#poll.stop();
    this.#chain.stop();
  }

  poke() {
    this.#poll.poke();
  }

  tick(now) {
    for (const part of this.#parts.values()) part.tick(now);
    this.#chain.tick(now);
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
      const part = this.#parts.get(lock.kind) ?? new DetailPart(lock.kind, this.#admin);
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
  #admin;
  #lock = null; // as it was shown last
  #holds = new Lines(
    'Held by',
    'ul',
    () => new HoldEntry((hold) => this.#admin.release(this.#lock, hold)),
  );
  #queue = new Lines('Queue', 'ol', () => new WaitEntry());
  #kept = element('span', { class: 'kept quiet' });
  #idle = element('span', { class: 'quiet' }, 'idle for ');
  #idleAge = new Age();

  #resize = element(
    'button',
    { type: 'button', class: 'act', click: () => this.#admin.resize(this.#lock) },
    'Resize…',
  );

  constructor(kind, admin) {
    this.#admin = admin;
    this.#idle.append(this.#idleAge.element);
    this.element = element(
      'section',
      { class: 'detail-part', 'data-kind': kind },
      element(
        'p',
        { class: 'detail-state' },
        this.#what,
        this.#kept,
        this.#idle,
        kind === 'semaphore' ? this.#resize : '',
      ),
      this.#timeline.element,
      element('div', { class: 'detail-lists' }, this.#holds.element, this.#queue.element),
    );
  }

  show(lock, events, now) {
    const replied = repliedAt(lock, now);
    this.#lock = lock;
    this.#showState(lock, replied);
    this.#holds.show(lock.holds, lock.holders, replied, lock.waiters > 0);
    this.#queue.show(lock.queue, lock.waiters, replied, false);
    this.#timeline.draw(events, lock.holds, now);
    this.tick(now);
  }

  tick(now) {
    this.#holds.tick(now);
    this.#queue.tick(now);
    this.#idleAge.tick(now);
  }

  #showState(lock, replied) {
    setText(this.#what, describeState(lock));
    const first = firstWithRoom(lock);
    setHidden(this.#kept, first === null);
    if (first !== null) {
      setText(
        this.#kept,
        'has room for the first in the queue, who waits for ' +
          `${plural((first.keys ?? 1) - 1, 'other key')} too`,
      );
    }
    setHidden(this.#idle, lock.idle_ms === undefined);
    this.#idleAge.show(replied - (lock.idle_ms ?? 0));
    this.#resize.disabled = lock.holders + lock.waiters === 0; // there is nothing to resize
  }
}

function describeState(lock) {
  const { kind, holders, limit } = lock;
  if (kind === 'semaphore') {
    return `Semaphore, ${formatCount(permitsInUse(lock))} of ${formatCount(limit)} held`;
  }
  if (isShared(lock)) return `Lock, shared by ${plural(holders, 'holder')}`;
  return `Lock, ${holders > 0 ? 'held' : 'free'}`;
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

  show(entries, total, replied, somebodyWaits) {
    this.#shown = [entries, total, replied, somebodyWaits];
    const visible = entries.slice(0, this.#most);
    fitLines(this.#lines, visible.length, this.#make);
    visible.forEach((entry, i) => this.#lines[i].show(entry, replied, somebodyWaits));
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
  #who = new Who(true);
  #hold = null; // as it was shown last
  #fence = element('span', { class: 'quiet fence' });
  #age = new Age();
  #lease = new LeaseMeter(400);
  element = element(
    'li',
    { class: 'hold-entry' },
    this.#who.element,
    element('span', { class: 'quiet' }, 'held for ', this.#age.element),
    this.#lease.element,
    this.#fence,
  );

  // `release(hold)` is for those who may.
  constructor(release) {
    this.element.append(
      element(
        'button',
        { type: 'button', class: 'act', click: () => release(this.#hold) },
        'Release…',
      ),
    );
  }

  show(hold, replied, somebodyWaits) {
    this.#hold = hold;
    this.#who.show(hold);
    setText(this.#fence, `fence ${hold.token}`);
    this.#age.showHold(replied - hold.held_ms, somebodyWaits);
    this.#lease.show(hold);
  }

  tick(now) {
    this.#age.tick(now);
    this.#lease.tick(now);
  }
}

class WaitEntry {
  #who = new Who(true);
  #age = new Age();
  element = element('li', { class: 'wait-entry' }, this.#who.element, this.#age.element);

  show(waiter, replied) {
    this.#who.show(waiter);
    this.#age.showWait(replied - waiter.waited_ms);
  }

  tick(now) {
    this.#age.tick(now);
  }
}
