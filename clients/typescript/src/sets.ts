/**
 * Several keys at once, held by a name: calls of the HTTP API, over the line command `api`.
 *
 * What is so held lives by its lease alone. A connection that ends gives up a place in the queues,
 * and releases nothing.
 */

import { randomBytes } from "node:crypto";

import { InvalidRequest, Refused } from "./errors.js";
import { check, failureOf, type Grant, garbled } from "./replies.js";
import { checkKey, checkLease, Wish } from "./requests.js";

const KEYS_MAX = 64;
const NAME_SIZE_MAX = 256;
const WAIT_MS_MAX = 9_223_372_036_000;
const GONE = ["expired", "stale_token", "not_holder"];
const WORDS = new Map([
  ["unauthorized", "error_auth"],
  ["not_leader", "error_not_leader -"],
]);

type Members = Record<string, unknown>;

/** All of several locks, or none of them. */
export class WantedSet extends Wish {
  readonly isPlain = false;
  readonly #holder: string;

  /** `client`: the name by which operators know whose it is. */
  constructor(keys: readonly string[], lease: number | undefined, client: string) {
    for (const key of keys) checkKey(key);
    const [first, ...others] = keys;
    if (first === undefined || keys.length > KEYS_MAX || new Set(keys).size < keys.length) {
      throw new InvalidRequest(`a set is 1 to ${KEYS_MAX} different keys`);
    }
    checkLease(lease);
    super([first, ...others], lease);
    this.#holder = holderOf(client);
  }

  toString(): string {
    const others = this.keys.length > 1 ? ` and ${this.keys.length - 1} more` : "";
    return `set of ${JSON.stringify(this.key)}${others}`;
  }

  waitToName(wait: number): number {
    return Math.min(Math.ceil(wait), WAIT_MS_MAX);
  }

  /** Asking twice is asking once, since the holder is the same. */
  acquire(wait: number): string {
    return this.#call("acquire", { ttl_ms: this.lease, wait_ms: wait || undefined });
  }

  renew(token: string, lease: number): string {
    return this.#call("renew", { token: numberOf(token), ttl_ms: lease });
  }

  release(token: string): string {
    return this.#call("release", { token: numberOf(token) });
  }

  askFence(): string {
    return api("GET /v1/fence", { key: this.key });
  }

  readGrant(line: string, sentAt: number): Grant | undefined {
    const { status, said } = answerOf(line);
    if (status === 409 && (said.error === "held" || said.error === "wait_timeout")) {
      return undefined;
    }
    checkStatus(status, said);
    const granted = wholeSeconds(said, line);
    if (granted < 1000) throw garbled(line);
    const lease = Math.min(granted, this.lease ?? granted);
    return { token: tokenOf(said, line), lease, sentAt };
  }

  readRenewal(line: string, lease: number): number {
    const { status, said } = answerOf(line);
    checkStatus(status, said);
    return Math.min(Math.max(wholeSeconds(said, line), 1000), lease);
  }

  readRelease(line: string): void {
    const { status, said } = answerOf(line);
    checkStatus(status, said);
    if (Array.isArray(said.not_held) && said.not_held.length > 0) throw gone(said.not_held[0]);
  }

  /** Names the grant that is in force, whosever it is. */
  readFence(line: string): string | undefined {
    const { status, said } = answerOf(line);
    checkStatus(status, said);
    return said.held === true ? tokenOf(said, line) : undefined;
  }

  #call(call: string, members: Members): string {
    return api(`POST /v1/${call}`, { keys: this.keys, holder: this.#holder, ...members });
  }
}

/** A name of its own for each set: two of one client exclude each other, too. */
function holderOf(client: string): string {
  const unique = `#${randomBytes(8).toString("hex")}`;
  const room = NAME_SIZE_MAX - unique.length;
  let name = client;
  while (Buffer.byteLength(name) > room) name = [...name].slice(0, -1).join("");
  return name + unique;
}

function api(call: string, members: Members): string {
  return `api\n${call}\n${JSON.stringify(members)}\n`;
}

/** Status and object of an answer of `api`. Throws what any other reply stands for. */
function answerOf(line: string): { status: number; said: Members } {
  check(line);
  const [, status = "", text = ""] = /^ok (\d+) (.*)$/s.exec(line) ?? [];
  try {
    const said: unknown = JSON.parse(text);
    if (typeof said === "object" && said !== null && !Array.isArray(said)) {
      return { status: Number(status), said: said as Members };
    }
  } catch {
    // As of what is no object.
  }
  throw garbled(line);
}

/** Throws what a refusal stands for: mostly the line protocol has a word for the same. */
function checkStatus(status: number, said: Members): void {
  if (status === 200) return;
  const code = String(said.error ?? status);
  if (GONE.includes(code)) throw gone(said.key);
  throw failureOf(`${WORDS.get(code) ?? `error_${code}`} ${said.detail ?? ""}`);
}

function gone(key: unknown): Refused {
  const what = key === undefined ? "it" : JSON.stringify(key);
  return new Refused(`${what} is held no more`, "error");
}

/** The lease that was granted, in milliseconds. */
function wholeSeconds(said: Members, line: string): number {
  return 1000 * Math.floor(whole(said.ttl_ms, line) / 1000);
}

function tokenOf(said: Members, line: string): string {
  return whole(said.token, line).toString(16).padStart(16, "0");
}

function numberOf(token: string): number {
  return Number.parseInt(token, 16);
}

function whole(number: unknown, line: string): number {
  if (typeof number === "number" && Number.isSafeInteger(number) && number >= 1) return number;
  throw garbled(line);
}
