// A server of a test's own: starts it, calls it, stops it. LOCKD_SERVER names the program.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';

const program = process.env.LOCKD_SERVER;
const startMs = 60_000;

export class Server {
  #process = null;
  #flags;
  #token;
  port = 0;

  constructor({ flags = [], token = '' } = {}) {
    this.#flags = token ? [...flags, '--auth-token', token] : flags;
    this.#token = token;
  }

  // On a free port; after a stop, on the same one again.
  async start() {
    const flags = [
      '--memory',
      '--host',
      '127.0.0.1',
      '--port',
      '0',
      '--http-addr',
      `127.0.0.1:${this.port}`,
      ...this.#flags,
    ];
    this.#process = spawn(program, flags, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.port = await readPort(this.#process);
  }

  async stop() {
    if (!this.#process || this.#process.exitCode !== null) return;
    const gone = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await gone;
    this.#process = null;
  }

  get address() {
    return `http://127.0.0.1:${this.port}`;
  }

  // The answer of a call that must succeed.
  async call(path, body) {
    const reply = await this.ask(path, body);
    if (!reply.ok) throw new Error(`${path} ${JSON.stringify(body)}: ${await reply.text()}`);
    return reply.json();
  }

  ask(path, body) {
    const headers = this.#token ? { Authorization: `Bearer ${this.#token}` } : {};
    return fetch(this.address + path, { method: 'POST', headers, body: JSON.stringify(body) });
  }

  acquire(key, holder, more = {}) {
    return this.call('/v1/acquire', { key, holder, ttl_ms: 600_000, ...more });
  }

  acquirePermits(key, holder, permits, limit) {
    const request = { key, holder, permits, limit, ttl_ms: 600_000 };
    return this.call('/v1/semaphores/acquire', request);
  }

  // A place in the queue that the test does not wait for; it may end with the server.
  queue(key, holder, more = {}) {
    this.#wait('/v1/acquire', { key, holder, ...more });
  }

  // A place in the queues of all of them.
  queueForAll(keys, holder) {
    this.#wait('/v1/acquire', { keys, holder });
  }

  queueForPermits(key, holder, permits, limit) {
    this.#wait('/v1/semaphores/acquire', { key, holder, permits, limit });
  }

  #wait(path, request) {
    this.ask(path, { ttl_ms: 600_000, wait_ms: 600_000, ...request }).catch(() => {});
  }

  renew({ key, holder, token }, more = {}) {
    return this.call('/v1/renew', { key, holder, token, ...more });
  }

  release({ key, holder, token }) {
    return this.call('/v1/release', { key, holder, token });
  }

  // Many locks, fast: requests on one connection, none waiting for the answer to the one before.
  async acquireMany(keys) {
    const socket = connect(this.port, '127.0.0.1');
    const requests = keys.map((key) => {
      const body = JSON.stringify({ key, holder: 'many', ttl_ms: 3_600_000 });
      const head = `POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}`;
      return `${head}\r\n\r\n${body}`;
    });
    const inFlight = 500; // requests that are on their way at once
    let granted = 0;
    let sent = 0;
    const send = () => {
      const lot = requests.slice(sent, granted + inFlight);
      sent += lot.length;
      socket.write(lot.join(''));
    };
    send();
    let rest = '';
    for await (const piece of socket) {
      const parts = (rest + piece).split('"token":');
      granted += parts.length - 1;
      rest = parts.at(-1).slice(-'"token":'.length);
      if (granted === keys.length) break;
      if (granted + inFlight > sent) send();
    }
    if (granted !== keys.length) throw new Error(`the server granted ${granted} of ${keys.length}`);
  }
}

// The port as the log says it: listening http ... port=12345, or as JSON.
async function readPort(child) {
  let text = '';
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`no port in ${startMs} ms:\n${text}`)), startMs);
    const read = (piece) => {
      text += piece;
      const found = /listening http\b[^\n]*?\bport\W{1,4}(\d+)/.exec(text);
      if (!found) return;
      clearTimeout(late);
      resolve(Number(found[1]));
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}:\n${text}`)));
  });
}
