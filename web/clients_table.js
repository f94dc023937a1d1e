// The connections that the server has: who they say they are, where they come from, what they have.
// One page of them, refreshed while it is looked at.
import { arrange, byId, element, nameElement, setHidden, setName, setText } from './dom.js';
import { formatCount, formatDuration, plural } from './format.js';
import { Poll } from './poll.js';
import { searchAddress } from './route.js';

const pageSize = 50;

export class ClientsTable {
  #api;
  #admin;
  #rows = new Map(); // client_id -> ClientRow
  #cursors = ['']; // where this page and those before it begin
  #next = null;
  #poll = new Poll((signal) => this.#refresh(signal), { everyMs: 2000 });
  #name = byId('clients-name');

  constructor(api, admin) {
    this.#api = api;
    this.#admin = admin;
    byId('clients-next').addEventListener('click', () =>
      this.#turn([...this.#cursors, this.#next]),
    );
    byId('clients-previous').addEventListener('click', () =>
      this.#turn(this.#cursors.slice(0, -1)),
    );
    this.#name.addEventListener('input', () => this.#turn(['']));
  }

  start() {
    this.#turn(['']);
  }

  stop() {
    this.#poll.stop();
  }

  poke() {
    this.#poll.poke();
  }

  #turn(cursors) {
    this.#cursors = cursors;
    this.#poll.start();
  }

  async #refresh(signal) {
    const parameters = { prefix: this.#name.value, limit: pageSize, after: this.#cursors.at(-1) };
    try {
      const { clients, next = null } = await this.#api.get('v1/clients', parameters, signal);
      if (!signal.aborted) this.#show(clients, next);
    } catch (error) {
      if (error.status === 400) this.#cursors = ['']; // a cursor of another server's
    }
  }

  #show(clients, next) {
    const rows = new Map();
    for (const client of clients) {
      const row = this.#rows.get(client.client_id) ?? new ClientRow(this.#admin);
      row.show(client);
      rows.set(client.client_id, row);
    }
    this.#rows = rows;
    arrange(
      byId('clients-body'),
      [...rows.values()].map((row) => row.element),
    );
    this.#showEnds(clients.length, next);
  }

  #showEnds(count, next) {
    this.#next = next;
    const page = this.#cursors.length;
    setHidden(byId('clients-pages'), page === 1 && next === null);
    byId('clients-previous').disabled = page === 1;
    byId('clients-next').disabled = next === null;
    setText(byId('clients-page'), `Page ${formatCount(page)}`);
    setText(byId('clients-shown'), plural(count, 'client') + (next === null ? '' : ' shown'));
    setHidden(byId('clients-none'), count > 0);
  }
}

const figures = ['holds', 'places', 'subscriptions', 'unsent_bytes'];

class ClientRow {
  #id = element('a', { class: 'holder' });
  #name = nameElement('span', '', { class: 'client' });
  #note = nameElement('span', '', { class: 'note' });
  #peer = nameElement('td', '', { role: 'cell', class: 'peer' });
  #token = nameElement('td', '', { role: 'cell', class: 'token-name' });
  #since = element('td', { role: 'cell' });
  #idle = element('td', { role: 'cell' });
  #figures = Object.fromEntries(
    figures.map((name) => [name, element('td', { role: 'cell', class: `figure ${name}` })]),
  );
  #client = null; // as it was shown last

  constructor(admin) {
    this.element = element(
      'tr',
      { role: 'row' },
      element('th', { role: 'rowheader', scope: 'row' }, this.#id, this.#name, this.#note),
      this.#peer,
      this.#token,
      this.#since,
      this.#idle,
      ...Object.values(this.#figures),
      element(
        'td',
        { role: 'cell' },
        element(
          'button',
          {
            type: 'button',
            class: 'act-disconnect',
            click: () => admin.disconnect(this.#client),
          },
          'Disconnect…',
        ),
      ),
    );
  }

  show(client) {
    this.#client = client;
    const id = String(client.client_id);
    setText(this.#id, client.protocol === 'http' ? `http ${id}` : `tcp:${id}`);
    this.#id.href = searchAddress({ by: 'client_id', text: id });
    setName(this.#name, client.client ?? '');
    setName(this.#note, client.note ?? '');
    setName(this.#peer, client.peer ?? '');
    setName(this.#token, client.token_name ?? '');
    setText(this.#since, formatDuration(client.connected_ms));
    setText(this.#idle, formatDuration(client.idle_ms));
    for (const [name, cell] of Object.entries(this.#figures)) {
      setText(cell, client[name] > 0 ? formatCount(client[name]) : '');
    }
  }
}
