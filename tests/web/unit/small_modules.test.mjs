import assert from 'node:assert/strict';
import test from 'node:test';
import { pure } from './pure.mjs';

const { EventLog } = await pure('event_log.js');
const { EventParser } = await pure('event_stream.js');
const { GrantTally } = await pure('grant_tally.js');
const { Poll } = await pure('poll.js');
const { isAbout, keyAddress, noSearch, readRoute, searchAddress, whoAddress } =
  await pure('route.js');
const { ServerClock } = await pure('server_clock.js');

test('an address says what it was made from', () => {
  for (const name of ['stone-42', 'a&b=c', '50% off+1', '#key=x', ' ', '<script>', '日本']) {
    assert.equal(readRoute(keyAddress(name)).key, name);
    for (const by of ['contains', 'prefix', 'holder']) {
      const search = { by, text: name };
      assert.deepEqual(readRoute(searchAddress(search)).search, search);
    }
  }
  const start = { key: null, search: noSearch, view: 'keys' };
  assert.deepEqual(readRoute(''), start);
  assert.deepEqual(readRoute('#key='), start);
  assert.deepEqual(readRoute('#prefix='), start);
  assert.equal(readRoute('#key=%E0%A4%A').key, '%E0%A4%A');
  assert.equal(readRoute('#__proto__=1&key=a').key, 'a');
  assert.equal(readRoute('#key=a').view, 'key');
  assert.equal(readRoute('#clients').view, 'clients');
});

test('whoever holds leads to what else is theirs', () => {
  assert.equal(whoAddress({ holder: 'cart-7' }), '#holder=cart-7');
  assert.equal(whoAddress({ holder: 'tcp:17', client_id: 17 }), '#client_id=17');
  assert.equal(whoAddress({ holder: 'tcp:17' }), '#holder=tcp%3A17');
  assert.equal(whoAddress({ holder: 'tcp:0', client: 'ann@b:1' }), '#holder=ann%40b%3A1');
  assert.equal(whoAddress({ holder: 'cart-7', client: 'ann@b:1' }), '#holder=cart-7');
});

test('a search chooses events as it chooses keys', () => {
  const event = { key: 'orders/42', holder: 'tcp:17', client: 'ann' };
  const cases = [
    ['contains', '/4', true],
    ['contains', '7', false],
    ['prefix', 'orders', true],
    ['prefix', '42', false],
    ['holder', 'tcp:17', true],
    ['holder', 'ann', true],
    ['holder', 'an', false],
    ['client_id', '17', true],
    ['client_id', '1', false],
  ];
  for (const [by, text, expected] of cases) {
    assert.equal(isAbout({ by, text }, event), expected, `${by} ${text}`);
    assert.equal(isAbout({ by, text }, { type: 'started' }), false);
  }
  assert.equal(isAbout(noSearch, { type: 'started' }), true);
});

test('a stream may be cut anywhere', () => {
  const text = ': ping\n\nevent: granted\ndata: {"key":"a"}\n\nevent: released\ndata: {}\n\n';
  const whole = new EventParser().push(text);
  assert.deepEqual(whole, [
    { type: 'granted', data: '{"key":"a"}' },
    { type: 'released', data: '{}' },
  ]);
  for (let cut = 0; cut <= text.length; cut++) {
    const parser = new EventParser();
    assert.deepEqual([...parser.push(text.slice(0, cut)), ...parser.push(text.slice(cut))], whole);
  }
});

test('the tally forgets after a minute or two, and never grows without end', () => {
  const tally = new GrantTally();
  for (let i = 0; i < 3; i++) tally.add('hot', 100_000);
  tally.add('cold', 100_000);
  assert.deepEqual(tally.top(5, 100_000), [
    { key: 'hot', grants: 3 },
    { key: 'cold', grants: 1 },
  ]);
  assert.equal(tally.top(1, 100_000).length, 1);
  assert.deepEqual(tally.top(5, 250_000), []);
  for (let i = 0; i < 50_000; i++) {
    tally.add(`once-${i}`, 300_000);
    if (i % 10 === 0) tally.add('hot', 300_000);
  }
  assert.equal(tally.top(1, 300_000)[0].key, 'hot');
  assert.ok(tally.top(Infinity, 300_000).length <= 5000);
});

test('the log keeps the newest', () => {
  const log = new EventLog();
  for (let i = 0; i < 10_000; i += 10)
    log.add(Array.from({ length: 10 }, (_, j) => ({ at: i + j })));
  assert.deepEqual(
    log.recent(() => true, 2).map(({ at }) => at),
    [9998, 9999],
  );
  assert.deepEqual(
    log.recent(({ at }) => at % 2 === 0, 2).map(({ at }) => at),
    [9996, 9998],
  );
  assert.ok(log.recent(() => true, Infinity).length <= 3000);
});

test('the log puts the past before what it knows, and nothing twice', () => {
  const log = new EventLog();
  const event = (type, token, at) => ({ type, key: 'a', token, at_unix_ms: at });
  log.add([event('granted', 2, 2000), { type: 'missed', count: 3, at_unix_ms: 2100 }]);
  log.add([event('released', 2, 2200)]);
  log.addHistory([
    event('released', 2, 2201),
    event('granted', 2, 2001),
    event('released', 1, 1500),
    event('granted', 1, 1000),
  ]);
  assert.deepEqual(
    log.recent(() => true, 9).map(({ at_unix_ms: at }) => at),
    [1000, 1500, 2000, 2100, 2200],
  );
  const many = Array.from({ length: 5000 }, (_, i) => event('granted', 9000 - i, 900 - i));
  log.addHistory(many);
  assert.ok(log.recent(() => true, Infinity).length <= 2000);
  assert.equal(log.recent(() => true, 1)[0].at_unix_ms, 2200);
});

test('the clock trusts the shortest round trip, and a jump more than the past', () => {
  let local = 1000;
  const clock = new ServerClock(() => local);
  clock.observe(1000, 1010, 61_005);
  assert.equal(clock.now() - local, 60_000);
  clock.observe(2000, 2800, 62_300); // slow, and so less sure
  assert.equal(clock.now() - local, 60_000);
  clock.observe(3000, 3004, 3002);
  assert.equal(clock.now() - local, 0);
  local = 5000;
  assert.equal(clock.now(), 5000);
});

test('a poll never asks twice at once, and a poke during a call is not lost', async () => {
  let [running, most, calls] = [0, 0, 0];
  let finish;
  const finished = new Promise((resolve) => {
    finish = resolve;
  });
  const poll = new Poll(
    async () => {
      most = Math.max(most, ++running);
      if (++calls === 1) poll.poke();
      await new Promise((resolve) => {
        setTimeout(resolve, 1);
      });
      running--;
      if (calls === 3) finish();
      else poll.poke();
    },
    { everyMs: 600_000, soonestMs: 1 },
  );
  poll.start();
  await finished;
  poll.stop();
  assert.equal(most, 1);
});
