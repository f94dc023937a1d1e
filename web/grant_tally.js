// Which keys were granted most often in about the last minute, as far as the stream told. Pure.

const windowMs = 60_000;
const keysMost = 5000;

export class GrantTally {
  #began = 0;
  #current = new Map(); // key -> grants since #began
  #previous = new Map(); // key -> grants in the minute before

  add(key, at) {
    this.#turn(at);
    const seen = this.#current.get(key);
    if (seen === undefined && this.#current.size >= keysMost) this.#thinOut();
    this.#current.set(key, (seen ?? 0) + 1);
  }

  // [{key, grants}], most first.
  top(most, at) {
    this.#turn(at);
    const share = 1 - (at - this.#began) / windowMs;
    const sums = new Map(this.#current);
    for (const [key, grants] of this.#previous)
      sums.set(key, (sums.get(key) ?? 0) + grants * share);
    return [...sums]
      .map(([key, grants]) => ({ key, grants: Math.round(grants) }))
      .filter(({ grants }) => grants > 0)
      .sort((a, b) => b.grants - a.grants || (a.key < b.key ? -1 : 1))
      .slice(0, most);
  }

  #turn(at) {
    if (at - this.#began < windowMs) return;
    const missedOne = at - this.#began >= 2 * windowMs;
    this.#previous = missedOne ? new Map() : this.#current;
    this.#current = new Map();
    this.#began = missedOne ? at : this.#began + windowMs;
  }

  // Too many keys to count them all: those that were granted once in a while are not the hot ones.
  #thinOut() {
    for (const [key, grants] of this.#current) {
      if (grants <= 1) this.#current.delete(key);
      else this.#current.set(key, Math.floor(grants / 2));
    }
  }
}
