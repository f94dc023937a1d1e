// A stand-in for the server's HTTP side, to work on the page without building the server:
//
//   node tests/web/mock_server.mjs [--http-addr 127.0.0.1:8080] [--auth-token T] [--max-locks 1024]
//
// The flags are the server's. Locks and semaphores are taken, one or several at once, waited for,
// expire and pass on as with the real one; there is no journal and no line protocol. Serves web/
// under the headers of the real server.
import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values: options } = parseArgs({
  options: {
    'http-addr': { type: 'string', default: '127.0.0.1:8080' },
    'max-locks': { type: 'string', default: '1024' },
    'auth-token': { type: 'string', default: '' },
    host: { type: 'string' },
    port: { type: 'string' },
  },
});
const webFolder = fileURLToPath(new URL('../../web', import.meta.url));
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
  "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const types = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css',
  '.js': 'text/javascript',
  '.svg': 'image/svg+xml',
};
const bounds = [];
for (let decade = 0.001; decade < 1e5; decade *= 10) {
  for (const step of [1, 2.5, 5]) bounds.push(Number((decade * step).toPrecision(2)));
}
bounds.push(1e5);

const startedAt = Date.now();
// kind:key -> {kind, key, limit, holds: [], queue: [], token, idleSince}
const keys = new Map();
const streams = new Set(); // {prefix, response}
const listeners = new Set(); // {pattern, group}
const totals = {
  grants: 0,
  contended: 0,
  renewals: 0,
  releases: 0,
  expiries: 0,
  disconnects: 0,
  timeouts: 0,
  cancels: 0,
};
const newHistogram = () => ({ le_ms: bounds, counts: Array(bounds.length + 1).fill(0), sum_ms: 0 });
const wait = newHistogram();
const hold = newHistogram();

function observe(histogram, ms) {
  const at = bounds.findIndex((bound) => ms <= bound);
  histogram.counts[at < 0 ? bounds.length : at]++;
  histogram.sum_ms += ms;
}

const history = []; // oldest first
const historyMost = 5000;

function remember(event, data) {
  history.push({ event, ...data });
  if (history.length > historyMost) history.shift();
}
remember('started', { at_unix_ms: startedAt });

