// A server that goes away is missed, and found again.
import { test, expect, expectStream, open, row, expectNotReloaded } from './fixtures.mjs';

test('the page says that the connection is lost, and comes back by itself', async ({
  page,
  server,
}) => {
  await server.acquire('before', 'cart-7');
  await open(page, server);
  await expect(row(page, 'before')).toBeVisible();

  await server.stop();
  await expect(page.locator('#connection')).toContainText(/Connection lost, trying/);
  await expect(page.getByRole('button', { name: 'Try now' })).toBeVisible();
  await expect(row(page, 'before')).toBeVisible(); // what was known stays, pale

  await server.start();
  await expectStream(page);
  await expect(row(page, 'before')).toHaveCount(0); // there was no journal
  await server.acquire('after', 'cart-8');
  await expect(row(page, 'after')).toContainText('cart-8');
  await expect(page.locator('.event').first()).toContainText('after');
  await expectNotReloaded(page);
});

test('nobody has to wait for the next try', async ({ page, server }) => {
  await open(page, server);
  await server.stop();
  // Long enough for a server to start: afterwards there is no button.
  await expect(page.locator('#connection')).toContainText(/again in 1\d s/, {
    timeout: 60_000,
  });
  await server.start();
  await page.getByRole('button', { name: 'Try now' }).click();
  await expect(page.locator('#connection')).toContainText('Live');
});
