// The last events that are known, oldest first, up to a number: those that the stream told, and
// those before them that the server remembers. Pure.

const eventsMost = 2000;
const sameWithinMs = 1000; // the history and the stream may round a time differently

export class EventLog {
  #events = [];

  add(events) {
    this.#events.push(...events.slice(-eventsMost));
    if (this.#events.length > 1.5 * eventsMost) this.#events = this.#events.slice(-eventsMost);
  }

  // What the server remembers; much of it may be known.
  addHistory(history) {
    const known = new Map(this.#events.map((event) => [nameOf(event), event.at_unix_ms]));
    const isKnown = (event) =>
      Math.abs(known.get(nameOf(event)) - event.at_unix_ms) <= sameWithinMs;
    this.#events.unshift(...history.filter((event) => !isKnown(event)).reverse());
    this.#events = this.#events.sort((a, b) => a.at_unix_ms - b.at_unix_ms).slice(-eventsMost);
  }

  // The newest `most` of those that `wanted` says yes to, oldest first.
  recent(wanted, most) {
    const found = [];
    for (let i = this.#events.length - 1; i >= 0 && found.length < most; i--) {
      if (wanted(this.#events[i])) found.push(this.#events[i]);
    }
    return found.reverse();
  }
}

// A grant and its end have a fence, by which they are told apart; a place in a queue has its holder
// and its time.
function nameOf({ type, kind, key, holder, token, client_id: client }) {
  return JSON.stringify([type, kind, key, holder, token, client]);
}
