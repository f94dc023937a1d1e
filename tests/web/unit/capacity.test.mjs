import assert from 'node:assert/strict';
import test from 'node:test';
import { pure } from './pure.mjs';

const { firstWithRoom, permitsInUse, without } = await pure('capacity.js');
const shared = { mode: 'shared' };

function lock(holds, queue) {
  return { kind: 'lock', limit: 1, holders: holds.length, holds, queue };
}

// `permits` of each hold; the server counts them when they are more than the holders.
function semaphore(limit, permits, queue) {
  const holds = permits.map((count) => (count > 1 ? { permits: count } : {}));
  const sum = permits.reduce((a, b) => a + b, 0);
  const counted = sum > holds.length ? { permits: sum } : {};
  return { kind: 'semaphore', limit, holders: holds.length, holds, queue, ...counted };
}

test('the first in the queue has room or not, by what is held and what it asks for', () => {
  const cases = [
    [lock([], []), false],
    [lock([], [{}]), true],
    [lock([], [shared]), true],
    [lock([{}], [{}]), false],
    [lock([{}], [shared]), false],
    [lock([shared, shared], [{}]), false],
    [lock([shared, shared], [shared]), true],
    [semaphore(3, [1, 1], [{}]), true],
    [semaphore(3, [1, 1], [{ permits: 2 }]), false],
    [semaphore(3, [3], [{}]), false],
    [semaphore(5, [3], [{ permits: 2 }]), true],
  ];
  for (const [key, hasRoom] of cases) {
    assert.equal(firstWithRoom(key), hasRoom ? key.queue[0] : null, JSON.stringify(key));
  }
});

test('a hold that ends gives back what it had', () => {
  const printers = semaphore(5, [3, 1], [{ permits: 3 }]);
  assert.equal(permitsInUse(printers), 4);
  assert.equal(permitsInUse(without(printers, printers.holds[0])), 1);
  assert.equal(firstWithRoom(without(printers, printers.holds[1])), null);
  assert.equal(firstWithRoom(without(printers, printers.holds[0])), printers.queue[0]);
  const catalog = lock([{ ...shared }, { ...shared }], [{}]);
  assert.equal(firstWithRoom(without(catalog, catalog.holds[0])), null);
});
