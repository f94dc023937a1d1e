// What an admin does on the page, for those who may; and the clients.
import { test, expect, open, row } from './fixtures.mjs';

const release = (page) => page.locator('.hold-entry').getByRole('button', { name: 'Release…' });

test.afterEach(({ page }) => page.unrouteAll({ behavior: 'ignoreErrors' }));

test('a hold is released with a reason, and passes on', async ({ page, server }) => {
  const grant = await server.acquire('stone-42', 'cart-7');
  server.queue('stone-42', 'cart-8');
  await open(page, server, '#key=stone-42');
  await expect(page.locator('.wait-entry')).toHaveCount(1);
  await release(page).click();

  const dialog = page.getByRole('dialog', { name: 'Release stone-42' });
  await expect(dialog).toContainText(/cart-7.* loses it at once/);
  await expect(dialog).toContainText('cart-8');
  await expect(dialog.getByLabel('Reason')).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(dialog.getByRole('alert')).toContainText('Say why');
  await dialog.getByLabel('Reason').fill('its host is gone');
  const sent = page.waitForRequest('**/v1/admin/release');
  await dialog.getByRole('button', { name: 'Release it' }).click();
  expect((await sent).postDataJSON()).toEqual({
    key: 'stone-42',
    kind: 'lock',
    token: grant.token,
    reason: 'its host is gone',
  });
  await expect(dialog.getByRole('status')).toContainText('Released: cart-7');
  await page.keyboard.press('Enter'); // closes it
  await expect(dialog).toBeHidden();
  await expect(page.locator('.hold-entry .holder')).toHaveText('cart-8');
  const event = page.locator('.event.revoked');
  await expect(event).toContainText('cart-7');
  await expect(event).toContainText('its host is gone');
});

test('what was released meanwhile hurts nobody', async ({ page, server }) => {
  const grant = await server.acquire('stone-42', 'cart-7');
  await open(page, server, '#key=stone-42');
  await release(page).click();
  await server.release(grant);
  await server.acquire('stone-42', 'cart-8');
  await page.getByLabel('Reason').fill('stuck');
  await page.getByRole('button', { name: 'Release it' }).click();
  await expect(page.getByRole('dialog').getByRole('alert')).toContainText('somebody else holds it');
  await page.keyboard.press('Escape');
  await expect(page.getByRole('dialog')).toBeHidden();
  await expect(page.locator('.hold-entry .holder')).toHaveText('cart-8'); // and the key is shown
});

test('a semaphore is resized, and those who wait are granted', async ({ page, server }) => {
  const permit = (holder) => ({ key: 'printers', holder, limit: 1, ttl_ms: 600_000 });
  await server.call('/v1/semaphores/acquire', permit('worker-1'));
  const second = server.ask('/v1/semaphores/acquire', { ...permit('worker-2'), wait_ms: 600_000 });
  await open(page, server, '#key=printers');
  await expect(page.locator('.wait-entry')).toHaveCount(1);
  await page.getByRole('button', { name: 'Resize…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Resize printers' });
  await expect(dialog).toContainText('1 of 1 permits');
  await dialog.getByLabel('New limit').fill('2');
  await dialog.getByLabel('Reason').fill('a second printer');
  await dialog.getByRole('button', { name: 'Set the limit' }).click();
  await expect(dialog.getByRole('status')).toContainText('The limit is 2 now');
  expect((await second).status).toBe(200);
  await dialog.getByRole('button', { name: 'Close' }).click();
  await expect(page.locator('.hold-entry .holder')).toHaveText(['worker-1', 'worker-2']);
  await expect(page.locator('.event.resized')).toContainText('a second printer');
});

