// Finding keys, and looking at one.
import { test, expect, expectStream, open, row } from './fixtures.mjs';

test('a search for a beginning shows those keys, and their events', async ({ page, server }) => {
  await server.acquire('stone-42', 'cart-7');
  await server.acquire('paper-1', 'cart-8');
  await open(page, server);
  await expect(row(page, 'paper-1')).toBeVisible();

  const narrowed = page.waitForRequest(`${server.address}/v1/events?prefix=stone`);
  await page.getByLabel('What to search by').selectOption('key begins with');
  await page.keyboard.press('/');
  await page.keyboard.type('stone');
  await narrowed;
  await expect(row(page, 'paper-1')).toHaveCount(0);
  await expect(row(page, 'stone-42')).toBeVisible();
  await expect(page).toHaveURL(/#prefix=stone$/);
  await expectStream(page);

  await server.acquire('paper-2', 'cart-8');
  await server.acquire('stone-43', 'cart-8');
  await expect(row(page, 'stone-43')).toBeVisible();
  await expect(page.locator('.event').first()).toContainText('stone-43');
  await expect(page.locator('.event').filter({ hasText: 'paper' })).toHaveCount(0);

  await page.locator('#search').fill('nothing');
  await expect(page.locator('#locks-none')).toContainText('begin with nothing');
});

test('a search finds a word anywhere in the key', async ({ page, server }) => {
  await server.acquire('orders/42/print', 'cart-7');
  await server.acquire('orders/7', 'cart-8');
  await open(page, server);
  await page.keyboard.press('/');
  await page.keyboard.type('42');
  await expect(row(page, 'orders/7')).toHaveCount(0);
  await expect(row(page, 'orders/42/print')).toBeVisible();
  await expect(page).toHaveURL(/#contains=42$/);
  await server.acquire('paper-1', 'cart-8');
  await server.acquire('bill/42', 'cart-8');
  await expect(row(page, 'bill/42')).toBeVisible();
  await expect(page.locator('.event .key').first()).toHaveText('bill/42');
  await expect(page.locator('.event').filter({ hasText: 'paper' })).toHaveCount(0);
  await page.locator('#search').fill('nothing');
  await expect(page.locator('#locks-none')).toContainText('contain nothing');
});

test('a holder leads to all that it holds and waits for', async ({ page, server }) => {
  await server.acquire('stone-42', 'cart-7');
  await server.acquire('paper-1', 'cart-7');
  await server.acquire('ledger', 'clerk');
  await server.acquire('other', 'clerk');
  server.queue('ledger', 'cart-6');
  server.queue('ledger', 'cart-7');
  await open(page, server, '#key=stone-42');
  await page.locator('.hold-entry').getByRole('link', { name: 'cart-7' }).click();

  await expect(page).toHaveURL(/#holder=cart-7$/);
  await expect(page.locator('#search')).toHaveValue('cart-7');
  await expect(page.getByLabel('What to search by')).toHaveValue('holder');
  await expect(page.locator('#locks-body .key')).toHaveText(['ledger', 'paper-1', 'stone-42']);
  const ledger = row(page, 'ledger');
  await expect(ledger.locator('.waiter .holder')).toHaveText(['cart-7']);
  await expect(ledger.locator('.queue-count')).toHaveText('2');
  await expect(ledger.locator('.holds')).toHaveText('1 other');
  await expect(row(page, 'stone-42').locator('.hold .holder')).toHaveText('cart-7');
  await expect(page.locator('.event .holder')).toHaveText(['cart-7', 'cart-7', 'cart-7']);

  await page.getByLabel('What to search by').selectOption('client id is');
  await expect(page.locator('#locks-none')).toContainText('the client with the id cart-7');
});

test('a search is in the address', async ({ page, server }) => {
  await server.acquire('stone-42', 'cart-7');
  await server.acquire('a&b=c #1%', 'cart-7');
  await open(page, server, `#prefix=${encodeURIComponent('a&b=c #')}`);
  await expect(row(page, 'a&b=c #1%')).toBeVisible();
  await expect(row(page, 'stone-42')).toHaveCount(0);
  await expect(page.locator('#search')).toHaveValue('a&b=c #');
});

test('idle keys are shown when asked for', async ({ page, server }) => {
  await server.release(await server.acquire('stone-42', 'cart-7'));
  await server.acquire('stone-43', 'cart-7');
  await open(page, server);
  await expect(row(page, 'stone-43')).toBeVisible();
  await expect(row(page, 'stone-42')).toHaveCount(0);
  await page.getByLabel('idle ones too').check();
  await expect(row(page, 'stone-42')).toContainText('idle for');
});

test('the longest wait, or hold, of all keys comes first when asked for', async ({
  page,
  server,
}) => {
  for (const key of ['c', 'a', 'b']) await server.acquire(key, 'holder');
  await open(page, server);
  for (const key of ['b', 'c']) {
    server.queue(key, 'waiter');
    await expect(row(page, key)).toContainText('waiter');
  }
  const keys = page.locator('#locks-body .key');
  await page.getByLabel('Order').selectOption('longest hold first');
  await expect(keys).toHaveText(['c', 'a', 'b']);
  await page.getByLabel('Order').selectOption('longest wait first');
  await expect(keys).toHaveText(['b', 'c', 'a']);
});

test('one key: its holder, its queue in order, and who comes next', async ({ page, server }) => {
  const grant = await server.acquire('stone-42', 'cart-7');
  await open(page, server);
  for (const holder of ['cart-8', 'cart-9']) {
    server.queue('stone-42', holder);
    await expect(row(page, 'stone-42')).toContainText(holder);
  }
  await page.getByRole('link', { name: 'stone-42' }).first().click();

  await expect(page).toHaveURL(/#key=stone-42$/);
  await expect(page.getByRole('heading', { name: 'stone-42' })).toBeFocused();
  await expectStream(page);
  await expect(page.locator('.hold-entry')).toContainText(`fence ${grant.token}`);
  await expect(page.locator('.wait-entry .holder')).toHaveText(['cart-8', 'cart-9']);

  await server.release(grant);
  await expect(page.locator('.hold-entry .holder')).toHaveText('cart-8');
  await expect(page.locator('.wait-entry .holder')).toHaveText(['cart-9']);
  await expect(page.locator('.timeline .released title')).toHaveText(/^cart-7: .*released/);

  await page.keyboard.press('Escape');
  await expect(row(page, 'stone-42')).toBeVisible();
});

test('a link to a key opens it, and shows when somebody asks for it', async ({ page, server }) => {
  const key = 'orders/50% off? #1 & more+';
  await open(page, server, `#key=${encodeURIComponent(key)}`);
  await expect(page.locator('#detail-key')).toHaveText(key);
  await expect(page.locator('#detail-none')).toBeVisible();
  await server.acquire(key, 'cart-7');
  await server.acquire(`${key} other`, 'cart-8');
  await expect(page.locator('.hold-entry .holder')).toHaveText('cart-7');
  await expect(page.locator('#detail-none')).toBeHidden();
  await expect(page.locator('.event .holder')).toHaveText(['cart-7']);
});

test('a lock and a semaphore of one name are both shown', async ({ page, server }) => {
  await server.acquire('twin', 'cart-7');
  await server.call('/v1/semaphores/acquire', { key: 'twin', holder: 'worker-1', limit: 3 });
  await open(page, server, '#key=twin');
  await expect(page.locator('[data-kind=lock] .hold-entry .holder')).toHaveText('cart-7');
  await expect(page.locator('[data-kind=semaphore]')).toContainText('1 of 3 held');
});

test('a long queue is shown in part, and more of it when asked for', async ({ page, server }) => {
  await server.acquire('stone-42', 'cart-7');
  for (let i = 0; i < 130; i++) server.queue('stone-42', `later-${i}`);
  await open(page, server, '#key=stone-42');
  await expect(page.locator('.wait-entry')).toHaveCount(100);
  await page.getByRole('button', { name: 'show 30 more' }).click();
  await expect(page.locator('.wait-entry')).toHaveCount(130);
});
