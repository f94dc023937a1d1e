// The pictures in docs/images, taken when asked for: SCREENSHOTS=1, or `make screenshots`.
import { test, expect, open } from './fixtures.mjs';
import { playScene } from './scene.mjs';

const folder = new URL('../../docs/images/', import.meta.url).pathname;
const aMinute = 62_000; // then the charts are full
const pictures = [
  { name: 'dashboard_light', width: 1440, height: 1000, colorScheme: 'light', settleMs: aMinute },
  { name: 'dashboard_dark', width: 1440, height: 1000, colorScheme: 'dark', settleMs: aMinute },
  {
    name: 'dashboard_key',
    width: 1440,
    height: 800,
    colorScheme: 'light',
    settleMs: 2 * aMinute,
    hash: '#key=printers',
  },
  {
    name: 'dashboard_chain',
    width: 1440,
    height: 800,
    colorScheme: 'light',
    settleMs: 5000,
    hash: '#key=deploy%2Fprod',
  },
  {
    name: 'dashboard_free',
    width: 1440,
    height: 800,
    colorScheme: 'light',
    settleMs: 5000,
    hash: '#key=lights',
  },
  {
    name: 'dashboard_release',
    width: 1440,
    height: 800,
    colorScheme: 'light',
    settleMs: 5000,
    hash: '#key=deploy%2Fprod',
    press: 'Release…',
  },
  {
    name: 'dashboard_clients',
    width: 1440,
    height: 800,
    colorScheme: 'light',
    settleMs: 5000,
    hash: '#clients',
  },
  {
    name: 'dashboard_phone_light',
    width: 360,
    height: 780,
    colorScheme: 'light',
    settleMs: aMinute,
  },
  {
    name: 'dashboard_phone_dark',
    width: 360,
    height: 780,
    colorScheme: 'dark',
    settleMs: aMinute,
    hash: '#key=ledger%2F2026',
  },
];

test.skip(!process.env.SCREENSHOTS, 'taken when SCREENSHOTS is set');

test('pictures of a busy server', async ({ browser, server }) => {
  test.setTimeout(600_000);
  const endScene = playScene(server.address);
  for (const { name, width, height, colorScheme, hash, settleMs, press } of pictures) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme });
    const page = await context.newPage();
    await open(page, server, hash);
    await page.waitForTimeout(settleMs);
    if (press) await page.getByRole('button', { name: press }).first().click();
    await page.screenshot({ path: `${folder}${name}.png` });
    await context.close();
  }
  endScene();
});

test('a picture of an empty server', async ({ page, server }) => {
  await page.setViewportSize({ width: 1440, height: 800 });
  await open(page, server);
  await expect(page.locator('#first-steps')).toBeVisible();
  await page.screenshot({ path: `${folder}dashboard_empty.png` });
});
