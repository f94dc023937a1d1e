// Who leads and who follows, as the overview of a server in a cluster says.
import { byId, element, nameElement, setHidden, setText } from './dom.js';
import { formatDuration, plural } from './format.js';

const quietAfterMs = 5000; // each server says something every second

let drawn = '';

// `cluster` is not there where the server is on its own.
export function showCluster(cluster) {
  setHidden(byId('cluster'), cluster === undefined);
  if (cluster === undefined) return;
  const led = cluster.leader_addr !== '-';
  setText(byId('cluster-epoch'), led ? `epoch ${cluster.epoch}` : 'nobody leads');
  byId('cluster-epoch').classList.toggle('warned', !led);
  const wanted = JSON.stringify([cluster.node_id, cluster.nodes.map((node) => rowOf(node))]);
  if (wanted === drawn) return; // leaves the reader's place and selection alone
  drawn = wanted;
  byId('cluster-list').replaceChildren(
    ...cluster.nodes.map((node) => {
      const row = rowOf(node);
      return element(
        'li',
        { class: row.warned ? 'node warned' : 'node' },
        nameElement('span', node.node_id, { class: 'key' }),
        nameElement('span', node.addr, { class: 'quiet' }),
        node.node_id === cluster.node_id ? element('span', { class: 'quiet' }, 'this server') : '',
        element('span', { class: 'rank-size' }, row.state),
      );
    }),
  );
}

function rowOf(node) {
  const silentMs = node.silent_s * 1000;
  if (silentMs > quietAfterMs) {
    return { state: `silent for ${formatDuration(silentMs)}`, warned: true };
  }
  if (node.role === 'leader') return { state: 'leads', warned: false };
  return node.behind > 0
    ? { state: `follows, ${plural(node.behind, 'change')} behind`, warned: false }
    : { state: 'follows, in step', warned: false };
}
