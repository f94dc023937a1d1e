import assert from 'node:assert/strict';
import test from 'node:test';
import { pure } from './pure.mjs';

const { History, quantile } = await pure('history.js');

function overview(uptime, grants, counts) {
  return {
    uptime_ms: uptime,
    locks_held: 2,
    semaphore_holders: 1,
    lock_waiters: 3,
    semaphore_waiters: 0,
    totals: { grants, contended: 0, expiries: 0, timeouts: 0 },
    wait: { le_ms: [1, 10, 100], counts },
    hold: { le_ms: [1, 10, 100], counts: [0, 0, 0, 0] },
  };
}

test('a rate is a difference over the time between, and unknown from one sample', () => {
  const history = new History();
  history.add(overview(1000, 10, [0, 0, 0, 0]), 0);
  assert.equal(history.rate('grants', 5000), null);
  history.add(overview(3000, 30, [0, 0, 0, 0]), 2000);
  assert.equal(history.rate('grants', 5000), 10);
  assert.deepEqual(history.rates('grants'), [{ at: 2000, value: 10 }]);
  assert.deepEqual(
    history.gauge('held').map(({ value }) => value),
    [3, 3],
  );
});

test('another process starts the history again', () => {
  const history = new History();
  history.add(overview(90_000, 1000, [5, 0, 0, 0]), 0);
  history.add(overview(500, 1, [0, 0, 0, 0]), 1000);
  assert.equal(history.rate('grants', 5000), null);
  assert.deepEqual(history.rates('grants'), []);
});

test('what is older than five minutes is forgotten', () => {
  const history = new History();
  for (let second = 0; second <= 400; second++) {
    history.add(overview(second * 1000, second, [0, 0, 0, 0]), second * 1000);
  }
  assert.equal(history.gauge('held').length, 301);
  assert.equal(history.spanMs(), 300_000);
});

test('percentiles are of the window only', () => {
  const history = new History();
  history.add(overview(0, 0, [1000, 0, 0, 0]), 0);
  assert.equal(history.percentile('wait', 0.5, 60_000), null);
  history.add(overview(1000, 0, [1000, 10, 0, 0]), 1000);
  assert.equal(history.percentile('wait', 0.5, 60_000), 5.5);
  history.add(overview(2000, 0, [1000, 10, 0, 0]), 2000);
  assert.equal(history.percentile('wait', 0.5, 1000), null);
});

test('a quantile lies in its bucket, and above all bounds at the last', () => {
  assert.equal(quantile([1, 10, 100], [0, 0, 0, 0], 0.5), null);
  assert.equal(quantile([1, 10, 100], [10, 0, 0, 0], 0.5), 0.5);
  assert.equal(quantile([1, 10, 100], [98, 0, 2, 0], 0.99), 55);
  assert.equal(quantile([1, 10, 100], [0, 0, 0, 3], 0.5), 100);
});
