// What every test has: a server of its own, and a page that may not complain. A script that runs
// out of a name, a broken policy or an error of the page's own fails any test.
import { test as base, expect } from '@playwright/test';
import { Server } from './server.mjs';

export { expect };

export const test = base.extend({
  serverOptions: [{}, { option: true }],

  server: async ({ serverOptions }, use) => {
    const server = new Server(serverOptions);
    await server.start();
    await use(server);
    await server.stop();
  },

  page: async ({ page }, use) => {
    const complaints = [];
    page.on('pageerror', (error) => complaints.push(`error: ${error.stack}`));
    page.on('dialog', (dialog) => {
      complaints.push(`dialog: ${dialog.message()}`);
      return dialog.dismiss();
    });
    page.on('console', (message) => {
      // That a server is gone or wants a token, the browser says too; the page says it better.
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) {
        complaints.push(`console: ${message.text()}`);
      }
    });
    await use(page);
    expect(complaints).toEqual([]);
  },
});

export function row(page, key) {
  return page.getByRole('row').filter({ has: page.getByTitle(key, { exact: true }) });
}

// From here on, whatever happens is told.
export async function expectStream(page) {
  await expect(page.locator('#connection')).toContainText('Live', { timeout: 60_000 });
  await expect(page.locator('#events-list')).toHaveAttribute('aria-busy', 'false');
}

export async function open(page, server, hash = '') {
  await page.goto(`${server.address}/${hash}`);
  await expectStream(page);
  // A page that was loaded again would have forgotten this.
  await page.evaluate(() => {
    window.openedByTest = true;
  });
}

export async function expectNotReloaded(page) {
  expect(await page.evaluate(() => window.openedByTest)).toBe(true);
}