function tell(event, entry, fields) {
  const data = {
    at_unix_ms: Date.now(),
    kind: entry.kind,
    key: entry.key,
    ...fields,
    limit: entry.limit,
    holders: entry.holds.length,
    waiters: entry.queue.length,
  };
  remember(event, data);
  const text = `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
  for (const stream of streams) {
    if (entry.key.startsWith(stream.prefix)) stream.response.write(text);
  }
}

// What is not as usual, as the server says it.
const shareOf = ({ mode, permits }) => ({
  ...(mode === 'shared' && { mode }),
  ...(permits > 1 && { permits }),
});

const permitsIn = (entry) => entry.holds.reduce((sum, { permits }) => sum + permits, 0);

function fits({ entry, mode, permits }) {
  if (entry.kind === 'semaphore') return permitsIn(entry) + permits <= entry.limit;
  return entry.holds.length === 0 || (mode === 'shared' && entry.holds[0].mode === 'shared');
}

// All that was asked for, under one fence. `asked` has the holder and its `items`, each a key with
// what is to be taken of it.
function grant(asked, waited) {
  const token = 1 + Math.max(...asked.items.map(({ entry }) => entry.token));
  if (waited !== null) {
    totals.contended++;
    observe(wait, waited);
  }
  const made = asked.items.map((item) => grantItem(asked, item, token, waited ?? 0));
  return made[0];
}

function grantItem({ holder, who, ttl }, { entry, mode, permits }, token, waited) {
  const now = Date.now();
  entry.token = token;
  const made = { holder, who, mode, permits, token, since: now, ttl, expiresAt: now + ttl };
  entry.holds.push(made);
  arm(entry, made);
  totals.grants++;
  const more = { token, ...shareOf(made), waited_ms: waited, ttl_ms: ttl };
  tell('granted', entry, { holder, ...who, ...more });
  return made;
}

function arm(entry, held) {
  clearTimeout(held.timer);
  const after = Math.min(held.expiresAt - Date.now(), 2 ** 31 - 1);
  held.timer = setTimeout(
    () => {
      if (held.expiresAt > Date.now()) return arm(entry, held);
      totals.expiries++;
      end(entry, held, 'expired');
    },
    Math.max(after, 0),
  );
}

function end(entry, held, how, more = {}) {
  clearTimeout(held.timer);
  entry.holds.splice(entry.holds.indexOf(held), 1);
  const heldFor = Date.now() - held.since;
  observe(hold, heldFor);
  const { holder, who, token } = held;
  tell(how, entry, { holder, ...who, token, ...shareOf(held), held_ms: heldFor, ...more });
  passOn(entry);
  if (entry.holds.length === 0) entry.idleSince = Date.now();
}

// Grants what is first in all its queues and has room in all its keys.
function passOn(entry) {
  const isReady = (one) =>
    one.items.every((item) => item.entry.queue[0] === one && fits(item));
  while (entry.queue.length > 0 && isReady(entry.queue[0])) {
    const [next] = entry.queue;
    leaveQueues(next);
    next.settle(grant(next, Date.now() - next.since));
    for (const other of next.items) if (other.entry !== entry) passOn(other.entry);
  }
}

function leaveQueues(waiter) {
  clearTimeout(waiter.timer);
  for (const { entry } of waiter.items) entry.queue.splice(entry.queue.indexOf(waiter), 1);
}

class Refusal extends Error {
  constructor(status, code, more = {}) {
    super(code);
    this.status = status;
    this.body = { error: code, detail: more.detail ?? code.replaceAll('_', ' '), ...more };
  }
}

const granted = (entry, held) => ({
  key: entry.key,
  holder: held.holder,
  token: held.token,
  expires_at_unix_ms: held.expiresAt,
});

function entryOf(kind, key, limit) {
  const name = `${kind}:${key}`;
  const entry = keys.get(name);
  if (entry) return entry;
  if (keys.size >= Number(options['max-locks'])) throw new Refusal(429, 'max_locks');
  const made = { kind, key, limit, holds: [], queue: [], token: 0, idleSince: Date.now() };
  keys.set(name, made);
  return made;
}

// What the body asks for: a key, or several.
function itemsOf(kind, { key, keys: names = [key], items, ...share }) {
  return (items ?? names.map((name) => ({ kind, key: name, ...share }))).map((item) => ({
    entry: entryOf(item.kind ?? 'lock', item.key, item.limit ?? 1),
    mode: item.mode ?? 'exclusive',
    permits: item.permits ?? 1,
  }));
}

async function acquire(kind, body, request) {
  const { holder, ttl_ms: ttl = 33000, wait_ms: patience = 0, note } = body;
  if (!(body.key || body.keys || body.items) || !holder)
    throw new Refusal(400, 'bad_request', { detail: 'key and holder are needed' });
  const who = { peer: peerOf(request.socket), ...(note && { note }) };
  const items = itemsOf(kind, body);
  const [{ entry }] = items;
  const answer = (held) => ({ ...granted(entry, held), ...(body.keys && { keys: body.keys }) });
  const own = entry.holds.find((held) => held.holder === holder);
  if (own) return answer(refresh(entry, own, ttl));
  const asked = { holder, who, ttl, items };
  if (items.every((item) => item.entry.queue.length === 0 && fits(item))) {
    return answer(grant(asked, null));
  }
  const refusal = (code) =>
    new Refusal(409, code, {
      ...(entry.holds.length > 0 && granted(entry, entry.holds[0])),
      waiters: entry.queue.length,
    });
  if (patience === 0) throw refusal('held');
  return new Promise((resolve, reject) => {
    const waiter = { ...asked, since: Date.now(), settle: (held) => resolve(answer(held)) };
    const leave = (reason, count) => {
      if (!entry.queue.includes(waiter)) return;
      leaveQueues(waiter);
      totals[count]++;
      const waited = { waited_ms: Date.now() - waiter.since, reason };
      for (const item of items) {
        tell('gave_up', item.entry, { holder, ...who, ...shareOf(item), ...waited });
      }
      for (const item of items) passOn(item.entry);
      reject(refusal('wait_timeout'));
    };
    waiter.timer = setTimeout(() => leave('timeout', 'timeouts'), patience);
    request.socket.once('close', () => leave('cancelled', 'cancels'));
    for (const item of items) {
      item.entry.queue.push(waiter);
      tell('queued', item.entry, { holder, ...who, ...shareOf(item) });
    }
  });
}

function refresh(entry, held, ttl = held.ttl) {
  totals.renewals++;
  held.ttl = ttl;
  held.expiresAt = Date.now() + ttl;
  arm(entry, held);
  return held;
}

function owned(kind, { key, holder, token }) {
  const entry = keys.get(`${kind}:${key}`);
  const held = entry?.holds.find((one) => one.holder === holder && one.token === token);
  if (!held) throw new Refusal(409, entry?.holds.length ? 'not_holder' : 'expired');
  return [entry, held];
}

// With `isTheirs`, of the holds and places those that are somebody's.
function describe(entry, most, isTheirs = () => true) {
  const now = Date.now();
  const busy = entry.holds.length + entry.queue.length > 0;
  return {
    kind: entry.kind,
    key: entry.key,
    limit: entry.limit,
    holders: entry.holds.length,
    ...(permitsIn(entry) > entry.holds.length && { permits: permitsIn(entry) }),
    waiters: entry.queue.length,
    ...(busy ? {} : { idle_ms: now - entry.idleSince }),
    holds: entry.holds.filter(isTheirs).slice(0, most).map((held) => ({
      holder: held.holder,
      ...held.who,
      token: held.token,
      ...shareOf(held),
      held_ms: now - held.since,
      ttl_ms: held.ttl,
      expires_in_ms: held.expiresAt - now,
      expires_at_unix_ms: held.expiresAt,
    })),
    queue: entry.queue
      .filter(isTheirs)
      .slice(0, most)
      .map((one) => describePlace(entry, one)),
  };
}

function describePlace(entry, { holder, who, items, since }) {
  return {
    holder,
    ...who,
    ...shareOf(items.find((item) => item.entry === entry)),
    ...(items.length > 1 && { keys: items.length }),
    waited_ms: Date.now() - since,
  };
}

const weights = {
  waiters: (lock) => lock.waiters,
  longest_wait: (lock) => lock.queue[0]?.waited_ms ?? -1,
  longest_hold: (lock) => lock.holds[0]?.held_ms ?? -1,
};

function list(query) {
  const limit = Number(query.get('limit') ?? 100);
  if (query.has('key')) {
    return {
      locks: ['lock', 'semaphore']
        .map((kind) => keys.get(`${kind}:${query.get('key')}`))
        .filter(Boolean)
        .map((entry) => describe(entry, 1000)),
    };
  }
  // Holds of this stand-in belong to no connection.
  const holder = query.has('client_id') ? '' : query.get('holder');
  const isTheirs = (one) => holder === null || one.holder === holder;
  const wanted = (entry) =>
    entry.key.startsWith(query.get('prefix') ?? '') &&
    entry.key.includes(query.get('contains') ?? '') &&
    (query.get('idle') === 'true' || entry.holds.length + entry.queue.length > 0) &&
    (holder === null || [...entry.holds, ...entry.queue].some(isTheirs));
  if (query.has('order')) {
    const weight = weights[query.get('order')];
    const found = [...keys.values()].filter((entry) => wanted(entry));
    const described = found.map((entry) => describe(entry, 16, isTheirs));
    return { locks: described.sort((a, b) => weight(b) - weight(a)).slice(0, limit) };
  }
  const locks = [];
  let position = 0;
  const after = Number(query.get('after') || 0);
  for (const entry of keys.values()) {
    if (position++ < after || !wanted(entry)) continue;
    if (locks.length === limit) return { locks, next: String(position - 1) };
    locks.push(describe(entry, 16, isTheirs));
  }
  return { locks };
}

function overview() {
  let [idle, locks, lockWaiters, permits, permitWaiters] = [0, 0, 0, 0, 0];
  for (const { kind, holds, queue } of keys.values()) {
    if (holds.length + queue.length === 0) idle++;
    if (kind === 'lock') {
      locks += holds.length;
      lockWaiters += queue.length;
    } else {
      permits += holds.length;
      permitWaiters += queue.length;
    }
  }
  const channels = [...listeners].slice(0, 100).map((one) => ({ ...one, listeners: 1 }));
  return {
    version: '0.3.0',
    now_unix_ms: Date.now(),
    uptime_ms: Date.now() - startedAt,
    started_unix_ms: startedAt,
    ready: true,
    draining: false,
    journal: 'none',
    line_port: Number(options.port) || 6388,
    http_port: server.address().port,
    connections: streams.size + listeners.size + 1,
    keys: { count: keys.size, idle, max: Number(options['max-locks']) },
    locks_held: locks,
    lock_waiters: lockWaiters,
    semaphore_holders: permits,
    semaphore_waiters: permitWaiters,
    totals,
    wait,
    hold,
    signals: { listeners: listeners.size, channels },
  };
}

function stream(response, set, member) {
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
  response.write(': ping\n\n');
  const pings = setInterval(() => response.write(': ping\n\n'), 5000);
  set.add(member);
  response.on('close', () => {
    clearInterval(pings);
    set.delete(member);
  });
}

// Connections.

const sockets = new Map(); // client id -> {socket, since}

function peerOf(socket) {
  return `${socket.remoteAddress}:${socket.remotePort}`;
}

function listClients() {
  const clients = [...sockets].map(([id, { socket, since }]) => ({
    client_id: id,
    protocol: 'http',
    peer: peerOf(socket),
    connected_ms: Date.now() - since,
    idle_ms: 0,
    holds: 0,
    places: 0,
    subscriptions: 0,
    unsent_bytes: socket.writableLength,
  }));
  return { clients };
}

function listHistory(query) {
  const about = ['key', 'holder', 'client', 'client_id'].filter((name) => query.has(name));
  const found = history.filter((event) =>
    about.every((name) => String(event[name]) === query.get(name)),
  );
  return { events: found.reverse().slice(0, Number(query.get('limit') ?? 100)) };
}

// Admin acts.

function revoke({ key, kind = 'lock', token, reason }) {
  const entry = keys.get(`${kind}:${key}`);
  const held = entry?.holds.find((one) => one.token === token);
  if (!held) throw new Refusal(409, entry?.holds.length ? 'stale_token' : 'expired');
  end(entry, held, 'revoked', { reason, by: 'default' });
  return { key, released: [{ holder: held.holder, token }] };
}

function resize({ key, limit, reason }) {
  const entry = keys.get(`semaphore:${key}`);
  if (!entry) throw new Refusal(409, 'expired');
  entry.limit = limit;
  tell('resized', entry, { holder: '', reason, by: 'default' });
  passOn(entry);
  return { key, limit };
}

function disconnect({ client_id: id }) {
  if (!sockets.has(id)) throw new Refusal(409, 'expired');
  sockets.get(id).socket.destroy();
  return { client_id: id };
}

const calls = {
  'GET /v1/overview': overview,
  'GET /v1/locks': (query) => list(query),
  'GET /v1/clients': listClients,
  'GET /v1/history': (query) => listHistory(query),
  'GET /v1/whoami': () => ({ name: 'default', rights: ['lock', 'signal', 'read', 'admin'] }),
  'POST /v1/admin/release': (_, body) => revoke(body),
  'POST /v1/admin/resize': (_, body) => resize(body),
  'POST /v1/admin/disconnect': (_, body) => disconnect(body),
  'POST /v1/acquire': (_, body, request) => acquire('lock', body, request),
  'POST /v1/semaphores/acquire': (_, body, request) => acquire('semaphore', body, request),
};
for (const [path, kind] of [
  ['/v1', 'lock'],
  ['/v1/semaphores', 'semaphore'],
]) {
  calls[`POST ${path}/renew`] = (_, body) => {
    const [entry, held] = owned(kind, body);
    return granted(entry, refresh(entry, held, body.ttl_ms));
  };
  calls[`POST ${path}/release`] = (_, body) => {
    const [entry, held] = owned(kind, body);
    totals.releases++;
    end(entry, held, 'released');
    return { key: entry.key, released: true };
  };
}

async function answer(request, response) {
  const url = new URL(request.url, 'http://mock');
  if (!url.pathname.startsWith('/v1/')) return serveFile(url.pathname, response);
  if (
    options['auth-token'] &&
    request.headers.authorization !== `Bearer ${options['auth-token']}`
  ) {
    throw new Refusal(401, 'unauthorized');
  }
  if (url.pathname === '/v1/events') {
    return stream(response, streams, { prefix: url.searchParams.get('prefix') ?? '', response });
  }
  if (url.pathname === '/v1/signals') {
    return stream(response, listeners, {
      pattern: url.searchParams.get('pattern'),
      group: url.searchParams.get('group') ?? '',
    });
  }
  const call = calls[`${request.method} ${url.pathname}`];
  if (!call) throw new Refusal(404, 'not_found');
  let text = '';
  for await (const piece of request) text += piece;
  const body = text ? JSON.parse(text) : {};
  send(response, 200, await call(url.searchParams, body, request));
}

function send(response, status, body) {
  response.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' });
  response.end(JSON.stringify(body));
}

async function serveFile(path, response) {
  const name = normalize(path === '/' ? '/index.html' : path);
  const text = await readFile(join(webFolder, name)).catch(() => null);
  if (text === null) throw new Refusal(404, 'not_found');
  response.writeHead(200, {
    'Content-Type': types[extname(name)] ?? 'application/octet-stream',
    'Content-Security-Policy': policy,
    'X-Content-Type-Options': 'nosniff',
    'Cache-Control': 'no-cache',
  });
  response.end(text);
}

const server = createServer((request, response) => {
  answer(request, response).catch((error) => {
    if (error instanceof Refusal) send(response, error.status, error.body);
    else send(response, 400, { error: 'bad_request', detail: String(error) });
  });
});
let lastClient = 0;
server.on('connection', (socket) => {
  const id = ++lastClient;
  sockets.set(id, { socket, since: Date.now() });
  socket.on('close', () => sockets.delete(id));
});
const [host, port] = options['http-addr'].split(':');
server.listen(Number(port), host, () => {
  console.log(`listening http port=${server.address().port}`);
});
