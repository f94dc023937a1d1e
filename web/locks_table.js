// The table of keys: one page of what the server has, refreshed while it is looked at. However many
// keys there are, the page asks for and shows no more than `pageSize` of them.
import { arrange, byId, element, setHidden, setText } from './dom.js';
import { formatCount, plural } from './format.js';
import { LockRow } from './lock_row.js';
import { Poll } from './poll.js';
import { noSearch, searchParameters } from './route.js';

const pageSize = 50;
const searchWords = {
  contains: ' under names that contain ',
  prefix: ' under names that begin with ',
  holder: ' by ',
  client_id: ' by the client with the id ',
};
const callsPerPage = 4; // a page of a narrow search may come in several short answers

export class LocksTable {
  #api;
  #clock;
  #rows = new Map(); // identity -> LockRow
  #search = noSearch;
  #cursors = ['']; // where this page and those before it begin
  #next = null;
  #poll = new Poll((signal) => this.#refresh(signal), { everyMs: 1000, soonestMs: 250 });
  #body = byId('locks-body');
  #order = byId('locks-order');
  #idle = byId('locks-idle');
  #firstSteps = byId('first-steps');

  constructor(api, clock) {
    this.#api = api;
    this.#clock = clock;
    byId('locks-next').addEventListener('click', () => this.#turn([...this.#cursors, this.#next]));
    byId('locks-previous').addEventListener('click', () => this.#turn(this.#cursors.slice(0, -1)));
    for (const control of [this.#order, this.#idle]) {
      control.addEventListener('change', () => this.#turn(['']));
    }
    this.#body.addEventListener('keydown', (event) => moveFocus(event));
  }

  start(search) {
    this.#search = search;
    this.#turn(['']);
  }

  stop() {
    this.#poll.stop();
  }

  // Something happened to a key that may be in sight.
  poke() {
    this.#poll.poke();
  }

  tick(now) {
    for (const row of this.#rows.values()) row.tick(now);
  }

  #turn(cursors) {
    this.#cursors = cursors;
    this.#poll.start();
  }

  async #refresh(signal) {
    try {
      const page = await this.#fetchPage(signal);
      if (!signal.aborted) this.#show(page);
    } catch (error) {
      if (error.status !== 400 || signal.aborted) return;
      // A cursor of a server that was restarted means nothing to its successor; and what cannot be
      // the number of a connection finds nothing.
      if (this.#cursors.length > 1) this.#cursors = [''];
      else this.#show({ locks: [], next: null });
    }
  }

  async #fetchPage(signal) {
    const page = { locks: [], next: this.#cursors.at(-1) };
    for (let calls = 0; calls < callsPerPage; calls++) {
      const part = await this.#api.get(
        'v1/locks',
        {
          ...searchParameters(this.#search),
          limit: pageSize - page.locks.length,
          after: page.next,
          order: this.#order.value,
          idle: this.#idle.checked ? 'true' : '',
        },
        signal,
      );
      page.locks.push(...part.locks);
      page.next = part.next ?? null;
      if (page.next === null || page.locks.length >= pageSize) break;
    }
    return page;
  }

  #show({ locks, next }) {
    const now = this.#clock.now();
    if (this.#order.value === '')
      locks.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
    const rows = new Map();
    for (const lock of locks) {
      const identity = LockRow.identity(lock);
      const row = this.#rows.get(identity) ?? new LockRow(lock);
      row.show(lock, now);
      rows.set(identity, row);
    }
    this.#rows = rows;
    arrange(
      this.#body,
      [...rows.values()].map((row) => row.element),
    );
    this.#showEnds(locks.length, next);
  }

  #showEnds(count, next) {
    this.#next = next;
    const page = this.#cursors.length;
    const searching = this.#search.text !== '';
    setHidden(byId('locks-pages'), page === 1 && next === null);
    byId('locks-previous').disabled = page === 1;
    byId('locks-next').disabled = next === null;
    setText(byId('locks-page'), `Page ${formatCount(page)}`);
    setText(
      byId('locks-shown'),
      plural(count, 'key') + (next === null && page === 1 ? '' : ' shown'),
    );
    setHidden(byId('locks'), count === 0);
    setHidden(this.#firstSteps, count > 0 || searching || page > 1);
    const none = byId('locks-none');
    setHidden(none, count > 0 || !this.#firstSteps.hidden);
    none.replaceChildren(
      'Nothing is held or waited for',
      ...(searching
        ? [searchWords[this.#search.by], element('bdi', { class: 'key' }, this.#search.text)]
        : []),
      '.',
    );
  }
}

// Arrow keys go from key to key.
function moveFocus(event) {
  const step = { ArrowDown: 'nextElementSibling', ArrowUp: 'previousElementSibling' }[event.key];
  const row = step && event.target.closest('tr')?.[step];
  if (!row) return;
  row.querySelector('a').focus();
  event.preventDefault();
}
