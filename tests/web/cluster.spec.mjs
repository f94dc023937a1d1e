// A server in a cluster: who leads, who follows, who is silent. What such a server says is put in
// the place of what this one does, which is on its own.
import { test, expect, open } from './fixtures.mjs';

const node = (name, role, more) => ({
  node_id: name,
  addr: `10.0.0.${name.at(-1)}:6388`,
  role,
  applied: 4711,
  behind: 0,
  silent_s: 0.4,
  ...more,
});

async function pretend(page, cluster) {
  await page.unroute('**/v1/overview');
  await page.route('**/v1/overview', async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), ...cluster } });
  });
}

test('a server on its own shows no cluster', async ({ page, server }) => {
  await open(page, server);
  await expect(page.locator('.tile-held')).toBeVisible();
  await expect(page.locator('#cluster')).toBeHidden();
});

test('a cluster is shown: who leads, who follows and how far behind', async ({ page, server }) => {
  const cluster = { node_id: 'n2', role: 'follower', epoch: 17, leader_addr: '10.0.0.1:6388' };
  const nodes = [
    node('n1', 'leader'),
    node('n2', 'follower'),
    node('n3', 'follower', { behind: 12 }),
  ];
  await pretend(page, { journal: 'following', cluster: { ...cluster, nodes } });
  await open(page, server);
  const rows = page.locator('#cluster-list li');
  await expect(page.locator('#cluster-epoch')).toHaveText('epoch 17');
  await expect(rows).toHaveCount(3);
  await expect(rows.nth(0)).toContainText('leads');
  await expect(rows.nth(1)).toContainText('this server');
  await expect(rows.nth(1)).toContainText('in step');
  await expect(rows.nth(2)).toContainText('12 changes behind');
  await expect(page.locator('#server-journal')).toHaveText('follows the leader');
  await expect(page.locator('#notice')).toBeHidden();

  nodes[0].silent_s = 9;
  await pretend(page, { cluster: { ...cluster, leader_addr: '-', epoch: 0, nodes } });
  await expect(rows.nth(0)).toContainText('silent for 9');
  await expect(rows.nth(0)).toHaveClass(/warned/);
  await expect(page.locator('#cluster-epoch')).toHaveText('nobody leads');
  // What is under way fails with the server, which ends before the page does.
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});
