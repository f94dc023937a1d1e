// Several keys at once: who waits for them, and why a key that stands free is not granted.
import { test, expect, open, row } from './fixtures.mjs';

test('who waits for several keys is told so, and the free one why it is free', async ({
  page,
  server,
}) => {
  const grant = await server.acquire('seat-11', 'cart-7');
  await open(page, server);
  server.queueForAll(['seat-11', 'seat-12', 'seat-13'], 'cart-8');
  const seat = row(page, 'seat-12');
  await expect(seat.locator('.waiter .share')).toHaveText('2 keys more');
  await expect(seat.locator('.holds')).toHaveText(/^free: the first in the queue waits/);
  await expect(row(page, 'seat-11').locator('.holds')).not.toContainText('free');
  server.queue('seat-12', 'cart-9');
  await expect(seat.locator('.waiter .holder')).toHaveText(['cart-8', 'cart-9']);

  await seat.locator('.key').click({ position: { x: 5, y: 5 } });
  const state = page.locator('.detail-state');
  await expect(state).toContainText('Lock, free');
  await expect(page.locator('.kept')).toHaveText(/the first .*, who waits for 2 other keys too$/);
  await expect(page.getByText('idle for')).toBeHidden();
  await expect(page.locator('.wait-entry .holder')).toHaveText(['cart-8', 'cart-9']);
  await expect(page.locator('.wait-entry .share')).toHaveText(['2 keys more']); // of cart-8

  await server.release(grant);
  await expect(page.locator('.hold-entry .holder')).toHaveText('cart-8');
  await expect(state).toContainText('Lock, held');
  await expect(page.locator('.kept')).toBeHidden();
  await expect(page.locator('.hold-entry .share')).toHaveCount(0); // an ordinary hold
});

test('a semaphore with room for the first in its queue says whom it is for', async ({
  page,
  server,
}) => {
  await server.acquire('seat-11', 'cart-7');
  await server.acquirePermits('guides', 'cart-6', 2, 5);
  const items = [{ key: 'seat-11' }, { key: 'guides', kind: 'semaphore', limit: 5, permits: 3 }];
  server.ask('/v1/acquire', { items, holder: 'cart-8', wait_ms: 600_000 }).catch(() => {});
  await open(page, server, '#key=guides');
  await expect(page.locator('.detail-state')).toContainText('Semaphore, 2 of 5 held');
  await expect(page.locator('.kept')).toHaveText(/the first .*, who waits for 1 other key too$/);
  await expect(page.locator('.wait-entry .share')).toHaveText('3 permits, 1 key more');
});

test('a release says what else the first in the queue waits for', async ({ page, server }) => {
  await server.acquire('seat-11', 'cart-7');
  await server.acquire('seat-12', 'cart-7');
  server.queueForAll(['seat-11', 'seat-12'], 'cart-8');
  await open(page, server, '#key=seat-12');
  await expect(page.locator('.wait-entry')).toHaveCount(1);
  await page.locator('.hold-entry').getByRole('button').click();
  await expect(page.getByRole('dialog')).toContainText(/cart-8.* as it can have 1 other key too/);
});

test('whoever waits at a free key waits for the first in its queue', async ({ page, server }) => {
  await server.acquire('seat-11', 'cart-7');
  await server.acquire('till', 'cart-9');
  await open(page, server, '#key=till');
  server.queueForAll(['seat-11', 'seat-12', 'seat-13'], 'cart-8');
  await expect(page.locator('.tile-waiting .tile-number')).toHaveText('3');
  server.queue('seat-12', 'cart-9');
  const chain = page.locator('#chain');
  await expect(chain).toContainText('which has room for the first in its queue');
  await expect(chain.locator('.holder')).toHaveText(['cart-9', 'cart-8', 'cart-7']);
  await expect(chain).toContainText(/waits for seat-11 for .*, held by/);
  await expect(chain).toContainText(/waits for seat-13 for .*, which has room for it/);
  await expect(chain.locator('.circle')).toHaveCount(0);

  await chain.getByRole('link', { name: 'seat-12' }).click();
  await expect(chain).toContainText('The first in its queue waits for other keys');
  await expect(chain.locator('.holder')).toHaveText(['cart-8', 'cart-7']);

  server.queue('seat-12', 'cart-7'); // behind the one who waits for it
  await expect(chain.locator('.circle')).toContainText('waits for seat-12');
});
