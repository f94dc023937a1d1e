// A server with a token lets nobody look in without it.
import { test, expect, expectStream } from './fixtures.mjs';

const token = 'correct-horse/battery+staple==';
test.use({ serverOptions: { token } });

test('the page asks for the token, and says when it is wrong', async ({ page, server }) => {
  await server.acquire('stone-42', 'cart-7');
  await page.goto(server.address);
  const input = page.getByLabel('Auth token', { exact: true });
  await expect(input).toBeFocused();
  await expect(page.locator('#content')).toBeHidden();
  await expect(page.getByText('stone-42')).toHaveCount(0);

  await input.fill('wrong');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('alert').filter({ hasText: 'refused' })).toBeVisible();
  await input.fill('schlüssel');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('alert').filter({ hasText: 'only between them' })).toBeVisible();

  await input.fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByRole('row').filter({ hasText: 'stone-42' })).toBeVisible();
  await expect(page.locator('#token-page')).toBeHidden();
  await expectStream(page);
  await server.acquire('stone-43', 'cart-7');
  await expect(page.locator('.event').first()).toContainText('stone-43');

  expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain('horse');
  await page.reload();
  await expect(page.getByRole('row').filter({ hasText: 'stone-42' })).toBeVisible();
  await expect(page.getByText('Bearer AUTH_TOKEN')).toHaveCount(2); // as a hint, never the secret
});

test('another tab has to ask again', async ({ page, server, context }) => {
  await page.goto(server.address);
  await page.getByLabel('Auth token', { exact: true }).fill(token);
  await page.keyboard.press('Enter');
  await expect(page.locator('#connection')).toContainText('Live');
  const other = await context.newPage();
  await other.goto(server.address);
  await expect(other.getByLabel('Auth token', { exact: true })).toBeVisible();
});
