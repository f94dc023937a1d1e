// How a cluster is, in a sentence for whoever has just been woken up. Pure; `time` writes
// milliseconds for people.

const quietAfterMs = 5000; // each server says something every second
const numbers = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine'];

export const severityWords = { ok: 'In order', warning: 'Warning', bad: 'Trouble' };

// {severity, text}: what this server is, and what that means for those who ask it, by its overview.
export function describeCluster({ cluster, journal }, time) {
  if (cluster.unreadable) {
    return bad(`This server can neither follow nor lead: ${cluster.unreadable}.`);
  }
  if (journal === 'failed') {
    return bad('This server begins anew: it drops what it knew, and reads what etcd has.');
  }
  if (cluster.role !== 'leader') return describeFollower(cluster, time);
  return journal === 'full' ? describeFull(cluster) : describeLeader(cluster, time);
}

// {role, behind, silent, warned}: a row for one of the servers.
export function describeNode(node, time) {
  const behind = isReady(node) && node.behind === 0 ? 'caught up' : howFar(node);
  return {
    role: node.role === 'leader' ? 'leads' : 'follows',
    behind: node.role === 'leader' ? '' : behind,
    silent: time(node.silent_s * 1000),
    warned: isSilent(node) || !isReady(node),
  };
}

function describeLeader(cluster, time) {
  const leads = `This server leads, epoch ${cluster.epoch}`;
  if (!cluster.certain) {
    const why = etcdSilence(cluster, time, 'confirmed it');
    return bad(
      `This server leads, but is not certain of it: ${why}; nobody is answered until it does.`,
    );
  }
  const standbys = cluster.nodes.filter((node) => node.node_id !== cluster.node_id);
  const lacking = standbys.filter((node) => isSilent(node) || !isReady(node));
  const ready = standbys.length - lacking.length;
  if (standbys.length === 0) {
    return warning(`${leads}; there is no standby, so nobody could take over.`);
  }
  const caughtUp = `${numberOf(ready)} ${ready === 1 ? 'standby has' : 'standbys have'} caught up`;
  if (lacking.length === 0) return ok(`${leads}; ${caughtUp}.`);
  const why = lacking.map((node) => whatIsWrong(node, time)).join(', ');
  const rest = ready === 0 ? 'nobody could take over:' : `${caughtUp}, but`;
  return warning(`${leads}; ${rest} ${why}.`);
}

function describeFull({ epoch }) {
  return bad(
    `This server leads, epoch ${epoch}, but etcd takes nothing more: nothing is granted, and ` +
      'renewals and releases wait until it has room.',
  );
}

function describeFollower(cluster, time) {
  const { leader, epoch } = cluster;
  if (cluster.etcd_silent_s === undefined) {
    return bad('This server has not reached etcd yet, and does not know who leads.');
  }
  if (cluster.not_ready === 'no_etcd') {
    const last = epoch === 0 ? '' : ` It last followed ${leader}.`;
    return bad(`This server does not know who leads: ${etcdSilence(cluster, time)}.${last}`);
  }
  if (epoch === 0) return bad('Nobody leads: no server has been elected, and nobody is answered.');
  const follows = `This server follows ${leader}`;
  if (cluster.not_ready === 'etcd_full') {
    return bad(`${follows}, but etcd takes nothing more: nothing is granted until it has room.`);
  }
  if (cluster.not_ready === 'read_only') {
    return bad(`${follows}, but may not write to etcd, so it could not take over.`);
  }
  if (cluster.not_ready === 'catching_up') {
    const far = cluster.lag_s > 0 ? `is ${time(cluster.lag_s * 1000)} behind` : 'is still reading';
    return warning(`${follows} and ${far}; it could not take over yet.`);
  }
  // It reads, and what it says of itself every second does not arrive.
  const self = cluster.nodes.find((node) => node.node_id === cluster.node_id);
  if (self !== undefined && isSilent(self)) {
    return bad(`${follows}, but etcd takes nothing that is written: it is full, or refuses it.`);
  }
  const leading = cluster.nodes.find((node) => node.node_id === leader);
  if (leading !== undefined && isSilent(leading)) {
    return warning(`${follows}, which has said nothing for ${time(leading.silent_s * 1000)}.`);
  }
  if (cluster.linked === false) {
    return warning(
      `${follows} and has caught up, but is not connected to it: what its clients ask waits.`,
    );
  }
  return ok(`${follows} and has caught up; it could take over.`);
}

// One that refuses what is written, as when it is full, confirms nothing either.
function etcdSilence({ etcd_silent_s: silent }, time, done = 'answered') {
  return silent === undefined
    ? `etcd has never ${done}`
    : `etcd has not ${done} for ${time(silent * 1000)}`;
}

function whatIsWrong(node, time) {
  return isSilent(node)
    ? `${node.node_id} has said nothing for ${time(node.silent_s * 1000)}`
    : `${node.node_id} is ${howFar(node)}`;
}

function howFar({ behind }) {
  if (behind === 0) return 'not ready';
  return `${behind.toLocaleString('en-US')} ${behind === 1 ? 'change' : 'changes'} behind`;
}

function isSilent(node) {
  return node.silent_s * 1000 > quietAfterMs;
}

// An older server does not say whether it is.
function isReady({ ready, behind }) {
  return ready ?? behind === 0;
}

function numberOf(count) {
  return numbers[count] ?? String(count);
}

function ok(text) {
  return { severity: 'ok', text };
}

function warning(text) {
  return { severity: 'warning', text };
}

function bad(text) {
  return { severity: 'bad', text };
}