test('who may not act sees no button', async ({ page, server }) => {
  await server.acquire('stone-42', 'cart-7');
  await page.route('**/v1/whoami', (route) =>
    route.fulfill({ json: { name: 'looker', rights: ['read'], keys: ['stone'] } }),
  );
  await open(page, server, '#key=stone-42');
  await expect(page.locator('.hold-entry')).toBeVisible();
  await expect(release(page)).toBeHidden();
  await expect(page.getByRole('link', { name: 'Clients' })).toBeHidden();

  await page.unroute('**/v1/whoami');
  await page.route('**/v1/whoami', (route) => route.fulfill({ status: 404, json: {} }));
  await page.reload();
  await expect(page.locator('.hold-entry')).toBeVisible();
  await expect(release(page)).toBeHidden();
});

test('a refusal is told, and can be tried again', async ({ page, server }) => {
  await server.acquire('stone-42', 'cart-7');
  await page.route('**/v1/admin/release', (route) =>
    route.fulfill({ status: 403, json: { error: 'denied', detail: 'needs the right admin' } }),
  );
  await open(page, server, '#key=stone-42');
  await release(page).click();
  await page.getByLabel('Reason').fill('stuck');
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByRole('alert')).toContainText('you may not do that');
  await page.unroute('**/v1/admin/release');
  await dialog.getByRole('button', { name: 'Release it' }).click();
  await expect(dialog.getByRole('status')).toContainText('Released');
});

test('the clients are listed, and one is disconnected', async ({ page, server }) => {
  const away = new AbortController();
  const reply = await fetch(`${server.address}/v1/signals?pattern=orders`, { signal: away.signal });
  const ended = reply.text().catch(() => 'cut');
  await open(page, server);
  await page.getByRole('link', { name: 'Clients' }).click();
  await expect(page).toHaveURL(/#clients$/);
  const rows = page.locator('#clients-body tr');
  await expect(rows.first()).toContainText('127.0.0.1');
  const { clients } = await (await fetch(`${server.address}/v1/clients`)).json();
  const oldest = clients.reduce((a, b) => (a.connected_ms >= b.connected_ms ? a : b));
  await rows
    .filter({ hasText: oldest.peer })
    .getByRole('button', { name: 'Disconnect…' })
    .click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Reason').fill('forgotten');
  await dialog.getByRole('button', { name: 'Disconnect it' }).click();
  await expect(dialog.getByRole('status')).toContainText('Disconnected');
  await ended;
  await dialog.getByRole('button', { name: 'Close' }).click();
  await expect(rows.filter({ hasText: oldest.peer })).toHaveCount(0);
  await page.getByRole('link', { name: 'Keys' }).click();
  await expect(page.locator('#locks-panel')).toBeVisible();
});

test('a client is shown with what it says and has', async ({ page, server }) => {
  await page.route('**/v1/clients*', (route) =>
    route.fulfill({
      json: {
        clients: [
          {
            client_id: 17,
            protocol: 'line',
            peer: '10.0.0.7:51234',
            client: '<b>ann</b>@build-7:4711',
            note: 'deploy',
            token_name: 'billing',
            connected_ms: 7_200_000,
            idle_ms: 3000,
            holds: 2,
            places: 1,
            subscriptions: 0,
            unsent_bytes: 0,
          },
          { client_id: 18, protocol: 'http', peer: '10.0.0.8:1', connected_ms: 5, idle_ms: 5 },
        ],
      },
    }),
  );
  await open(page, server, '#clients');
  const ann = page.locator('#clients-body tr').first();
  await expect(ann).toContainText('tcp:17');
  await expect(ann.locator('.client')).toHaveText('<b>ann</b>@build-7:4711');
  for (const text of ['deploy', 'billing', '10.0.0.7:51234', '2h 00m', '3.0 s']) {
    await expect(ann).toContainText(text);
  }
  await expect(ann.locator('.holds')).toHaveText('2');
  await expect(page.locator('#clients-body tr')).toHaveCount(2);
  await ann.getByRole('link', { name: 'tcp:17' }).click();
  await expect(page).toHaveURL(/#client_id=17$/);
  await expect(page.locator('#locks-none')).toContainText('the client with the id 17');
  await expect(row(page, 'stone-42')).toHaveCount(0);
});
