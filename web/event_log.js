// The last events that the stream told, oldest first, up to a number. Pure.

const eventsMost = 2000;

export class EventLog {
  #events = [];

  add(events) {
    this.#events.push(...events.slice(-eventsMost));
    if (this.#events.length > 1.5 * eventsMost) this.#events = this.#events.slice(-eventsMost);
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
