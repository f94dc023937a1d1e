// Plays a busy little shop against a server, for people who look at the page and for screenshots:
//
//   node tests/web/scene.mjs http://127.0.0.1:8080 [token]
//
// Carts reserve stones, families book seats side by side, workers share printers and some take two
// at once, readers share a catalog with an editor who wants it alone, a report is stuck and
// expires, a band waits for the stage and keeps the lights free meanwhile, two deployments wait for
// each other. Ends with Ctrl-C.
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const between = (low, high) => low + Math.random() * (high - low);
const pick = (list) => list[Math.floor(Math.random() * list.length)];

// A line client that says who it is, and keeps a key while it is there.
function sitDown(port, name) {
  const socket = connect(port, '127.0.0.1');
  socket.unref();
  socket.on('error', () => {});
  socket.resume();
  socket.write(`client\n${name}\nshift\nl\nshift/${name.split('@')[0]}\n3600 3600\n`);
}

export function playScene(base, token = '') {
  let over = false;
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const post = async (path, body) => {
    const reply = await fetch(base + path, { method: 'POST', headers, body: JSON.stringify(body) });
    return { ok: reply.ok, ...(await reply.json()) };
  };
  const forever = async (work) => {
    while (!over) {
      try {
        await work();
      } catch {
        await sleep(500);
      }
    }
  };

  const stones = Array.from({ length: 14 }, (_, i) => `stone-${40 + i}`);
  // A name, how many clients have it, for how many ms each keeps its lock, what it requests.
  const crowds = [
    ['cart', 18, [500, 6000], () => ({ key: pick(stones), ttl_ms: pick([10000, 15000, 30000]) })],
    ['clerk', 9, [200, 2200], () => ({ key: 'ledger/2026', wait_ms: 8000, ttl_ms: 5000 })],
    ['reader', 4, [2000, 6000], () => ({ key: 'catalog', mode: 'shared', ttl_ms: 15000 })],
    ['editor', 1, [1000, 2000], () => ({ key: 'catalog', ttl_ms: 15000 }), [3000, 6000]],
    ['web', 6, [2, 60], () => ({ key: `session/${Math.floor(between(1, 60))}`, wait_ms: 1000 })],
    ['worker', 7, [1000, 7000], (number) => ({ limit: 4, permits: number > 5 ? 2 : 1 })],
  ];
  for (const [name, count, keep, what, pause = [0, 0]] of crowds) {
    for (let number = 1; number <= count; number++) {
      forever(async () => {
        await sleep(between(...pause));
        const request = { key: 'printers', wait_ms: 20000, ttl_ms: 12000, ...what(number) };
        const path = request.limit ? '/v1/semaphores' : '/v1';
        const grant = await post(`${path}/acquire`, { ...request, holder: `${name}-${number}` });
        if (!grant.ok) return sleep(between(50, 400));
        await sleep(between(...keep));
        const { key, holder, token } = grant;
        await post(`${path}/release`, { key, holder, token });
      });
    }
  }
  for (let family = 1; family <= 4; family++) {
    forever(async () => {
      const first = 11 + Math.floor(between(0, 4));
      const seats = [`seat-${first}`, `seat-${first + 1}`, `seat-${first + 2}`];
      const holder = `family-${family}`;
      const request = { keys: seats, holder, wait_ms: 30000, ttl_ms: 15000 };
      const grant = await post('/v1/acquire', request);
      if (!grant.ok) return sleep(between(200, 900));
      await sleep(between(2000, 6000));
      for (const key of seats) await post('/v1/release', { key, holder, token: grant.token });
    });
  }
  forever(async () => {
    await post('/v1/acquire', {
      key: 'report/nightly',
      holder: 'batch-3',
      ttl_ms: 6000,
      wait_ms: 9e3,
    });
    await sleep(7500);
  });
  forever(async () => {
    const grant = await post('/v1/acquire', { key: 'leader', holder: 'node-a', ttl_ms: 20000 });
    while (!over && grant.ok) {
      await sleep(8000);
      await post('/v1/renew', { key: 'leader', holder: 'node-a', token: grant.token });
    }
  });
  forever(async () => {
    await post('/v1/acquire', { key: 'leader', holder: 'node-b', ttl_ms: 20000, wait_ms: 600000 });
  });
  for (const path of [
    'pattern=orders.%3E&group=billing',
    'pattern=orders.%3E&group=billing',
    'pattern=stock.*',
    'pattern=orders.paid',
  ]) {
    forever(async () => {
      const reply = await fetch(`${base}/v1/signals?${path}`, { headers });
      for await (const _ of reply.body) if (over) break;
    });
  }
  post('/v1/acquire', { key: 'stage', holder: 'choir', ttl_ms: 3.6e6 }).catch(() => {});
  setTimeout(() => {
    const band = { keys: ['stage', 'lights', 'sound'], holder: 'band', wait_ms: 600000 };
    forever(() => post('/v1/acquire', band));
  }, 500);
  setTimeout(() => {
    forever(() => post('/v1/acquire', { key: 'lights', holder: 'painter', wait_ms: 600000 }));
  }, 1500);
  const deploy = (holder, note, key) =>
    post('/v1/acquire', { key, holder, note, ttl_ms: 3.6e6, wait_ms: 3.6e6 }).catch(() => {});
  deploy('ann', 'release 4.2', 'deploy/prod');
  deploy('bob', 'release 4.2', 'deploy/staging');
  setTimeout(() => deploy('ann', 'release 4.2', 'deploy/staging'), 1000);
  setTimeout(() => deploy('bob', 'release 4.2', 'deploy/prod'), 1500);
  setTimeout(() => deploy('carl', 'hotfix', 'deploy/prod'), 2000);
  fetch(`${base}/v1/overview`, { headers })
    .then((reply) => reply.json())
    .then(({ line_port: port }) => {
      for (const name of ['dora@desk-1:4711', 'emil@desk-2:612', 'fay@desk-3:88']) {
        sitDown(port, name);
      }
    })
    .catch(() => {});
  return () => {
    over = true;
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  playScene(process.argv[2] ?? 'http://127.0.0.1:8080', process.argv[3]);
}
