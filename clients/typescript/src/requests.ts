/** Requests as they are on the wire: three lines, in which no server finds a fault. */

import { InvalidRequest } from "./errors.js";
import {
  answerOf,
  type Conflict,
  check,
  conflictOf,
  type Grant,
  grantOf,
  objectsOf,
  remainingOf,
} from "./replies.js";

const LINE_SIZE_MAX = 256;
const LONG_LINE_SIZE_MAX = 65_536;
const SECONDS_MAX = 9_223_372_036;
const LIMIT_MAX = 2_147_483_647;
/** As a server's own by default: on the wire permits stand behind a lease. */
const LEASE_MS_BESIDE_PERMITS = 33_000;

export const PING = "ping\n_\n\n";
export const STATS = "stats\n_\n\n";
export const BARRIER = "barrier\n_\n\n";

/** What to ask for, how, and what the answers mean. Constant. All times are in milliseconds. */
export abstract class Wish {
  constructor(
    readonly keys: readonly [string, ...string[]],
    readonly lease: number | undefined,
  ) {}

  get key(): string {
    return this.keys[0];
  }

  /** Whether it is held by a name, which the end of a connection does not release. */
  readonly outlivesLink: boolean = false;

  /** Whether every server of the protocol understands it, dflockd's own too. */
  abstract get isPlain(): boolean;
  abstract toString(): string;
  /** What to name on the wire for a wait: never less. */
  abstract waitToName(wait: number): number;
  /** `secret`: for servers that know `as=`; asking twice with one is asking once. */
  abstract acquire(wait: number, secret?: string): string;
  abstract renew(token: string, lease: number): string;
  abstract release(token: string): string;
  /** The grant; nothing when others hold it. */
  abstract readGrant(line: string, sentAt: number): Grant | undefined;
  /** For how long it was renewed. */
  abstract readRenewal(line: string, lease: number): number;
  /** Throws what the answer stands for, when it is no release. */
  abstract readRelease(line: string): void;
  /** Of the answer to that question, or of the refusal. Throws what is no answer. */
  abstract readConflict(line: string): Conflict;

  /** The question who is in the way; nothing when the refusal has told it. */
  askConflict(): string | undefined {
    return undefined;
  }
}

/** What of a key is wanted, and for how long. */
export interface Share {
  /** In milliseconds. */
  readonly lease?: number | undefined;
  readonly limit?: number | undefined;
  readonly permits?: number | undefined;
  readonly shared?: boolean | undefined;
}

/** A lock, or permits of a semaphore when a limit is given. */
export class Wanted extends Wish {
  readonly limit: number | undefined;
  readonly #permits: number | undefined;
  readonly #mode: "shared" | undefined;

  constructor(key: string, share: Share = {}) {
    const { lease, limit, permits = 1, shared = false } = share;
    checkKey(key);
    checkLease(lease);
    checkShare(limit, permits, shared);
    super([key], lease ?? (permits > 1 ? LEASE_MS_BESIDE_PERMITS : undefined));
    this.limit = limit;
    this.#permits = permits > 1 ? permits : undefined;
    this.#mode = shared ? "shared" : undefined;
  }

  get isPlain(): boolean {
    return this.#permits === undefined && this.#mode === undefined;
  }

  toString(): string {
    return `${this.limit === undefined ? "lock" : "semaphore"} ${JSON.stringify(this.key)}`;
  }

  waitToName(wait: number): number {
    return 1000 * Math.min(Math.ceil(wait / 1000), SECONDS_MAX);
  }

  acquire(wait: number, secret?: string): string {
    return this.#lines("l", wait / 1000, ...this.#share(), as(secret));
  }

  enqueue(secret?: string): string {
    return this.#lines("e", ...this.#share(), as(secret));
  }

  awaitTurn(wait: number): string {
    return this.#lines("w", wait / 1000);
  }

  renew(token: string, lease: number): string {
    return this.#lines("n", token, lease / 1000);
  }

  release(token: string): string {
    return this.#lines("r", token);
  }

  readGrant(line: string, sentAt: number): Grant | undefined {
    return grantOf(line, sentAt, this.lease);
  }

  readRenewal(line: string, lease: number): number {
    return remainingOf(line, lease);
  }

  readRelease(line: string): void {
    check(line);
  }

  override askConflict(): string {
    return `api\nGET /v1/locks\n${JSON.stringify({ key: this.key })}\n`;
  }

  /** A key may be that of a lock, and of a semaphore. */
  readConflict(line: string): Conflict {
    const isSemaphore = this.limit !== undefined;
    const locks = objectsOf(answerOf(line).said.locks).filter(
      ({ kind }) => (kind === "semaphore") === isSemaphore,
    );
    return conflictOf(
      locks.flatMap(({ holds, waiters }) => objectsOf(holds).map((hold) => ({ ...hold, waiters }))),
    );
  }

