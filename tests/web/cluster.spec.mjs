// A server in a cluster: how that is, in words; who leads, who follows, who is silent. What such a
// server says is put in the place of what this one does, which is on its own.
import { test, expect, open } from './fixtures.mjs';

const node = (name, role, more) => ({
  node_id: name,
  addr: `10.0.0.${name.at(-1)}:6388`,
  role,
  applied: 4711,
  behind: 0,
  ready: true,
  version: '0.1.0',
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

test('a cluster is told in words, and shown', async ({ page, server }) => {
  const nodes = [
    node('n1', 'leader'),
    node('n2', 'follower', { version: '0.2.0' }),
    node('n3', 'follower', { ready: false, behind: 12 }),
  ];
  const cluster = {
    node_id: 'n2',
    role: 'follower',
    certain: false,
    epoch: 17,
    leader: 'n1',
    leader_addr: '10.0.0.1:6388',
    lag_s: 0,
    etcd_silent_s: 0.1,
    nodes,
  };
  await pretend(page, { journal: 'following', cluster });
  await open(page, server);
  const state = page.locator('#cluster-state');
  const rows = page.locator('#cluster-nodes tr');
  await expect(state).toHaveText(
    'In order This server follows n1 and has caught up; it could take over.',
  );
  await expect(page.locator('#cluster-epoch')).toHaveText('epoch 17');
  await expect(rows).toHaveCount(3);
  await expect(rows.nth(0)).toContainText('leads');
  await expect(rows.nth(1)).toContainText('this server');
  await expect(rows.nth(1)).toContainText('caught up');
  await expect(rows.nth(1)).toContainText('0.2.0');
  await expect(rows.nth(2)).toContainText('12 changes behind');
  await expect(rows.nth(2)).toHaveClass(/warned/);
  await expect(page.locator('#server-journal')).toHaveText('follows the leader');
  await expect(page.locator('#notice')).toBeHidden();

  // Then etcd is gone. What is said is more than that the server is not ready.
  nodes[0].silent_s = 9;
  const lost = { ...cluster, not_ready: 'no_etcd', etcd_silent_s: 12 };
  await pretend(page, { ready: false, journal: 'following', cluster: lost });
  await expect(state).toContainText('Trouble This server does not know who leads: etcd has not');
  await expect(rows.nth(0)).toContainText('9.0 s');
  await expect(rows.nth(0)).toHaveClass(/warned/);
  await expect(page.locator('#notice')).toBeHidden();

  // Whatever is in the chain, the sentence is text.
  const unreadable = 'batch 2a/7 contradicts what came before, at key <img src=x>\u202e';
  await pretend(page, { ready: false, cluster: { ...cluster, unreadable } });
  await expect(state).toContainText('at key <img src=x>\\u{202e}.');
  // What is under way fails with the server, which ends before the page does.
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});
