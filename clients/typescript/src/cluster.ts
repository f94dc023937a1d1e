/**
 * Where servers are, which of them has a key, and the way to the one that leads.
 *
 * `servers` are clusters of one, which share the keys; a `cluster` is one of several. Nothing here
 * waits or asks: those who do are in `calls.ts` and `renewal.ts`.
 */

import {
  ConnectionFailed,
  Draining,
  Garbled,
  InvalidRequest,
  type LockdError,
  NotLeader,
  Unauthorized,
  Untrusted,
} from "./errors.js";
import type { Options } from "./options.js";
import { shown } from "./replies.js";

const DEFAULT_PORT = 6388;
const CLUSTER_SIZE_MAX = 16;

/** A name, or an IP address without brackets, and a port. */
export class Address {
  constructor(
    readonly host: string,
    readonly port = DEFAULT_PORT,
  ) {}

  /** `host`, `host:port`, `[::1]:6388`, `::1`. Throws `InvalidRequest`. */
  static parse(text: string): Address {
    const parts =
      /^\[(?<host>[^\s\]]+)\](:(?<port>\d{1,5}))?$/.exec(text) ??
      /^(?<host>[^\s:[\]]+)(:(?<port>\d{1,5}))?$/.exec(text) ??
      /^(?<host>[^\s:[\]]*:[^\s[\]]*:[^\s[\]]*)$/.exec(text);
    const port = Number(parts?.groups?.port ?? DEFAULT_PORT);
    const host = parts?.groups?.host;
    if (host === undefined || port < 1 || port > 65_535) {
      throw new InvalidRequest(`an address is host or host:port, not ${shown(text)}`);
    }
    return new Address(host, port);
  }

  toString(): string {
    return this.host.includes(":") ? `[${this.host}]:${this.port}` : `${this.host}:${this.port}`;
  }
}

/** One server, and what was learned of it. */
export class Endpoint {
  /** Whether it knows `client`: believed until it says otherwise. */
  knowsClient = true;
  /** What was behind its name, for when no name server answers. */
  lastPeer: string | undefined;

  constructor(
    readonly address: Address,
    readonly options: Options,
  ) {}
}

/** The servers of one cluster, of which one leads; a server that stands alone is one of one. */
export class Cluster {
  readonly members: readonly Endpoint[];
  /** Who was last known to lead; at first the first. */
  leader = 0;

  constructor(
    addresses: readonly Address[],
    readonly options: Options,
  ) {
    if (addresses.length < 1 || addresses.length > CLUSTER_SIZE_MAX) {
      throw new InvalidRequest(`a cluster has 1 to ${CLUSTER_SIZE_MAX} addresses`);
    }
    if (new Set(addresses.map(String)).size !== addresses.length) {
      throw new InvalidRequest("an address of the cluster is given twice");
    }
    this.members = addresses.map((address) => new Endpoint(address, options));
  }

  get isAlone(): boolean {
    return this.members.length === 1;
  }

  member(index: number): Endpoint {
    const endpoint = this.members[index];
    if (endpoint === undefined) throw new RangeError(`the cluster has no member ${index}`);
    return endpoint;
  }

  /** The member that was given by this address. */
  find(text: string): number | undefined {
    let address: string;
    try {
      address = String(Address.parse(text));
    } catch {
      return undefined;
    }
    const index = this.members.findIndex((member) => String(member.address) === address);
    return index < 0 ? undefined : index;
  }

  indexOf(endpoint: Endpoint): number {
    return this.members.indexOf(endpoint);
  }

  toString(): string {
    return this.members.map((member) => String(member.address)).join(", ");
  }
}

/** Whether this is no answer, or that of a server that does not lead: another may give one. */
export function movesOn(failure: unknown): failure is LockdError {
  return [ConnectionFailed, Untrusted, Unauthorized, Garbled].some((kind) => {
    return failure instanceof kind;
  });
}

/**
 * Goes from server to server of a cluster until it has met the one that leads.
 *
 * From a server that did not answer, or does not lead, it goes to whom that one named as the leader,
 * if that address was given; else to whom somebody else has found meanwhile; else to the next of the
 * list: to each once a round. A new round begins at once, then after a pause, which grows. So whoever
 * names a leader that is gone, or two who name each other, keep nobody from the third. An address
 * that was not given is never gone to; the verdict tells of it.
 */
export class LeaderSearch {
  /** Whom to ask. */
  here: number;
  /** When to ask who is here. */
  notBefore = 0;
  /** Whether in the last round everybody failed in a way that waiting does not cure. */
  isHopeless = false;

  readonly #pauseMin: number;
  readonly #pauseMax: number;
  #tried = new Set<number>();
  #pause = 0;
  #hasHope = false;
  #failure: LockdError | undefined;
  #stranger: string | undefined;

  constructor(
    readonly cluster: Cluster,
    begin = cluster.leader,
  ) {
    this.here = begin;
    // A server that stands alone is waited for; of a cluster's another will soon lead.
    [this.#pauseMin, this.#pauseMax] = cluster.isAlone ? [50, 1000] : [10, 200];
  }

  moveOn(why: LockdError, now: number): void {
    this.#tried.add(this.here);
    this.#hasHope ||= why instanceof ConnectionFailed;
    if (this.#failure === undefined || weight(why) >= weight(this.#failure)) this.#failure = why;
    if (this.#tried.size === this.cluster.members.length) this.#beginRound(now);
    this.here = this.#choose(why);
  }

  /** It is this one that leads: the next search begins with it, and this one anew. */
  found(leader: number): void {
    this.cluster.leader = leader;
    this.here = leader;
    this.notBefore = 0;
    this.isHopeless = false;
    this.#tried.clear();
    this.#pause = 0;
    this.#hasHope = false;
    this.#failure = undefined;
    this.#stranger = undefined;
  }

  /** Why nobody was found: the most telling failure. After `moveOn`. */
  verdict(): LockdError {
    const failure = this.#failure;
    if (failure === undefined) throw new Error("nobody was asked");
    if (this.cluster.isAlone) return failure;
    let detail = `no leader was found among ${this.cluster}: ${failure.message}`;
    if (this.#stranger !== undefined) {
      detail += `; ${shown(this.#stranger)} was named, and was not given`;
    }
    if (failure instanceof NotLeader) {
      return new NotLeader(detail, failure.leader, { cause: failure });
    }
    const kind = failure.constructor as new (m: string, o: { cause: unknown }) => LockdError;
    return new kind(detail, { cause: failure });
  }

  #beginRound(now: number): void {
    this.#tried.clear();
    this.isHopeless = !this.#hasHope;
    this.#hasHope = false;
    this.notBefore = now + this.#pause;
    this.#pause = Math.min(Math.max(2 * this.#pause, this.#pauseMin), this.#pauseMax);
  }

  #choose(why: LockdError): number {
    if (why instanceof NotLeader && why.leader !== undefined) {
      const named = this.cluster.find(why.leader);
      if (named === undefined) this.#stranger = why.leader;
      else if (!this.#tried.has(named)) return named;
    }
    const known = this.cluster.leader;
    if (known !== this.here && !this.#tried.has(known)) return known;
    const count = this.cluster.members.length;
    let next = (this.here + 1) % count;
    while (this.#tried.has(next)) next = (next + 1) % count;
    return next;
  }
}

/** How much it tells: that nobody could be asked, that nobody leads, or what is to be fixed. */
function weight(failure: LockdError): number {
  if (!(failure instanceof ConnectionFailed)) return 2;
  return failure instanceof NotLeader || failure instanceof Draining ? 1 : 0;
}