  #share(): (number | string | undefined)[] {
    const lease = this.lease === undefined ? undefined : this.lease / 1000;
    return [this.limit, lease, this.#permits, this.#mode];
  }

  #lines(command: string, ...words: (number | string | undefined)[]): string {
    const prefix = this.limit === undefined ? "" : "s";
    const argument = words.filter((word) => word !== undefined).join(" ");
    return `${prefix}${command}\n${this.key}\n${argument}\n`;
  }
}

/** It is trimmed, as the server does with it. */
export function authLines(authToken: string): string {
  const trimmed = authToken.trim();
  if (trimmed === "" || Buffer.byteLength(trimmed) > LONG_LINE_SIZE_MAX || trimmed.includes("\n")) {
    throw new InvalidRequest("the auth token must be one line of at most 65536 bytes");
  }
  return `auth\n_\n${trimmed}\n`;
}

export function clientLines(name: string, note: string): string {
  checkName(name, "a name");
  if (note !== "") checkName(note, "a note");
  return `client\n${name}\n${note}\n`;
}

export function listenLines(pattern: string, group?: string): string {
  checkName(pattern, "a pattern");
  const tokens = pattern.split(".");
  const isWellFormed = tokens.every(
    (token, place) =>
      !/[*>]/.test(token) || token === "*" || (token === ">" && place === tokens.length - 1),
  );
  if (!isWellFormed) {
    throw new InvalidRequest(
      `in a pattern * and > are whole tokens, and > is the last: not ${JSON.stringify(pattern)}`,
    );
  }
  if (group !== undefined) {
    checkName(group, "a group");
    if (/^ | $/.test(group)) throw new InvalidRequest("a group has no blanks around it");
  }
  return `listen\n${pattern}\n${group ?? ""}\n`;
}

export function publishLines(channel: string, payload: string | Uint8Array): Buffer {
  checkName(channel, "a channel");
  if (/[*> ]/.test(channel)) {
    throw new InvalidRequest(`a channel has no *, > or blanks: not ${JSON.stringify(channel)}`);
  }
  const bytes = typeof payload === "string" ? Buffer.from(payload) : Buffer.from(payload);
  const sizeMax = LONG_LINE_SIZE_MAX - 5 - Buffer.byteLength(channel);
  const isBlank = bytes.toString("latin1").trim() === "";
  if (isBlank || bytes.includes("\n") || bytes.length > sizeMax) {
    throw new InvalidRequest(`a payload is one line, not blank, of at most ${sizeMax} bytes`);
  }
  return Buffer.concat([Buffer.from(`signal\n${channel}\n`), bytes, Buffer.from("\n")]);
}

export function checkKey(key: string): void {
  checkName(key, "a key");
}

export function checkLease(lease: number | undefined): void {
  if (lease !== undefined && !isWhole(lease / 1000, SECONDS_MAX)) {
    throw new InvalidRequest(
      `a lease is a whole number of seconds from 1, in milliseconds: not ${lease}`,
    );
  }
}

function checkName(name: string, what: string): void {
  const size = Buffer.byteLength(name);
  // A surrogate that has no partner has no form in UTF-8.
  const isOdd = /\p{Surrogate}/u.test(name) || [...name].some((c) => c < " " || c === "\x7f");
  if (size < 1 || size > LINE_SIZE_MAX || isOdd) {
    throw new InvalidRequest(
      `${what} is 1 to ${LINE_SIZE_MAX} bytes of UTF-8 without control characters`,
    );
  }
}

/** That so much can be wanted of a key. */
export function checkShare(limit: number | undefined, permits: number, shared: boolean): void {
  if (limit !== undefined && !isWhole(limit, LIMIT_MAX)) {
    throw new InvalidRequest(`a limit is a whole number from 1 to ${LIMIT_MAX}, not ${limit}`);
  }
  if (shared && limit !== undefined) {
    throw new InvalidRequest("a semaphore is shared by its permits: give a limit or shared");
  }
  if (limit === undefined && permits !== 1) {
    throw new InvalidRequest("permits are a semaphore's: give its limit, too");
  }
  if (!isWhole(permits, limit ?? 1)) {
    throw new InvalidRequest(`permits are a whole number from 1 to the limit, not ${permits}`);
  }
}

function isWhole(number: number, most: number): boolean {
  return Number.isInteger(number) && number >= 1 && number <= most;
}

function as(secret: string | undefined): string | undefined {
  return secret === undefined ? undefined : `as=${secret}`;
}
