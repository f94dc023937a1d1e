// Who holds or waits: the holder, how much of the key it has where that is not as usual, and who
// its client says it is. Links to what else it has.
import { arrange, element, nameElement, setName, setText } from './dom.js';
import { describeShare } from './format.js';
import { whoAddress } from './route.js';

export class Who {
  #holder = nameElement('a', '', { class: 'holder' });
  #share = element('span', { class: 'share' });
  #client = nameElement('span', '', { class: 'client' });
  #peer = nameElement('span', '', { class: 'peer' });
  #note = nameElement('span', '', { class: 'note' });
  #isWhole;
  element = element('span', { class: 'identity' }, this.#holder);

  // `isWhole`: with the peer and the note; else they are where the mouse stays.
  constructor(isWhole = false) {
    this.#isWhole = isWhole;
  }

  // A hold, a place in a queue or an event, as the server tells of it.
  show(entry) {
    const shown = [this.#holder];
    setName(this.#holder, entry.holder);
    this.#holder.href = whoAddress(entry);
    setText(this.#share, describeShare(entry));
    if (this.#share.textContent !== '') shown.push(this.#share);
    const parts = [
      [this.#client, entry.client],
      [this.#peer, entry.peer],
      [this.#note, entry.note],
    ];
    for (const [part, text] of this.#isWhole ? parts : parts.slice(0, 1)) {
      if (!text) continue;
      setName(part, text, this.#isWhole ? text : describeWho(entry));
      shown.push(part);
    }
    arrange(this.element, shown);
  }
}

// Who the client says it is, in a line; empty when it does not.
export function describeWho({ client, peer, note }) {
  return [client, peer, note].filter(Boolean).join(' · ');
}
