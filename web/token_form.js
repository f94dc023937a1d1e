// Asks for the auth token of a server that has one.
import { byId, setHidden, setText } from './dom.js';

export class TokenForm {
  #api;
  #accepted;
  #form = byId('token-form');
  #input = byId('token');
  #problem = byId('token-problem');

  // `accepted()` is called when the server took the token.
  constructor(api, accepted) {
    this.#api = api;
    this.#accepted = accepted;
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#submit();
    });
  }

  show() {
    const refused = this.#api.hasToken;
    this.#api.setToken('');
    this.#open(true);
    this.#say(refused ? 'The server no longer takes this auth token.' : '');
    this.#input.focus();
  }

  hide() {
    this.#open(false);
  }

  #open(open) {
    setHidden(byId('token-page'), !open);
    setHidden(byId('content'), open);
  }

  #say(problem) {
    setText(this.#problem, problem);
    this.#input.setAttribute('aria-invalid', String(problem !== ''));
  }

  async #submit() {
    this.#say('');
    // What a header cannot carry can be no auth token; the browser would refuse to send it.
    if (!/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(this.#input.value)) {
      this.#say('An auth token is letters, digits and signs, with blanks only between them.');
      return;
    }
    this.#api.setToken(this.#input.value);
    try {
      await this.#api.get('v1/overview');
      this.#input.value = '';
      this.hide();
      this.#accepted();
    } catch (error) {
      this.#api.setToken('');
      this.#say(error.status === 401 ? 'The server refused this auth token.' : error.message);
      this.#input.select();
    }
  }
}
