// Locks that are shared, and several permits: who has how much of a key.
import { test, expect, open, row } from './fixtures.mjs';

const shared = { mode: 'shared' };
const entry = (page, kind, holder) =>
  page.locator(`.${kind}-entry`).filter({ has: page.getByTitle(holder, { exact: true }) });

test('who shares a lock is told so, and so is who waits to', async ({ page, server }) => {
  await open(page, server);
  for (const reader of ['reader-1', 'reader-2']) await server.acquire('catalog', reader, shared);
  const catalog = row(page, 'catalog');
  await expect(catalog.locator('.hold .holder')).toHaveText(['reader-1', 'reader-2']);
  await expect(catalog.locator('.hold .share')).toHaveText(['shared', 'shared']);
  await expect(page.locator('.event.granted').first()).toContainText('reader-2 · shared');
  server.queue('catalog', 'writer');
  await expect(catalog.locator('.waiter .holder')).toHaveText(['writer']);
  server.queue('catalog', 'reader-3', shared);
  await expect(catalog.locator('.waiter .holder')).toHaveText(['writer', 'reader-3']);
  await expect(catalog.locator('.waiter .share')).toHaveText(['shared']); // not the writer

  await catalog.locator('.key').click({ position: { x: 5, y: 5 } });
  await expect(page.locator('.detail-state')).toContainText('Lock, shared by 2 holders');
  await expect(entry(page, 'hold', 'reader-1').locator('.share')).toHaveText('shared');
  await expect(entry(page, 'wait', 'reader-3').locator('.share')).toHaveText('shared');
  await expect(entry(page, 'wait', 'writer').locator('.share')).toHaveCount(0);
});

test('a page of plain locks has no word of shares', async ({ page, server }) => {
  await server.release(await server.acquire('ledger', 'clerk-1'));
  await server.acquire('ledger', 'clerk-2');
  server.queue('ledger', 'clerk-3');
  await server.acquirePermits('printers', 'worker-1', 1, 3);
  await open(page, server);
  await expect(row(page, 'printers').locator('.permits')).toHaveText('1 of 3');
  await expect(row(page, 'ledger').locator('.waiter .holder')).toHaveText(['clerk-3']);
  await expect(page.locator('.event.released')).toHaveCount(1);
  await expect(page.locator('.share')).toHaveCount(0);
  await expect(page.locator('.events-list')).not.toContainText(/shared|permit/);
  await row(page, 'ledger').locator('.key').click({ position: { x: 5, y: 5 } });
  await expect(page.locator('.wait-entry')).toHaveCount(1);
  await expect(page.locator('.detail-state strong')).toHaveText('Lock, held');
  await expect(page.locator('.kept')).toBeHidden();
  await expect(page.locator('.share')).toHaveCount(0);
});

test('permits are counted, not those who have them', async ({ page, server }) => {
  await server.acquirePermits('printers', 'worker-1', 3, 5);
  await server.acquirePermits('printers', 'worker-2', 1, 5);
  server.queueForPermits('printers', 'worker-3', 2, 5);
  await open(page, server);
  const printers = row(page, 'printers');
  await expect(printers.locator('.permits')).toHaveText('4 of 5');
  await expect(printers.locator('.hold .share')).toHaveText(['3 permits']);
  await expect(printers.locator('.waiter .share')).toHaveText(['2 permits']);
  await expect(page.locator('.event.queued')).toContainText('2 permits');

  await printers.locator('.key').click({ position: { x: 5, y: 5 } });
  await expect(page.locator('.detail-state')).toContainText('Semaphore, 4 of 5 held');
  await expect(page.locator('.kept')).toBeHidden(); // there is no room for two
  await expect(entry(page, 'hold', 'worker-1').locator('.share')).toHaveText('3 permits');
  await expect(page.locator('.timeline title').first()).toHaveText(/^worker-1: .*3 permits, still/);

  await page.getByRole('button', { name: 'Resize…' }).click();
  await expect(page.getByRole('dialog')).toContainText('4 of 5 permits');
  await expect(page.getByRole('dialog')).toContainText('more permits than the new limit');
  await page.keyboard.press('Escape');
  const releaseOf = (holder) => entry(page, 'hold', holder).getByRole('button');
  await releaseOf('worker-2').click();
  await expect(page.getByRole('dialog')).toContainText(/worker-3.* gets it under a larger fence\./);
});

test('a release that makes too little room says so', async ({ page, server }) => {
  for (const reader of ['reader-1', 'reader-2']) await server.acquire('catalog', reader, shared);
  await open(page, server, '#key=catalog');
  const release = entry(page, 'hold', 'reader-1').getByRole('button');
  await release.click();
  await expect(page.getByRole('dialog')).toContainText('the others keep what they have of it');
  await page.keyboard.press('Escape');
  server.queue('catalog', 'writer');
  await expect(page.locator('.wait-entry')).toHaveCount(1);
  await release.click();
  await expect(page.getByRole('dialog')).toContainText(/writer.* goes on waiting/);
});

test('of many who share a lock, those who wait are followed', async ({ page, server }) => {
  for (let i = 1; i <= 7; i++) await server.acquire('catalog', `reader-${i}`, shared);
  await server.acquire('ledger', 'clerk');
  server.queue('ledger', 'reader-6');
  server.queue('catalog', 'clerk');
  await open(page, server, '#key=catalog');
  const chain = page.locator('#chain');
  const links = chain.locator('#chain-list > li');
  await expect(links).toHaveText([
    /^reader-6.*waits for ledger/,
    /^reader-1.*waits for nothing$/,
    /^reader-2.*waits for nothing$/,
    'and 4 more',
  ]);
  await expect(links.locator('.share')).toHaveText(['shared', 'shared', 'shared']); // not the clerk
  await expect(chain.locator('.circle')).toContainText('waits for catalog');
});
