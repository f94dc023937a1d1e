import assert from 'node:assert/strict';
import test from 'node:test';
import { pure } from './pure.mjs';

const { EventLog } = await pure('event_log.js');
const { EventParser } = await pure('event_stream.js');
const { GrantTally } = await pure('grant_tally.js');
const { Poll } = await pure('poll.js');
const { keyAddress, readRoute, searchAddress } = await pure('route.js');
const { ServerClock } = await pure('server_clock.js');

test('an address says what it was made from', () => {
  for (const name of ['stone-42', 'a&b=c', '50% off+1', '#key=x', ' ', '<script>', '日本']) {
    assert.equal(readRoute(keyAddress(name)).key, name);
    assert.equal(readRoute(searchAddress(name)).prefix, name);
  }
  assert.deepEqual(readRoute(''), { key: null, prefix: '' });
  assert.deepEqual(readRoute('#key='), { key: null, prefix: '' });
  assert.equal(readRoute('#key=%E0%A4%A').key, '%E0%A4%A');
  assert.equal(readRoute('#__proto__=1&key=a').key, 'a');
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
