// Who waits for whom: what the holders of a key wait for themselves, who holds that, and so on, as
// far as a few questions to the server lead. A circle is shown as such. Where a key stands free,
// the first in its queue is in the way of the others, and is followed to the keys it waits for
// besides.
import { firstWithRoom } from './capacity.js';
import { byId, element, nameElement, setHidden, setText } from './dom.js';
import { plural } from './format.js';
import { Age } from './lease.js';
import { Poll } from './poll.js';
import { keyAddress } from './route.js';
import { Who } from './who.js';

const stepsMost = 8;
const holdersAsked = 8; // of each key
const holdersShown = 3; // of each key, and all of those who wait
const waitsAsked = 64; // of each holder: as many keys as one may wait for at once
const waitsShown = 3;
const callsMost = 24; // for the whole chain
const titles = {
  held: 'Its holders wait themselves',
  free: 'The first in its queue waits for other keys',
};

export class WaitChain {
  #api;
  #clock;
  #key = '';
  #ages = [];
  #drawn = '';
  #poll = new Poll((signal) => this.#refresh(signal), { everyMs: 2000 });

  constructor(api, clock) {
    this.#api = api;
    this.#clock = clock;
  }

  start(key) {
    if (key !== this.#key) setHidden(byId('chain'), true);
    this.#key = key;
    this.#poll.start();
  }

  stop() {
    this.#poll.stop();
  }

  tick(now) {
    for (const age of this.#ages) age.tick(now);
  }

  async #refresh(signal) {
    try {
      const chain = await followKey(new Questions(this.#api, signal), this.#key, null, []);
      if (!signal.aborted) this.#show(chain);
    } catch {
      // The heartbeat says what is wrong.
    }
  }

  // Drawn anew when it is another chain: else the reader's place is left alone.
  #show(chain) {
    setHidden(byId('chain'), !chain.links.some((link) => link.waits.length > 0));
    const drawn = JSON.stringify(chain, (name, value) => (name === 'waited_ms' ? 0 : value));
    if (drawn !== this.#drawn) {
      this.#drawn = drawn;
      this.#ages = [];
      setText(byId('chain-title'), chain.isFree ? titles.free : titles.held);
      byId('chain-list').replaceChildren(...this.#drawChain(chain));
    }
    const now = this.#clock.now();
    waitsIn(chain).forEach((waitedMs, i) => this.#ages[i].showWait(now - waitedMs));
    this.tick(now);
  }

  #drawChain({ links, others }) {
    const entries = links.map((link) => this.#drawLink(link));
    if (others > 0) entries.push(element('li', { class: 'quiet' }, `and ${others} more`));
    return entries;
  }

  #drawLink({ who, waits, others, isCut }) {
    const parts = [drawWho(who)];
    if (waits.length === 0 && !isCut) parts.push(element('span', {}, ' waits for nothing'));
    if (isCut) parts.push(element('span', { class: 'quiet' }, ' … and so on'));
    parts.push(...waits.map((wait) => this.#drawWait(wait)));
    if (others > 0) {
      const words = `and for ${plural(others, 'key')} more`;
      parts.push(element('div', { class: 'chain-wait quiet' }, words));
    }
    return element('li', {}, ...parts);
  }

  #drawWait(wait) {
    const age = new Age();
    this.#ages.push(age);
    return element(
      'div',
      { class: wait.isCircle ? 'chain-wait circle' : 'chain-wait' },
      'waits for ',
      nameElement('a', wait.key, { class: 'key', href: keyAddress(wait.key) }),
      ' for ',
      age.element,
      ...this.#drawReason(wait),
    );
  }

  #drawReason({ isCircle, chain }) {
    if (isCircle) {
      return [element('strong', {}, ': a circle, in which nobody goes on by waiting')];
    }
    if (chain.isNext) return [', which has room for it'];
    return [
      chain.isFree ? ', which has room for the first in its queue' : ', held by',
      element('ol', {}, ...this.#drawChain(chain)),
    ];
  }
}

// How long each of them has waited, in the order in which they are drawn.
function waitsIn({ links }) {
  return links.flatMap(({ waits }) =>
    waits.flatMap((wait) => [wait.waited_ms, ...waitsIn(wait.chain)]),
  );
}

function drawWho(entry) {
  const who = new Who();
  who.show(entry);
  return who.element;
}

// What one picture may cost the server.
class Questions {
  #api;
  #signal;
  #left = callsMost;

  constructor(api, signal) {
    this.#api = api;
    this.#signal = signal;
  }

  get mayAsk() {
    return this.#left > 0;
  }

  async list(parameters) {
    this.#left--;
    return (await this.#api.get('v1/locks', parameters, this.#signal)).locks;
  }
}

const nobody = { links: [], others: 0, isFree: false, isNext: false };

// Who is in the way at a key, of one kind or of both: those who hold it or, where it has room, the
// first in its queue; `others` are left out. `isNext`: that first is the `asker` itself. `path` are
// the keys that led here.
async function followKey(questions, key, kind, path, asker = null) {
  const locks = await questions.list({ key });
  const chain = { ...nobody, links: [] };
  for (const lock of locks.filter((lock) => kind === null || lock.kind === kind)) {
    const first = firstWithRoom(lock);
    const isFree = first !== null;
    if (isFree && first.holder === asker) return { ...nobody, isNext: true };
    const inTheWay = isFree ? [first] : lock.holds.slice(0, holdersAsked);
    const links = await followEach(questions, inTheWay, [...path, identity(lock)], isFree);
    chain.links.push(...links);
    chain.others += (isFree ? 1 : lock.holders) - links.length;
    chain.isFree ||= isFree;
  }
  return chain;
}

// [{who, waits, others, isCut}]. All are asked about before one is followed, so that a long chain
// does not use up what may be asked; and those who wait are shown before those who do not.
async function followEach(questions, entries, path, isFree) {
  const waiting = [];
  const others = [];
  for (const entry of entries) {
    const locks = await askWaits(questions, entry, path, isFree);
    (locks?.length > 0 ? waiting : others).push({ entry, locks });
  }
  const links = [];
  const shown = [...waiting, ...others.slice(0, Math.max(holdersShown - waiting.length, 0))];
  for (const { entry, locks } of shown) {
    links.push(await followWaits(questions, entry, locks, path));
  }
  return links;
}

// The keys that somebody waits for, those that are held first; null when it is not asked. Where the
// last key of `path` is free, that one is not among them: it is known.
async function askWaits(questions, { holder }, path, isFree) {
  if (path.length > stepsMost || !questions.mayAsk) return null;
  const theirs = await questions.list({ holder, order: 'longest_wait', limit: waitsAsked });
  return theirs
    .filter((lock) => lock.queue.length > 0 && !(isFree && identity(lock) === path.at(-1)))
    .sort((a, b) => Number(b.holders > 0) - Number(a.holders > 0));
}

async function followWaits(questions, entry, locks, path) {
  const { holder, mode, permits, client, peer, note, client_id } = entry;
  const who = { holder, mode, permits, client, peer, note, client_id };
  if (locks === null) return { who, waits: [], others: 0, isCut: true };
  const waits = [];
  for (const lock of locks.slice(0, waitsShown)) {
    waits.push(await followWait(questions, lock, path, holder));
  }
  return { who, waits, others: locks.length - waits.length, isCut: false };
}

async function followWait(questions, lock, path, asker) {
  const { key, kind, holders, queue } = lock;
  const isCircle = path.includes(identity(lock));
  let chain = nobody;
  if (!isCircle) {
    chain = questions.mayAsk
      ? await followKey(questions, key, kind, path, asker)
      : { ...nobody, others: holders, isFree: holders === 0 };
  }
  return { key, waited_ms: queue[0].waited_ms, isCircle, chain };
}

function identity({ kind, key }) {
  return `${kind}:${key}`;
}
