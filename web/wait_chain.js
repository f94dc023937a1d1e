// Who waits for whom: what the holders of a key wait for themselves, who holds that, and so on, as
// far as a few questions to the server lead. A circle is shown as such.
import { byId, element, nameElement, setHidden } from './dom.js';
import { Age } from './lease.js';
import { Poll } from './poll.js';
import { keyAddress } from './route.js';
import { Who } from './who.js';

const stepsMost = 8;
const holdersMost = 3; // of each key
const waitsMost = 3; // of each holder
const callsMost = 24; // for the whole chain

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
      const links = await followKey(new Questions(this.#api, signal), this.#key, null, []);
      if (!signal.aborted) this.#show(links);
    } catch {
      // The heartbeat says what is wrong.
    }
  }

  // Drawn anew when it is another chain: else the reader's place is left alone.
  #show(links) {
    setHidden(byId('chain'), !links.some((link) => link.waits.length > 0));
    const drawn = JSON.stringify(links, (name, value) => (name === 'waited_ms' ? 0 : value));
    if (drawn !== this.#drawn) {
      this.#drawn = drawn;
      this.#ages = [];
      byId('chain-list').replaceChildren(...links.map((link) => this.#drawHolder(link)));
    }
    const now = this.#clock.now();
    waitsIn(links).forEach((waitedMs, i) => this.#ages[i].showWait(now - waitedMs));
    this.tick(now);
  }

  #drawHolder({ holder, waits, isCut }) {
    const parts = [drawWho(holder)];
    if (waits.length === 0 && !isCut) parts.push(element('span', {}, ' waits for nothing'));
    if (isCut) parts.push(element('span', { class: 'quiet' }, ' … and so on'));
    return element('li', {}, ...parts, ...waits.map((wait) => this.#drawWait(wait)));
  }

  #drawWait({ key, isCircle, links, others }) {
    const age = new Age();
    this.#ages.push(age);
    const list = element('ol', {}, ...links.map((link) => this.#drawHolder(link)));
    if (others > 0) list.append(element('li', { class: 'quiet' }, `and ${others} more`));
    return element(
      'div',
      { class: isCircle ? 'chain-wait circle' : 'chain-wait' },
      'waits for ',
      nameElement('a', key, { class: 'key', href: keyAddress(key) }),
      ' for ',
      age.element,
      ...(isCircle ? [circleWords()] : [', held by', list]),
    );
  }
}

function circleWords() {
  return element('strong', {}, ': a circle, in which nobody goes on by waiting');
}

// How long each of them has waited, in the order in which they are drawn.
function waitsIn(links) {
  return links.flatMap(({ waits }) =>
    waits.flatMap((wait) => [wait.waited_ms, ...waitsIn(wait.links)]),
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

// [{holder, waits, isCut}] for those who hold it, as a key of one kind or of both.
async function followKey(questions, key, kind, path) {
  const locks = await questions.list({ key });
  const links = [];
  for (const lock of locks.filter((lock) => kind === null || lock.kind === kind)) {
    for (const hold of lock.holds.slice(0, holdersMost)) {
      links.push(await followHolder(questions, hold, [...path, identity(lock)]));
    }
  }
  return links;
}

// `path` are the keys that led here.
async function followHolder(questions, hold, path) {
  const { holder, client, peer, note, client_id } = hold;
  const link = { holder: { holder, client, peer, note, client_id }, waits: [], isCut: false };
  if (path.length > stepsMost || !questions.mayAsk) return { ...link, isCut: true };
  const theirs = await questions.list({ holder, order: 'longest_wait', limit: waitsMost });
  for (const lock of theirs.filter(({ queue }) => queue.length > 0)) {
    link.waits.push(await followWait(questions, lock, path));
  }
  return link;
}

async function followWait(questions, lock, path) {
  const { key, kind, holders, queue } = lock;
  const isCircle = path.includes(identity(lock));
  const isFollowed = !isCircle && questions.mayAsk;
  const links = isFollowed ? await followKey(questions, key, kind, path) : [];
  const others = isCircle ? 0 : holders - links.length;
  return { key, waited_ms: queue[0].waited_ms, isCircle, links, others };
}

function identity({ kind, key }) {
  return `${kind}:${key}`;
}
