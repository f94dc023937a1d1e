// Who listens to which signals, as the overview says.
import { byId, element, nameElement, setHidden, setText } from './dom.js';
import { formatCount, plural } from './format.js';

let drawn = '';

export function showSignals({ listeners, channels }) {
  setText(byId('signals-count'), plural(listeners, 'listener'));
  setHidden(byId('signals-none'), channels.length > 0);
  const wanted = JSON.stringify(channels);
  if (wanted === drawn) return; // leaves the reader's place and selection alone
  drawn = wanted;
  byId('signals-list').replaceChildren(
    ...channels.map((channel) =>
      element(
        'li',
        {},
        nameElement('span', channel.pattern, { class: 'key' }),
        channel.group ? nameElement('span', channel.group, { class: 'group' }) : '',
        element('span', { class: 'rank-size' }, formatCount(channel.listeners)),
      ),
    ),
  );
}
