// The numbers at the top: what is held and waited for, how fast things happen, and how the server
// is. Draws the history that it is given.
import { byId, element, setHidden, setText } from './dom.js';
import { formatCount, formatDuration, formatRate, plural } from './format.js';
import { Sparkline } from './sparkline.js';

const rateWindowMs = 5000;
const journals = {
  none: 'no journal: a restart forgets everything',
  accepting: 'journal in order',
  full: 'journal full',
  following: 'follows the leader',
  failed: 'journal failed',
};
// Of a server on its own; how a cluster is stands in its own words.
const notices = {
  full: 'The journal is full: nothing new is granted until its disk has room. Releases work.',
  failed: 'The journal has failed: nothing more is granted. Read the log, then restart the server.',
};

class Tile {
  #number = element('span', { class: 'tile-number' });
  #note = element('span', { class: 'tile-note' });
  #spark = new Sparkline();

  constructor(name, title, unit) {
    this.element = element(
      'div',
      { class: `tile tile-${name}`, role: 'group', 'aria-label': title },
      element('span', { class: 'tile-title' }, title),
      element(
        'span',
        { class: 'tile-figure' },
        this.#number,
        element('span', { class: 'tile-unit' }, unit),
      ),
      this.#note,
      this.#spark.element,
    );
  }

  show(number, note, points, history) {
    setText(this.#number, number);
    setText(this.#note, note);
    this.#spark.draw(points, history.last().at, history.spanMs());
  }
}

export class Overview {
  #gauges = { held: new Tile('held', 'Held', ''), waiting: new Tile('waiting', 'Waiting', '') };
  #rates = {
    grants: new Tile('grants', 'Grants', '/s'),
    contended: new Tile('contended', 'Contended', '/s'),
    expiries: new Tile('expiries', 'Expiries', '/s'),
    timeouts: new Tile('timeouts', 'Timeouts', '/s'),
  };

  constructor() {
    const tiles = [...Object.values(this.#gauges), ...Object.values(this.#rates)];
    byId('tiles').append(...tiles.map((tile) => tile.element));
  }

  show(overview, history) {
    const last = history.last();
    this.#gauges.held.show(
      formatCount(last.held),
      split(overview.locks_held, overview.semaphore_holders),
      history.gauge('held'),
      history,
    );
    this.#gauges.waiting.show(
      formatCount(last.waiting),
      split(overview.lock_waiters, overview.semaphore_waiters),
      history.gauge('waiting'),
      history,
    );
    for (const [name, tile] of Object.entries(this.#rates)) {
      tile.show(
        formatRate(history.rate(name, rateWindowMs)),
        `${formatCount(overview.totals[name])} in all`,
        history.rates(name),
        history,
      );
    }
    this.#showServer(overview);
    const [held, waiting] = [formatCount(last.held), formatCount(last.waiting)];
    document.title = `lockd · ${held} held · ${waiting} waiting`;
  }

  #showServer(overview) {
    const { keys } = overview;
    setText(byId('version'), overview.version);
    setText(
      byId('server-keys'),
      `${plural(keys.count, 'key')} of ${formatCount(keys.max)}` +
        (keys.idle > 0 ? `, ${formatCount(keys.idle)} idle` : ''),
    );
    byId('server-keys').classList.toggle('warned', keys.count > 0.9 * keys.max);
    setText(byId('server-connections'), plural(overview.connections, 'connection'));
    setText(byId('server-uptime'), `up ${formatDuration(overview.uptime_ms)}`);
    setText(byId('server-journal'), journals[overview.journal] ?? `journal ${overview.journal}`);
    const notice = noticeOf(overview);
    setText(byId('notice'), notice);
    setHidden(byId('notice'), notice === '');
  }
}

function noticeOf({ draining, cluster, journal, ready }) {
  if (draining) {
    return 'The server is shutting down: it grants nothing new and lets what is held end.';
  }
  if (cluster !== undefined) return '';
  return notices[journal] ?? (ready ? '' : 'The server is not ready.');
}

function split(locks, semaphores) {
  return `locks ${formatCount(locks)} · semaphores ${formatCount(semaphores)}`;
}
