// The keys that matter most now: those with the longest queues, as the server says, and those that
// were granted most, as the stream told.
import { byId, element, nameElement, setHidden } from './dom.js';
import { formatCount } from './format.js';
import { GrantTally } from './grant_tally.js';
import { Poll } from './poll.js';
import { isAbout, keyAddress, noSearch, searchAddress, searchParameters } from './route.js';

const shown = 5;

export class HotKeys {
  #api;
  #clock;
  #search = noSearch;
  #tally = new GrantTally();
  #poll = new Poll((signal) => this.#refresh(signal), { everyMs: 2000 });

  constructor(api, clock) {
    this.#api = api;
    this.#clock = clock;
  }

  start(search) {
    if (searchAddress(search) !== searchAddress(this.#search)) this.#tally = new GrantTally();
    this.#search = search;
    this.#poll.start();
  }

  stop() {
    this.#poll.stop();
  }

  add(events) {
    for (const event of events) {
      if (event.type === 'granted' && isAbout(this.#search, event))
        this.#tally.add(event.key, this.#clock.now());
    }
  }

  async #refresh(signal) {
    const mostGrants = this.#tally.top(shown, this.#clock.now());
    drawRanking(
      'hot-grants',
      mostGrants.map(({ key, grants }) => ({ key, size: grants })),
    );
    try {
      const { locks } = await this.#api.get(
        'v1/locks',
        { ...searchParameters(this.#search), order: 'waiters', limit: shown },
        signal,
      );
      const queues = locks.filter((lock) => lock.waiters > 0);
      if (!signal.aborted) {
        drawRanking(
          'hot-queues',
          queues.map(({ key, waiters }) => ({ key, size: waiters })),
        );
      }
    } catch {
      // The heartbeat says what is wrong.
    }
  }
}

// `ranking` is [{key, size}], largest first.
function drawRanking(id, ranking) {
  const most = ranking[0]?.size ?? 1;
  byId(id).replaceChildren(
    ...ranking.map(({ key, size }) => {
      const bar = element('span', { class: 'rank-bar', 'aria-hidden': 'true' });
      bar.style.transform = `scaleX(${size / most})`;
      return element(
        'li',
        {},
        bar,
        nameElement('a', key, { class: 'key', href: keyAddress(key) }),
        element('span', { class: 'rank-size' }, formatCount(size)),
      );
    }),
  );
  setHidden(byId(`${id}-none`), ranking.length > 0);
}
