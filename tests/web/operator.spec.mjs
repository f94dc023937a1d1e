// What an operator asks at night: who is that, since when, who waits for whom, what happened
// before, and what a restart has cost.
import { test, expect, open, row, expectStream } from './fixtures.mjs';

// Answers to `calls` as `change` makes them of the server's own, while it is there.
async function pretend(page, calls, change) {
  await page.route(calls, async (route) => {
    const response = await route.fetch().catch(() => null);
    if (response === null) await route.abort();
    else await route.fulfill({ response, json: change(await response.json()) });
  });
}

const minuteMs = 60_000;

// Every hold is that much older, and so is every wait.
function grownOlder(heldMs, waitedMs) {
  return ({ locks, ...more }) => ({
    locks: locks.map((lock) => ({
      ...lock,
      holds: lock.holds.map((hold) => ({ ...hold, held_ms: hold.held_ms + heldMs })),
      queue: lock.queue.map((place) => ({ ...place, waited_ms: place.waited_ms + waitedMs })),
    })),
    ...more,
  });
}

test.afterEach(({ page }) => page.unrouteAll({ behavior: 'ignoreErrors' }));

test('how long it is held stands beside the lease, and what is long is coloured', async ({
  page,
  server,
}) => {
  await server.acquire('alone', 'cart-7');
  await server.acquire('wanted', 'cart-7');
  await pretend(page, '**/v1/locks?*', grownOlder(6 * minuteMs, minuteMs));
  await open(page, server);
  const age = (key) => row(page, key).locator('.hold .age');
  await expect(age('wanted')).toHaveText(/^6m \d\ds$/);
  await expect(age('wanted')).not.toHaveClass(/long/); // nobody waits yet

  server.queue('wanted', 'cart-8');
  const wait = row(page, 'wanted').locator('.waiter .age');
  await expect(wait).toHaveText(/^1m \d\ds$/);
  await expect(wait).toHaveClass(/(^| )long/);
  await expect(age('wanted')).toHaveClass(/(^| )long/);
  await expect(age('alone')).not.toHaveClass(/long/);

  await page.unroute('**/v1/locks?*');
  await pretend(page, '**/v1/locks?*', grownOlder(61 * minuteMs, 6 * minuteMs));
  await expect(wait).toHaveClass(/very-long/);
  await expect(age('wanted')).toHaveClass(/very-long/);
  await expect(page.locator('#locks-legend')).toContainText('more than 30 s');
});

