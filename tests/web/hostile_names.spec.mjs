// Whatever a key or a holder is called, it is only a name. The page fixture fails on any script
// that runs and on anything that the policy had to stop.
import { test, expect, open, row } from './fixtures.mjs';

const names = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "'; DROP TABLE locks; --",
  'javascript:alert(1)',
  '{{constructor.constructor("alert(1)")()}}',
  '&lt;b&gt;&amp;',
  '__proto__',
  'constructor',
  'x'.repeat(256),
  '\u05de\u05e4\u05ea\u05d7 \u0645\u0641\u062a\u0627\u062d',
  `z${'\u0310\u0321\u0489'.repeat(40)}`,
  '👩‍👩‍👧‍👦',
  ' blanks around ',
  '#key=other&prefix=x',
  '%00%zz',
];

test('names are shown as they are, in the table, the events and alone', async ({
  page,
  server,
}) => {
  await open(page, server);
  for (const name of names) await server.acquire(name, name);
  for (const name of names) {
    const shown = row(page, name);
    await expect(shown.locator('.key')).toHaveJSProperty('textContent', name);
    await expect(shown.locator('.hold .holder')).toHaveJSProperty('textContent', name);
    expect((await shown.boundingBox()).height).toBeLessThan(60);
  }
  await expect(page.locator('.event.granted')).toHaveCount(names.length);
  await expect(page.locator('main :is(script, img, b, iframe)')).toHaveCount(0);

  for (const name of names) {
    await row(page, name)
      .locator('.key')
      .click({ position: { x: 5, y: 5 } });
    await expect(page.locator('#detail-key')).toHaveJSProperty('textContent', name);
    await expect(page.locator('.hold-entry .holder')).toHaveJSProperty('textContent', name);
    await page.goBack();
    await expect(page.locator('#locks-panel')).toBeVisible();
  }
  const overhang = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(overhang).toBeLessThanOrEqual(0);
});

test('what turns text around or cannot be seen is spelled out', async ({ page, server }) => {
  await server.acquire('\u202Egnp.exe', 'cart-7');
  await server.acquire('zero\u200Bwidth', 'cart-7');
  await open(page, server);
  await expect(page.locator('#locks-body .key')).toHaveText([
    'zero\\u{200b}width',
    '\\u{202e}gnp.exe',
  ]);
});

test('a name that a link cannot hold is no key', async ({ page, server }) => {
  await open(page, server, '#key=%E0%A4%A');
  await expect(page.locator('#detail-key')).toHaveText('%E0%A4%A');
});
