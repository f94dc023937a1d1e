// Lets an admin end a hold, close a connection or set a semaphore's limit: says what will happen,
// asks for the reason, and shows the outcome. The buttons that lead here are shown to those who
// may; the server decides.
import { firstWithRoom, permitsInUse, without } from './capacity.js';
import { byId, element, setHidden, setText } from './dom.js';
import { formatCount, formatDuration, plural, visibleName } from './format.js';
import { describeWho } from './who.js';

export class AdminDialog {
  #api;
  #done;
  #act = null; // {path, body, outcome}
  #dialog = byId('admin');
  #reason = byId('admin-reason');
  #limit = byId('admin-limit');
  #confirm = byId('admin-confirm');

  // `done()` is called when something was done.
  constructor(api, done) {
    this.#api = api;
    this.#done = done;
    byId('admin-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.#submit();
    });
    byId('admin-cancel').addEventListener('click', () => this.#dialog.close());
  }

  release(lock, hold) {
    this.#open({
      title: `Release ${visibleName(lock.key)}`,
      confirm: 'Release it',
      effects: [
        `${nameOf(hold)} loses it at once, whatever it is doing. It has held it for ` +
          `${formatDuration(hold.held_ms)}.`,
        whatFollows(lock, hold),
        `What the old holder still writes can be told by its fence, ${hold.token}.`,
      ],
      path: 'v1/admin/release',
      body: { key: lock.key, kind: lock.kind, token: hold.token },
      outcome: ({ released = [] }) =>
        `Released: ${released.map(nameOf).join(', ') || nameOf(hold)} has lost it.`,
    });
  }

  disconnect(client) {
    const name = client.client ? visibleName(client.client) : `client ${client.client_id}`;
    const holds = client.holds === undefined ? 'what it holds' : plural(client.holds, 'hold');
    const places = client.places === undefined ? 'its waits' : plural(client.places, 'place');
    this.#open({
      title: `Disconnect ${name}`,
      confirm: 'Disconnect it',
      effects: [
        `Its connection${client.peer ? ` from ${client.peer}` : ''} is closed.`,
        client.protocol === 'http'
          ? 'What was taken over HTTP lives by its lease, and stays.'
          : `It loses ${holds} and ${places} in queues; those who wait are next.`,
        'Nothing keeps it from connecting again.',
      ],
      path: 'v1/admin/disconnect',
      body: { client_id: client.client_id },
      outcome: () => 'Disconnected.',
    });
  }

  resize(lock) {
    this.#open({
      title: `Resize ${visibleName(lock.key)}`,
      confirm: 'Set the limit',
      limit: lock.limit,
      effects: [
        `Now ${formatCount(permitsInUse(lock))} of ${formatCount(lock.limit)} permits are held, ` +
          `and ${plural(lock.waiters, 'request')} wait.`,
        'A larger limit is granted to those who wait at once. A smaller one takes nothing away: ' +
          'it waits for releases.',
        ...(lock.queue.some(({ permits }) => permits > 1)
          ? ['Who waits for more permits than the new limit is refused.']
          : []),
        'It is in force until nobody holds or waits for the key.',
      ],
      path: 'v1/admin/resize',
      body: { key: lock.key },
      outcome: (_, body) => `The limit is ${formatCount(body.limit)} now.`,
    });
  }

  #open(act) {
    this.#act = act;
    setText(byId('admin-title'), act.title);
    setText(this.#confirm, act.confirm);
    byId('admin-effects').replaceChildren(...act.effects.map((text) => element('li', {}, text)));
    setHidden(byId('admin-resize'), act.limit === undefined);
    this.#limit.disabled = act.limit === undefined;
    this.#limit.value = act.limit ?? '';
    this.#reason.value = '';
    this.#showState('asking', '');
    this.#dialog.showModal();
    (act.limit === undefined ? this.#reason : this.#limit).focus();
  }

  // 'asking', 'acting' or 'done'; `problem` is why it was refused.
  #showState(state, problem, outcome = '') {
    setText(byId('admin-problem'), problem);
    setText(byId('admin-outcome'), outcome);
    setHidden(byId('admin-question'), state === 'done');
    setHidden(this.#confirm, state === 'done');
    this.#confirm.disabled = state === 'acting';
    setText(byId('admin-cancel'), state === 'done' ? 'Close' : 'Cancel');
  }

  async #submit() {
    const { path, body, outcome, limit } = this.#act;
    const sent = { ...body, reason: this.#reason.value.trim() };
    if (limit !== undefined) sent.limit = Number(this.#limit.value);
    if (sent.reason === '') {
      this.#showState('asking', 'Say why: whoever reads the history will ask.');
      return;
    }
    this.#showState('acting', '');
    try {
      const answer = await this.#api.post(path, sent);
      this.#showState('done', '', outcome(answer, sent));
      byId('admin-cancel').focus();
      this.#done();
    } catch (error) {
      this.#showState('asking', refusals[error.code] ?? `It was not done: ${error.message}.`);
    }
  }
}

// What becomes of the queue when `hold` ends.
function whatFollows(lock, hold) {
  const [next] = lock.queue;
  if (next === undefined) {
    return lock.holders > 1
      ? 'Nobody waits for it, and the others keep what they have of it.'
      : 'Nobody waits for it: it is free then, and the next grant has a larger fence.';
  }
  const first = `${nameOf(next)}, who is first in the queue,`;
  if (firstWithRoom(without(lock, hold)) === null) {
    return `${first} goes on waiting: what the others have of it leaves too little room.`;
  }
  const others = (next.keys ?? 1) - 1;
  return (
    `${first} gets it under a larger fence` +
    (others > 0 ? ` as soon as it can have ${plural(others, 'other key')} too.` : '.')
  );
}

const refusals = {
  stale_token: 'It was not done: somebody else holds it by now.',
  expired: 'It was not done: nobody holds it any more.',
  denied: 'It was not done: you may not do that any more.',
};

function nameOf(entry) {
  const who = describeWho(entry);
  return visibleName(entry.holder) + (who === '' ? '' : ` (${visibleName(who)})`);
}
