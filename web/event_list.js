// What happened, newest first. It may be paused: then what comes is counted, and shown when
// it goes on.
import { byId, element, nameElement, setHidden, setText } from './dom.js';
import {
  describeShare,
  formatCount,
  formatLatency,
  formatTime,
  plural,
  visibleName,
} from './format.js';
import { keyAddress, whoAddress } from './route.js';
import { describeWho } from './who.js';

const entriesMost = 100;
const gatherMs = 250; // a list that changes more often cannot be read
const verbs = {
  granted: 'granted',
  queued: 'queued',
  released: 'released',
  expired: 'expired',
  disconnected: 'disconnected',
  revoked: 'revoked',
  gave_up: 'gave up',
  refused: 'refused',
  slow_wait: 'long wait',
  slow_hold: 'long hold',
  resized: 'resized',
  kicked: 'cut off',
  auth_failed: 'not let in',
  started: 'started',
};

export class EventList {
  #log;
  #wanted = () => true;
  #list = byId('events-list');
  #pause = byId('events-pause');
  #held = 0; // how many came while paused
  #fresh = []; // events that are to be shown when the timer rings
  #timer = null;

  constructor(log) {
    this.#log = log;
    this.#pause.addEventListener('click', () => this.#togglePause());
  }

  // Shows the events that `wanted` says yes to, from those that are known.
  filter(wanted) {
    this.#wanted = wanted;
    this.#showAll();
  }

  // There are more that were not known when they happened.
  showHistory() {
    if (!this.#isPaused()) this.#showAll();
  }

  add(events) {
    const wanted = events.filter((event) => event.type === 'missed' || this.#wanted(event));
    if (this.#isPaused()) {
      this.#held += wanted.length;
      this.#showPause();
      return;
    }
    this.#fresh.push(...wanted.slice(-entriesMost));
    if (this.#fresh.length > 0) this.#timer ??= setTimeout(() => this.#showFresh(), gatherMs);
  }

  // As EventStream says it.
  showState(state) {
    this.#list.setAttribute('aria-busy', String(state !== 'flowing'));
    setHidden(byId('events-lost'), state !== 'lost');
  }

  #isPaused() {
    return this.#pause.getAttribute('aria-pressed') === 'true';
  }

  #togglePause() {
    this.#pause.setAttribute('aria-pressed', String(!this.#isPaused()));
    this.#held = 0;
    this.#showPause();
    if (!this.#isPaused()) this.#showAll();
  }

  #showPause() {
    setText(byId('events-held'), this.#held > 0 ? `${plural(this.#held, 'event')} since` : '');
  }

  #showAll() {
    this.#fresh = this.#log.recent(this.#wanted, entriesMost);
    this.#list.replaceChildren();
    this.#showFresh();
  }

  #showFresh() {
    clearTimeout(this.#timer);
    this.#timer = null;
    const entries = this.#fresh.slice(-entriesMost).reverse().map(drawEvent);
    this.#fresh = [];
    this.#list.prepend(...entries);
    while (this.#list.childElementCount > entriesMost) this.#list.lastElementChild.remove();
    setHidden(byId('events-none'), this.#list.childElementCount > 0);
  }
}

function drawEvent(event) {
  if (event.type === 'missed') {
    return element(
      'li',
      { class: 'event missed' },
      `${plural(event.count, 'event')} missed: more happened than the server could send`,
    );
  }
  return element(
    'li',
    { class: `event ${event.type}` },
    element(
      'time',
      { datetime: new Date(event.at_unix_ms).toISOString() },
      formatTime(event.at_unix_ms),
    ),
    element('span', { class: 'verb' }, verbs[event.type] ?? event.type),
    event.key === undefined
      ? element('span', { class: 'quiet' }, 'the server')
      : nameElement('a', event.key, { class: 'key', href: keyAddress(event.key) }),
    element('span', { class: 'who' }, ...describeHolder(event), describeEvent(event)),
  );
}

// What happens to the server itself has none.
function describeHolder(event) {
  if (!event.holder) return [visibleName(describeWho(event))];
  const link = { class: 'holder', href: whoAddress(event) };
  const client = describeWho({ client: event.client, note: event.note });
  return [
    element('bdi', {}, nameElement('a', event.holder, link)),
    client === '' ? '' : ` ${visibleName(client)}`,
  ];
}

function describeEvent(event) {
  const parts = [];
  const share = describeShare(event);
  if (share !== '') parts.push(share);
  if (event.waited_ms > 0) parts.push(`waited ${formatLatency(event.waited_ms)}`);
  if (event.held_ms !== undefined) parts.push(`held ${formatLatency(event.held_ms)}`);
  if (event.type === 'resized') parts.push(`limit ${formatCount(event.limit)}`);
  if (event.reason) parts.push(visibleName(event.reason));
  if (event.by) parts.push(`by ${visibleName(event.by)}`);
  if (event.waiters > 0) parts.push(`${formatCount(event.waiters)} waiting`);
  return parts.map((part) => ` · ${part}`).join('');
}
