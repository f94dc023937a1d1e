// The last minutes of the server's counters, as samples; rates and percentiles are differences of
// two of them. Pure: time comes in.

const keptMs = 300_000;
const shortestSpanMs = 60_000;
const totalsKept = ['grants', 'contended', 'expiries', 'timeouts'];

export class History {
  #samples = []; // {at, gauges..., totals..., wait: counts, hold: counts}, oldest first
  #bounds = { wait: [], hold: [] };

  add(overview, at) {
    const sample = {
      at,
      uptime: overview.uptime_ms,
      held: overview.locks_held + overview.semaphore_holders,
      waiting: overview.lock_waiters + overview.semaphore_waiters,
      wait: overview.wait.counts,
      hold: overview.hold.counts,
    };
    for (const name of totalsKept) sample[name] = overview.totals[name];
    this.#bounds = { wait: overview.wait.le_ms, hold: overview.hold.le_ms };
    // Another process counts from zero again: nothing can be subtracted from what was.
    if (this.#samples.length > 0 && sample.uptime < this.last().uptime) this.#samples = [];
    this.#samples.push(sample);
    while (this.#samples[0].at < at - keptMs) this.#samples.shift();
  }

  last() {
    return this.#samples.at(-1);
  }

  // How much of the past there is to draw: a minute at least, so that it does not begin as a speck.
  spanMs() {
    return Math.max(this.last().at - this.#samples[0].at, shortestSpanMs);
  }

  bounds(name) {
    return this.#bounds[name];
  }

  // How the gauge stood: [{at, value}].
  gauge(name) {
    return this.#samples.map((sample) => ({ at: sample.at, value: sample[name] }));
  }

  // A total's growth a second from each sample to the next: [{at, value}].
  rates(name) {
    return this.#samples.slice(1).map((sample, i) => ({
      at: sample.at,
      value: perSecond(this.#samples[i], sample, name),
    }));
  }

  // A total's growth a second over the last `windowMs`, or null when there is no telling yet.
  rate(name, windowMs) {
    const first = this.#before(windowMs, this.last()?.at);
    return first === undefined || first === this.last()
      ? null
      : perSecond(first, this.last(), name);
  }

  // For each sample: how many observations fell into each bucket since the one before.
  columns(name) {
    return this.#samples.slice(1).map((sample, i) => ({
      from: this.#samples[i].at,
      to: sample.at,
      counts: difference(this.#samples[i][name], sample[name]),
    }));
  }

  // The quantile `q` of the `windowMs` before each sample; null where nothing was observed.
  percentiles(name, q, windowMs) {
    return this.#samples.slice(1).map((sample) => {
      const counts = difference(this.#before(windowMs, sample.at)[name], sample[name]);
      return { at: sample.at, value: quantile(this.#bounds[name], counts, q) };
    });
  }

  percentile(name, q, windowMs) {
    return this.percentiles(name, q, windowMs).at(-1)?.value ?? null;
  }

  // The newest sample that is at least `windowMs` older than `at`, or the oldest there is.
  #before(windowMs, at) {
    return this.#samples.findLast((sample) => sample.at <= at - windowMs) ?? this.#samples[0];
  }
}

function perSecond(from, to, name) {
  return ((to[name] - from[name]) * 1000) / Math.max(to.at - from.at, 1);
}

function difference(from, to) {
  return to.map((count, i) => count - from[i]);
}

// By linear interpolation in the bucket where the quantile lies; above all bounds, the last bound.
export function quantile(bounds, counts, q) {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  const rank = q * total;
  let below = 0;
  for (let i = 0; i < bounds.length; i++) {
    if (below + counts[i] >= rank && counts[i] > 0) {
      const low = i === 0 ? 0 : bounds[i - 1];
      return low + ((bounds[i] - low) * (rank - below)) / counts[i];
    }
    below += counts[i];
  }
  return bounds.at(-1);
}
