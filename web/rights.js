// What whoever looks may do here, as the server says: whether there are buttons to act with, and
// whether the connections may be listed. A server that does not say allows neither.
import { byId, setHidden } from './dom.js';

export class Rights {
  #api;

  constructor(api) {
    this.#api = api;
  }

  async ask() {
    const { rights = [], keys = [] } = await this.#api.get('v1/whoami').catch(() => ({}));
    const isForAllKeys = keys.length === 0;
    document.body.classList.toggle('may-act', rights.includes('admin'));
    document.body.classList.toggle('may-disconnect', rights.includes('admin') && isForAllKeys);
    const mayRead = rights.includes('read') || rights.includes('admin');
    setHidden(byId('views'), !mayRead || !isForAllKeys);
  }
}