test('who a client says it is stands beside the holder', async ({ page, server }) => {
  const hostile = '<img src=x onerror=alert(1)>';
  await server.acquire('stone-42', 'cart-7');
  server.queue('stone-42', 'cart-8');
  const known = (entry) => ({ ...entry, client: 'ann@build-7:4711', peer: '10.0.0.7:51234' });
  await pretend(page, '**/v1/locks?*', ({ locks, ...more }) => ({
    locks: locks.map((lock) => ({
      ...lock,
      holds: lock.holds.map((hold) => ({ ...known(hold), holder: 'tcp:17', client_id: 17 })),
      queue: lock.queue.map((place) => ({ ...known(place), note: hostile })),
    })),
    ...more,
  }));
  await open(page, server);
  const shown = row(page, 'stone-42');
  await expect(shown.locator('.hold .holder')).toHaveText('tcp:17');
  await expect(shown.locator('.hold .client')).toHaveText('ann@build-7:4711');
  await expect(shown.locator('.hold .client')).toHaveAttribute('title', /10\.0\.0\.7:51234/);
  await shown.locator('.key').click({ position: { x: 5, y: 5 } });
  await expect(page.locator('.hold-entry .peer')).toHaveText('10.0.0.7:51234');
  await expect(page.locator('.wait-entry .note')).toHaveText(hostile);
  await page.locator('.hold-entry .holder').click();
  await expect(page).toHaveURL(/#client_id=17$/);
});

test('who waits for whom is followed from key to key', async ({ page, server }) => {
  await server.acquire('stone-42', 'cart-7');
  await server.acquire('ledger', 'clerk');
  await server.acquire('printer', 'worker');
  server.queue('ledger', 'cart-7');
  await open(page, server, '#key=stone-42');
  const chain = page.locator('#chain');
  await expect(chain).toContainText('waits for ledger');
  await expect(chain).toContainText('clerk waits for nothing');
  server.queue('printer', 'clerk');
  await expect(chain).toContainText('waits for printer');
  await expect(chain.locator('.holder')).toHaveText(['cart-7', 'clerk', 'worker']);
  await expect(chain).not.toContainText('circle');
  await chain.getByRole('link', { name: 'printer' }).click();
  await expect(page.locator('#detail-key')).toHaveText('printer');
  await expect(chain).toBeHidden(); // its holder waits for nothing
});

test('a chain that goes on and on is cut', async ({ page, server }) => {
  for (let i = 0; i < 14; i++) await server.acquire(`key-${i}`, `holder-${i}`);
  for (let i = 0; i < 13; i++) server.queue(`key-${i + 1}`, `holder-${i}`);
  await open(page, server, '#key=key-0');
  await expect(page.locator('#chain')).toContainText('and so on');
  await expect(page.locator('#chain')).toContainText('key-8');
  await expect(page.locator('#chain')).not.toContainText('key-10');
});

test('events begin before the page was opened', async ({ page, server }) => {
  await server.release(await server.acquire('stone-42', 'cart-7'));
  await server.acquire('paper-1', 'cart-8');
  await open(page, server);
  const verbs = page.locator('.event .verb');
  await expect(verbs).toHaveText(['granted', 'released', 'granted', 'started']);
  await server.acquire('paper-2', 'cart-8');
  await expect(verbs).toHaveText(['granted', 'granted', 'released', 'granted', 'started']);
  await page.goto(`${server.address}/#key=stone-42`);
  await expect(page.locator('.event .key')).toHaveText(['stone-42', 'stone-42']);
  await expect(page.locator('.timeline .released title')).toHaveText(/^cart-7: .*released/);
});

test('a server that remembers nothing is followed from now on', async ({ page, server }) => {
  await page.route('**/v1/history*', (route) =>
    route.fulfill({ status: 404, json: { error: 'not_found', detail: 'see --history' } }),
  );
  await server.acquire('before', 'cart-7');
  await open(page, server);
  await expect(row(page, 'before')).toBeVisible();
  await server.acquire('after', 'cart-8');
  await expect(page.locator('.event .key')).toHaveText(['after']);
});

test('events of every kind are told in words', async ({ page, server }) => {
  const at = Date.now() - minuteMs;
  const held = { kind: 'lock', key: 'stone-42', holder: 'tcp:17', client: 'ann@build-7:4711' };
  const events = [
    { event: 'revoked', ...held, token: 3, held_ms: 9e5, reason: 'stuck', by: 'default' },
    { event: 'resized', kind: 'semaphore', key: 'printers', limit: 5, reason: 'x', by: 'ops' },
    { event: 'auth_failed', peer: '10.0.0.9:40000' },
    { event: 'refused', ...held, reason: 'max_locks' },
    { event: 'slow_hold', ...held, token: 2, held_ms: 6e5 },
    { event: 'started' },
  ].map((event, i) => ({ at_unix_ms: at - i, ...event }));
  await page.route('**/v1/history*', (route) => route.fulfill({ json: { events } }));
  await open(page, server);
  const shown = (type) => page.locator(`.event.${type}`);
  await expect(shown('revoked')).toContainText('ann@build-7:4711');
  await expect(shown('revoked')).toContainText('stuck · by default');
  await expect(shown('resized')).toContainText('limit 5');
  await expect(shown('auth_failed')).toContainText('10.0.0.9:40000');
  await expect(shown('refused')).toContainText('max_locks');
  await expect(shown('slow_hold')).toContainText('long hold');
  await expect(shown('started')).toContainText('the server');
});

test('a restart without a journal says what it has cost', async ({ page, server }) => {
  await server.acquire('before', 'cart-7');
  await open(page, server);
  await expect(page.locator('#server-journal')).toContainText('a restart forgets everything');
  await expect(page.locator('#restart')).toBeHidden();
  await server.stop();
  await expect(page.locator('#connection')).toContainText('Connection lost');
  await server.start();
  await expectStream(page);
  await expect(page.locator('#restart')).toContainText('has no journal');
  await page.getByRole('button', { name: 'Noted' }).click();
  await expect(page.locator('#restart')).toBeHidden();
});

test('a restart with a journal loses nothing, and says nothing', async ({ page, server }) => {
  await pretend(page, '**/v1/overview', (overview) => ({ ...overview, journal: 'accepting' }));
  await open(page, server);
  await server.stop();
  await expect(page.locator('#connection')).toContainText('Connection lost');
  await server.start();
  await expectStream(page);
  await expect(page.locator('#restart')).toBeHidden();
});
