// The page on small screens, by keyboard, and in both colours.
import { test, expect, open, row } from './fixtures.mjs';

test.describe('on a phone', () => {
  test.use({ viewport: { width: 360, height: 740 } });

  test('everything fits, and nothing has to be pushed aside', async ({ page, server }) => {
    await server.acquire('k'.repeat(256), 'h'.repeat(256));
    server.queue('k'.repeat(256), 'w'.repeat(256));
    await server.acquire('catalog', 'r'.repeat(256), { mode: 'shared' });
    await server.acquire('stone-42', 'cart-7');
    await open(page, server);
    await expect(row(page, 'stone-42')).toContainText('cart-7');
    await row(page, 'catalog').locator('.share').scrollIntoViewIfNeeded();
    await expect(row(page, 'catalog').locator('.share')).toBeInViewport({ ratio: 1 });
    const overhang = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(await overhang()).toBeLessThanOrEqual(0);
    await row(page, 'k'.repeat(256)).locator('.key').click();
    await expect(page.locator('.wait-entry')).toHaveCount(1);
    expect(await overhang()).toBeLessThanOrEqual(0);
  });
});

test('keys are reached and opened by keyboard', async ({ page, server }) => {
  for (const key of ['a', 'b', 'c']) await server.acquire(key, 'cart-7');
  await open(page, server);
  await row(page, 'a').locator('.key').focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await expect(row(page, 'c').locator('.key')).toBeFocused();
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('Enter');
  await expect(page.locator('#detail-key')).toHaveText('b');
});

test('a refresh leaves the focus where it is', async ({ page, server }) => {
  await server.acquire('b', 'cart-7');
  await open(page, server);
  await row(page, 'b').locator('.key').focus();
  await server.acquire('a', 'cart-7');
  await expect(row(page, 'a')).toBeVisible();
  await expect(row(page, 'b').locator('.key')).toBeFocused();
});

test('colours follow the system, or the choice, which stays', async ({ page, server }) => {
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMedia({ colorScheme: 'light' });
  await open(page, server);
  const light = await ground();
  await page.emulateMedia({ colorScheme: 'dark' });
  const dark = await ground();
  expect(dark).not.toBe(light);

  await page.getByRole('button', { name: 'Theme: system' }).click();
  await expect(page.getByRole('button', { name: 'Theme: light' })).toBeVisible();
  expect(await ground()).toBe(light);
  await page.reload();
  await expect(page.getByRole('button', { name: 'Theme: light' })).toBeVisible();
  await page.getByRole('button', { name: 'Theme: light' }).click();
  await page.emulateMedia({ colorScheme: 'light' });
  expect(await ground()).toBe(dark);
});

test('text can be told from its ground', async ({ page, server }) => {
  const grant = await server.acquire('stone-42', 'cart-7', { ttl_ms: 600_000 });
  server.queue('stone-42', 'cart-8');
  await server.acquire('catalog', 'reader-1', { mode: 'shared' });
  await open(page, server);
  await expect(row(page, 'stone-42')).toContainText('cart-8');
  await expect(row(page, 'catalog').locator('.share')).toHaveText('shared');
  await server.release(grant);
  await expect(page.locator('.event')).not.toHaveCount(0);
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    expect(await page.evaluate(findPaleText)).toEqual([]);
  }
});

// Texts with less than 4.5 : 1 to what is painted behind them. Runs in the page.
function findPaleText() {
  const channels = (color) => color.match(/[\d.]+/g).map(Number);
  const luminance = (color) => {
    const [r, g, b] = channels(color)
      .map((part) => part / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const groundOf = (node) => {
    const color = getComputedStyle(node).backgroundColor;
    const [, , , alpha = 1] = channels(color);
    return alpha > 0.99 || !node.parentElement ? color : groundOf(node.parentElement);
  };
  const pale = [];
  for (const node of document.querySelectorAll('body *')) {
    const hasText = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (!hasText || !node.checkVisibility() || node.closest('svg, button:disabled, noscript'))
      continue;
    const pair = [luminance(getComputedStyle(node).color), luminance(groundOf(node))].sort(
      (a, b) => b - a,
    );
    const contrast = (pair[0] + 0.05) / (pair[1] + 0.05);
    if (contrast < 4.5) pale.push(`${node.textContent.slice(0, 40)}: ${contrast.toFixed(2)}`);
  }
  return pale;
}
