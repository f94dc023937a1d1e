// Asks for the overview about once a second, and so knows whether the server is there. When it is
// not, it tries again, less and less often.

const everyMs = 1000;
const slowestRetryMs = 15_000;
const silenceMs = 5000; // no answer for so long counts as lost

export class Heartbeat {
  #api;
  #clock;
  #on;
  #timer = null;
  #failures = 0;
  #asking = null;

  // `on.overview(overview)` for each answer, `on.lost(error, retryMs)` for each failure;
  // `on.denied(error)` when the server wants an auth token, and then nothing until beat() is called.
  constructor(api, clock, on) {
    this.#api = api;
    this.#clock = clock;
    this.#on = on;
  }

  // Asks now, and from then on.
  async beat() {
    clearTimeout(this.#timer);
    this.#asking?.abort();
    const asking = new AbortController();
    this.#asking = asking;
    const silence = setTimeout(() => asking.abort('silence'), silenceMs);
    try {
      const sentAt = this.#clock.localNow();
      const overview = await this.#api.get('v1/overview', {}, asking.signal);
      if (asking !== this.#asking) return;
      this.#clock.observe(sentAt, this.#clock.localNow(), overview.now_unix_ms);
      this.#failures = 0;
      this.#on.overview(overview);
      this.#beatIn(everyMs);
    } catch (error) {
      if (asking === this.#asking) this.#fail(error);
    } finally {
      clearTimeout(silence);
    }
  }

  #fail(error) {
    if (error.status === 401) {
      this.#on.denied(error);
      return;
    }
    const retryMs = Math.min(everyMs * 2 ** this.#failures++, slowestRetryMs);
    this.#on.lost(error, retryMs);
    this.#beatIn(retryMs);
  }

  #beatIn(ms) {
    this.#timer = setTimeout(() => this.beat(), ms);
  }
}
