// Asks again and again, never twice at once, and never so often that the asking weighs on the
// server: a slow answer makes the next question come later.

const loadShare = 4; // at most a quarter of the time is spent on answers

export class Poll {
  #work;
  #everyMs;
  #soonestMs;
  #timer = null;
  #running = null; // the AbortController of the call under way
  #startedAt = 0;
  #tookMs = 0;
  #wanted = false; // somebody knows of news since the call under way began

  // `work(signal)` is called every `everyMs`, and `soonestMs` after the last call when poked.
  constructor(work, { everyMs, soonestMs = everyMs }) {
    this.#work = work;
    this.#everyMs = everyMs;
    this.#soonestMs = soonestMs;
  }

  // Asks now, and from then on; what an earlier call still finds out is dropped.
  start() {
    this.stop();
    this.#run();
  }

  stop() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#running?.abort();
    this.#running = null;
  }

  // There is news.
  poke() {
    if (this.#running) this.#wanted = true;
    else if (this.#timer !== null) this.#runIn(this.#soonestMs);
  }

  #runIn(intervalMs) {
    clearTimeout(this.#timer);
    const pause = Math.max(intervalMs, this.#tookMs * loadShare);
    const left = this.#startedAt + pause - performance.now();
    this.#timer = setTimeout(() => this.#run(), Math.max(left, 0));
  }

  async #run() {
    const running = new AbortController();
    this.#timer = null;
    this.#running = running;
    this.#wanted = false;
    this.#startedAt = performance.now();
    await this.#work(running.signal);
    if (running.signal.aborted) return;
    this.#tookMs = performance.now() - this.#startedAt;
    this.#running = null;
    this.#runIn(this.#wanted ? this.#soonestMs : this.#everyMs);
  }
}
