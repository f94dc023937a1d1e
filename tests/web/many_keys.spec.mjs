// A hundred thousand keys: the page asks for a part, shows a part, and stays at hand.
import { test, expect, open, row } from './fixtures.mjs';

const keyCount = 100_000;
test.use({ serverOptions: { flags: ['--max-locks', '200000'] } });

test('the page stays small and quick', async ({ page, server }, information) => {
  test.setTimeout(600_000);
  const keys = Array.from({ length: keyCount }, (_, i) => `shard-${i % 100}/item-${i}`);
  await server.acquireMany(keys);

  const answers = [];
  page.on('response', async (response) => {
    if (response.url().includes('/v1/locks'))
      answers.push((await response.body().catch(() => '')).length);
  });
  await open(page, server);
  await expect(page.locator('.tile-held .tile-number')).toHaveText('100,000');
  const rows = page.locator('#locks-body tr');
  await expect(rows).toHaveCount(50);

  const firstPage = await rows.first().locator('.key').textContent();
  await page.getByRole('button', { name: 'Next' }).click();
  await expect(page.locator('#locks-page')).toHaveText('Page 2');
  await expect(rows).toHaveCount(50);
  await expect(row(page, firstPage)).toHaveCount(0);
  await page.getByRole('button', { name: 'Previous' }).click();
  await expect(row(page, firstPage)).toBeVisible();

  await page.locator('#search').fill('shard-42/item-99942');
  await expect(rows).toHaveCount(1);
  server.queue('shard-42/item-99942', 'cart-7');
  await expect(rows.locator('.waiting')).toContainText('cart-7');
  await page.locator('#search').fill('');
  await expect(rows).toHaveCount(50);
  await page.getByLabel('Order').selectOption('longest queue first');
  await expect(rows.first()).toContainText('shard-42/item-99942');

  const elements = await page.evaluate(() => document.querySelectorAll('*').length);
  expect(elements).toBeLessThan(5000);
  expect(Math.max(...answers)).toBeLessThan(200_000);
  information.annotations.push(
    { type: 'elements', description: String(elements) },
    { type: 'largest answer, bytes', description: String(Math.max(...answers)) },
  );
});

test('a storm of events leaves the page usable', async ({ page, server }) => {
  await open(page, server);
  const storm = server.acquireMany(Array.from({ length: 20_000 }, (_, i) => `storm-${i}`));
  await page.locator('#search').fill('storm-1999');
  await storm;
  // storm-1999, and storm-19990 to storm-19999
  await expect(page.locator('#locks-body tr')).toHaveCount(11);
  expect(await page.locator('.event').count()).toBeLessThanOrEqual(100);
});
