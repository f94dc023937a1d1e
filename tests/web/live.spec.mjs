// What happens on the server is seen on the page, without anybody asking for it.
import { test, expect, open, row, expectNotReloaded } from './fixtures.mjs';

test('an empty server says how to make a first lock, until there is one', async ({
  page,
  server,
}) => {
  const { line_port: port } = await (await fetch(`${server.address}/v1/overview`)).json();
  await open(page, server);
  await expect(page.locator('#step-curl')).toContainText(`${server.address}/v1/acquire`);
  await expect(page.locator('#step-nc')).toContainText(`nc 127.0.0.1 ${port}`);
  await expect(page.locator('#step-journal')).toBeVisible();

  await server.acquire('stone-42', 'cart-7');
  await expect(row(page, 'stone-42')).toContainText('cart-7');
  await expect(page.locator('#first-steps')).toBeHidden();
});

test('what the first steps say is granted', async ({ page, server }) => {
  await open(page, server);
  for (const [step, key] of [
    ['#step-curl', 'stone-42'],
    ['#step-several', 'seat-13'],
  ]) {
    const [, body, path] = /-d '(.*)' \S*(\/v1\S*)$/.exec(
      await page.locator(`${step} code`).textContent(),
    );
    await server.call(path, JSON.parse(body));
    await expect(row(page, key).locator('.hold .holder')).toHaveText('cart-7');
  }
});

test('a lock is taken, waited for, expires and passes on', async ({ page, server }) => {
  await open(page, server);
  const grant = await server.acquire('stone-42', 'cart-7');
  const lock = row(page, 'stone-42');
  await expect(lock.locator('.holds')).toContainText('cart-7');
  await expect(lock.locator('.fence')).toHaveText(String(grant.token));

  server.queue('stone-42', 'cart-8');
  await expect(lock.locator('.waiting')).toContainText('cart-8');
  server.queue('stone-42', 'cart-9');
  await expect(lock.locator('.queue-count')).toHaveText('2');
  await expect(lock.locator('.waiter .holder')).toHaveText(['cart-8', 'cart-9']);
  await expect(page.locator('.tile-waiting .tile-number')).toHaveText('2');

  await server.renew(grant, { ttl_ms: 2000 }); // and no more
  await expect(lock.locator('.holds')).toContainText('cart-8');
  await expect(lock.locator('.waiter .holder')).toHaveText(['cart-9']);
  const events = page.locator('.event').filter({ hasText: 'stone-42' });
  await expect(events.filter({ hasText: 'expired' })).toContainText('cart-7');
  await expect(events.filter({ hasText: 'granted' }).first()).toContainText('cart-8');
  await expect(page.locator('.tile-expiries')).toContainText('1 in all');
  await expect(page.locator('#latency-p50')).toContainText('s'); // somebody has waited
  await expectNotReloaded(page);
});

test('a lease runs down by itself, and a renewal moves it', async ({ page, server }) => {
  const grant = await server.acquire('stone-42', 'cart-7', { ttl_ms: 59_000 });
  await open(page, server);
  const left = row(page, 'stone-42').locator('.lease-left');
  await expect(left).toHaveText(/^\d+ s$/);
  await page.route('**/v1/locks*', (route) => route.abort()); // it runs without being told
  const seconds = async () => Number.parseInt(await left.textContent(), 10);
  const atFirst = await seconds();
  expect(atFirst).toBeLessThanOrEqual(59);
  await expect.poll(seconds).toBeLessThan(atFirst);

  await page.unroute('**/v1/locks*');
  await server.renew(grant, { ttl_ms: 3_600_000 });
  await expect(left).toHaveText(/^(59|60)m \d\ds$|^1h 00m$/);
});

test('hot keys: the longest queue and the most grants', async ({ page, server }) => {
  await open(page, server);
  await server.acquire('crowded', 'first');
  for (const holder of ['b', 'c', 'd']) server.queue('crowded', holder);
  await expect(page.locator('#hot-queues li').first()).toContainText('crowded');
  await expect(page.locator('#hot-queues li .rank-size').first()).toHaveText('3');

  for (let i = 0; i < 5; i++) await server.release(await server.acquire('busy', 'somebody'));
  await expect(page.locator('#hot-grants li').first()).toContainText('busy');
});

test('listeners to signals are listed', async ({ page, server }) => {
  await open(page, server);
  await expect(page.locator('#signals-none')).toBeVisible();
  const away = new AbortController();
  const listening = await fetch(`${server.address}/v1/signals?pattern=orders.%3E&group=billing`, {
    signal: away.signal,
  });
  const channel = page.locator('#signals-list li');
  await expect(channel).toContainText('orders.>');
  await expect(channel).toContainText('billing');
  expect(listening.ok).toBe(true); // and kept until here: Node closes what nobody refers to
  away.abort();
  await expect(channel).toHaveCount(0);
});

test('the stream of events can be paused', async ({ page, server }) => {
  await open(page, server);
  await server.acquire('before', 'cart-7');
  await expect(page.locator('.event.granted')).toHaveCount(1);
  await page.getByRole('button', { name: 'Pause' }).click();
  await server.acquire('during', 'cart-7');
  await expect(page.locator('#events-held')).toHaveText('1 event since');
  await expect(page.locator('.event.granted')).toHaveCount(1);
  await page.getByRole('button', { name: 'Pause' }).click();
  await expect(page.locator('.event.granted')).toHaveCount(2);
  await expect(page.locator('.event').first()).toContainText('during');
});
