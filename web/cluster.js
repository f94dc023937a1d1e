// How the cluster is, in words, and which servers it has, as the overview of one of them says.
import { describeCluster, describeNode, severityWords } from './cluster_state.js';
import { byId, element, nameElement, setHidden, setText } from './dom.js';
import { formatDuration, visibleName } from './format.js';

let drawn = '';

// `overview.cluster` is not there where the server is on its own.
export function showCluster(overview) {
  const { cluster } = overview;
  setHidden(byId('cluster'), cluster === undefined);
  setHidden(byId('cluster-state'), cluster === undefined);
  if (cluster === undefined) return;
  showState(describeCluster(overview, formatDuration));
  setText(byId('cluster-epoch'), cluster.epoch === 0 ? '' : `epoch ${cluster.epoch}`);
  const rows = cluster.nodes.map((node) => ({
    name: node.node_id,
    address: node.addr,
    isThis: node.node_id === cluster.node_id,
    version: node.version ?? '–',
    ...describeNode(node, formatDuration),
  }));
  const wanted = JSON.stringify(rows);
  if (wanted === drawn) return; // leaves the reader's place and selection alone
  drawn = wanted;
  byId('cluster-nodes').replaceChildren(...rows.map(drawNode));
}

function showState({ severity, text }) {
  byId('cluster-state').dataset.severity = severity;
  setText(byId('cluster-severity'), severityWords[severity]);
  setText(byId('cluster-text'), visibleName(text));
}

function drawNode({ name, address, isThis, role, behind, version, silent, warned }) {
  return element(
    'tr',
    { role: 'row', class: warned ? 'warned' : null },
    element(
      'th',
      { role: 'rowheader', scope: 'row' },
      nameElement('span', name, { class: 'key' }),
      address === name ? '' : nameElement('span', address, { class: 'peer quiet' }),
      isThis ? element('span', { class: 'quiet' }, 'this server') : '',
    ),
    element('td', { role: 'cell' }, role, element('span', { class: 'quiet' }, behind)),
    element('td', { role: 'cell' }, nameElement('span', version)),
    element('td', { role: 'cell' }, silent),
  );
}
