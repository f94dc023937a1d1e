// The server's stream of events, kept open: when it ends, it is asked for again after a pause.

const firstPauseMs = 500;
const longestPauseMs = 15_000;
const silenceMs = 60_000; // the server pings more often than that

// Cuts a stream of text into events. Knows what of the format the server uses: event and data.
export class EventParser {
  #rest = '';

  // The events that `text` completes: [{type, data}], data being text.
  push(text) {
    const blocks = (this.#rest + text).split('\n\n');
    this.#rest = blocks.pop();
    return blocks.map(readBlock).filter((event) => event.data !== null);
  }
}

function readBlock(block) {
  const event = { type: 'message', data: null };
  for (const line of block.split('\n')) {
    if (line.startsWith('event: ')) event.type = line.slice(7);
    else if (line.startsWith('data: ')) event.data = (event.data ?? '') + line.slice(6);
  }
  return event;
}

export class EventStream {
  #api;
  #on;
  #prefix = '';
  #open = null; // the AbortController of the stream under way
  #timer = null;
  #pauseMs = firstPauseMs;

  // `on.events([{type, ...data}])` for what arrived together; `on.state(state)` when it is
  // 'connecting', 'flowing' (from then on everything is told) or 'lost'.
  constructor(api, on) {
    this.#api = api;
    this.#on = on;
  }

  // Follows the keys that begin with `prefix`, and only those.
  open(prefix) {
    this.close();
    this.#prefix = prefix;
    this.#pauseMs = firstPauseMs;
    this.#on.state('connecting');
    this.#follow();
  }

  close() {
    clearTimeout(this.#timer);
    this.#open?.abort();
    this.#open = null;
  }

  async #follow() {
    const open = new AbortController();
    this.#open = open;
    let silence = setTimeout(() => open.abort(), silenceMs);
    try {
      const text = await this.#api.stream('v1/events', { prefix: this.#prefix }, open.signal);
      if (open !== this.#open) return;
      this.#on.state('flowing');
      const parser = new EventParser();
      for await (const piece of text) {
        if (open !== this.#open) return;
        clearTimeout(silence);
        silence = setTimeout(() => open.abort(), silenceMs);
        this.#pauseMs = firstPauseMs;
        const events = parser.push(piece);
        if (events.length > 0) this.#on.events(events.map(readEvent));
      }
    } catch {
      // Why it ended does not matter here: the heartbeat says what is wrong with the server.
    } finally {
      clearTimeout(silence);
    }
    if (open === this.#open) this.#pause();
  }

  #pause() {
    this.#on.state('lost');
    this.#timer = setTimeout(() => this.#follow(), this.#pauseMs);
    this.#pauseMs = Math.min(this.#pauseMs * 2, longestPauseMs);
  }
}

function readEvent({ type, data }) {
  return { type, ...JSON.parse(data) };
}
