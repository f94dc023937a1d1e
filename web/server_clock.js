// The server's wall clock, as well as it can be known from here. The page never compares a time of
// the server's with the browser's own clock, which may be minutes off.

const samplesKept = 30;
const jumpMs = 1000;

export class ServerClock {
  #localNow;
  #samples = []; // {offset, roundTrip}, oldest first
  #offset = 0;

  // `localNow` gives milliseconds that only go forward.
  constructor(localNow = () => performance.timeOrigin + performance.now()) {
    this.#localNow = localNow;
  }

  localNow() {
    return this.#localNow();
  }

  now() {
    return this.#localNow() + this.#offset;
  }

  // The server read its clock somewhere between these two; the shortest round trip knows best.
  observe(sentAt, receivedAt, serverNow) {
    const roundTrip = receivedAt - sentAt;
    const offset = serverNow - (sentAt + receivedAt) / 2;
    // After a sleep of this machine, or a step of the server's clock, the past is of no use.
    if (Math.abs(offset - this.#offset) > roundTrip + jumpMs) this.#samples = [];
    this.#samples.push({ offset, roundTrip });
    if (this.#samples.length > samplesKept) this.#samples.shift();
    this.#offset = this.#samples.reduce((a, b) => (b.roundTrip <= a.roundTrip ? b : a)).offset;
  }
}
