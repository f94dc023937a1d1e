import assert from 'node:assert/strict';
import test from 'node:test';
import { pure } from './pure.mjs';

const { describeCluster, describeNode, severityWords } = await pure('cluster_state.js');
const { formatDuration } = await pure('format.js');

const node = (name, more) => ({
  node_id: name,
  addr: `${name}:6388`,
  role: 'follower',
  applied: 4711,
  behind: 0,
  ready: true,
  version: '0.1.0',
  silent_s: 0.4,
  ...more,
});

// What n1 says that leads, or else n2 that follows it, but for what is given.
function says({ journal, ...more }) {
  const leads = more.role === 'leader';
  const cluster = {
    node_id: leads ? 'n1' : 'n2',
    role: 'follower',
    certain: leads,
    epoch: 17,
    leader: 'n1',
    leader_addr: 'n1:6388',
    behind: 0,
    lag_s: 0,
    etcd_silent_s: 0.1,
    nodes: [node('n1', { role: 'leader' }), node('n2'), node('n3')],
    ...more,
  };
  const overview = { cluster, journal: journal ?? (leads ? 'accepting' : 'following') };
  const { severity, text } = describeCluster(overview, formatDuration);
  assert.ok(severity in severityWords);
  return `${severity}: ${text}`;
}

test('a leader says who could take over', () => {
  const role = 'leader';
  const nodes = [node('n1', { role }), node('n2'), node('n3')];
  assert.equal(says({ role }), 'ok: This server leads, epoch 17; two standbys have caught up.');
  assert.equal(
    says({ role, nodes: nodes.slice(0, 2) }),
    'ok: This server leads, epoch 17; one standby has caught up.',
  );
  assert.equal(
    says({ role, nodes: nodes.slice(0, 1) }),
    'warning: This server leads, epoch 17; there is no standby, so nobody could take over.',
  );
  const silent = node('n3', { silent_s: 9 });
  assert.equal(
    says({ role, nodes: [nodes[0], nodes[1], silent] }),
    'warning: This server leads, epoch 17; one standby has caught up, but n3 has said ' +
      'nothing for 9.0 s.',
  );
  const late = node('n2', { ready: false, behind: 1234 });
  const begins = node('n3', { ready: false });
  assert.equal(
    says({ role, nodes: [nodes[0], late, begins] }),
    'warning: This server leads, epoch 17; nobody could take over: n2 is 1,234 changes behind, ' +
      'n3 is not ready.',
  );
});

test('a leader that is not certain, or whose etcd is full, says what that means', () => {
  const role = 'leader';
  assert.equal(
    says({ role, certain: false, etcd_silent_s: 1.4, not_ready: 'no_etcd' }),
    'bad: This server leads, but is not certain of it: etcd has not confirmed it for 1.4 s; ' +
      'nobody is answered until it does.',
  );
  assert.match(says({ role, journal: 'full' }), /^bad: .*epoch 17, but etcd takes nothing more/);
});

test('a follower says whether it could take over', () => {
  assert.equal(says({}), 'ok: This server follows n1 and has caught up; it could take over.');
  assert.match(says({ lag_s: 0.02, behind: 3 }), /^ok: /); // it is always a little behind
  assert.equal(
    says({ not_ready: 'catching_up', lag_s: 3, behind: 12 }),
    'warning: This server follows n1 and is 3.0 s behind; it could not take over yet.',
  );
  assert.equal(
    says({ not_ready: 'catching_up' }),
    'warning: This server follows n1 and is still reading; it could not take over yet.',
  );
  assert.equal(
    says({ nodes: [node('n1', { role: 'leader', silent_s: 7 }), node('n2')] }),
    'warning: This server follows n1, which has said nothing for 7.0 s.',
  );
  assert.match(says({ nodes: [node('n2')] }), /^ok: /); // the leader has not been heard of yet
  const quiet = { silent_s: 9.7 };
  assert.equal(
    says({ nodes: [node('n1', { role: 'leader', ...quiet }), node('n2', quiet)] }),
    'bad: This server follows n1, but etcd takes nothing that is written: it is full, or ' +
      'refuses it.',
  );
  assert.match(says({ linked: true }), /^ok: /);
  assert.match(says({ linked: false }), /^warning: .*n1 and has caught up, but is not connected/);
});

test('who leads nobody, or cannot know, says so', () => {
  assert.equal(
    says({ not_ready: 'no_etcd', etcd_silent_s: 12 }),
    'bad: This server does not know who leads: etcd has not answered for 12 s. ' +
      'It last followed n1.',
  );
  assert.equal(
    says({ not_ready: 'no_etcd', etcd_silent_s: 12, epoch: 0, leader: '-' }),
    'bad: This server does not know who leads: etcd has not answered for 12 s.',
  );
  const never = says({ etcd_silent_s: undefined, not_ready: 'catching_up' });
  assert.match(never, /not reached etcd yet/);
  assert.match(says({ epoch: 0, leader: '-' }), /^bad: Nobody leads: /);
  assert.match(says({ journal: 'failed' }), /^bad: This server begins anew/);
});

test('what cannot be read comes first', () => {
  const unreadable = 'batch 2a/7 is of version 2, and this program knows version 1';
  assert.equal(
    says({ unreadable, not_ready: 'unreadable', epoch: 0 }),
    `bad: This server can neither follow nor lead: ${unreadable}.`,
  );
});

test('a row says what a server is, and stands out when it would not do', () => {
  const row = (more) => describeNode(node('n', more), formatDuration);
  assert.deepEqual(row({}), {
    role: 'follows',
    behind: 'caught up',
    silent: '0.4 s',
    warned: false,
  });
  assert.equal(row({ role: 'leader' }).role, 'leads');
  assert.equal(row({ role: 'leader' }).behind, '');
  assert.equal(row({ behind: 1 }).behind, '1 change behind');
  assert.equal(row({ behind: 1 }).warned, false);
  assert.equal(row({ ready: false }).behind, 'not ready');
  assert.equal(row({ ready: false }).warned, true);
  assert.equal(row({ silent_s: 9 }).warned, true);
  // As an older server says it.
  assert.equal(row({ ready: undefined }).warned, false);
  assert.equal(row({ ready: undefined, behind: 2 }).warned, true);
});
