// Says whether what the page shows is so now, and when it is not, when it will try again.
import { byId, setHidden, setText } from './dom.js';

export class Connection {
  #state = byId('connection');
  #text = byId('connection-text');
  #retry = byId('connection-retry');
  #timer = null;
  #isLive = false;

  constructor(retry) {
    this.#retry.addEventListener('click', retry);
    window.addEventListener('online', retry);
  }

  get isLive() {
    return this.#isLive;
  }

  live() {
    this.#set('live', 'Live');
  }

  denied() {
    this.#set('denied', 'Auth token needed');
  }

  lost(error, retryMs) {
    const why = error.status === 0 ? 'Connection lost' : `Refused: ${error.message}`;
    const retryAt = performance.now() + retryMs;
    const count = () => {
      const seconds = Math.ceil((retryAt - performance.now()) / 1000);
      setText(this.#text, seconds > 0 ? `${why}, trying again in ${seconds} s` : `${why}, trying…`);
    };
    this.#set('lost', why);
    count();
    this.#timer = setInterval(count, 250);
  }

  #set(state, text) {
    clearInterval(this.#timer);
    this.#isLive = state === 'live';
    this.#state.dataset.state = state;
    document.body.classList.toggle('stale', state === 'lost');
    setHidden(this.#retry, state !== 'lost');
    setText(this.#text, text);
  }
}
