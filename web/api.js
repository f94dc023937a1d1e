// Calls to the server that served the page. A call gives JSON or throws an ApiError.

const timeoutMs = 10_000;
const tokenName = 'lockd-token';

export class ApiError extends Error {
  // `status` is 0 when there was no answer at all.
  constructor(status, code, detail) {
    super(detail || code);
    this.status = status;
    this.code = code;
  }
}

export class Api {
  // The auth token is kept for this tab only, and goes with it.
  #token = sessionStorage.getItem(tokenName) ?? '';

  get hasToken() {
    return this.#token !== '';
  }

  setToken(token) {
    this.#token = token;
    if (token === '') sessionStorage.removeItem(tokenName);
    else sessionStorage.setItem(tokenName, token);
  }

  async get(path, parameters = {}, signal = null) {
    const limit = AbortSignal.timeout(timeoutMs);
    const reply = await this.#fetch(
      path,
      parameters,
      signal ? AbortSignal.any([signal, limit]) : limit,
    );
    try {
      return await reply.json();
    } catch {
      throw new ApiError(0, 'unreachable', 'The answer was cut off');
    }
  }

  async post(path, body) {
    const reply = await this.#fetch(path, {}, AbortSignal.timeout(timeoutMs), {
      method: 'POST',
      body: JSON.stringify(body),
    });
    return reply.json().catch(() => ({}));
  }

  // The body of an answer that goes on until `signal` aborts it, as a stream of text.
  async stream(path, parameters, signal) {
    const reply = await this.#fetch(path, parameters, signal);
    return reply.body.pipeThrough(new TextDecoderStream());
  }

  async #fetch(path, parameters, signal, more = {}) {
    const query = new URLSearchParams(
      Object.entries(parameters).filter(([, value]) => value !== ''),
    );
    const address = query.size > 0 ? `${path}?${query}` : path;
    const headers = this.#token ? { Authorization: `Bearer ${this.#token}` } : {};
    let reply;
    try {
      reply = await fetch(address, { headers, signal, cache: 'no-store', ...more });
    } catch (error) {
      throw new ApiError(0, 'unreachable', String(error));
    }
    if (!reply.ok) throw await refusal(reply);
    return reply;
  }
}

async function refusal(reply) {
  const body = await reply.json().catch(() => ({}));
  return new ApiError(reply.status, body.error ?? 'error', body.detail ?? `status ${reply.status}`);
}
