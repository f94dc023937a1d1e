/**
 * Several at once, held by a name: calls of the HTTP API, over the line command `api`.
 *
 * What is so held lives by its lease alone. A connection that ends gives up a place in the queues,
 * and releases nothing.
 */

import { randomBytes } from "node:crypto";

import { InvalidRequest, Refused } from "./errors.js";
import {
  answerOf,
  type Conflict,
  conflictOf,
  failureOf,
  type Grant,
  garbled,
  type JsonObject,
  objectsOf,
} from "./replies.js";
import { checkKey, checkLease, checkShare, Wish } from "./requests.js";
import type { SetItem } from "./values.js";

const ITEMS_MAX = 64;
const NAME_SIZE_MAX = 256;
const WAIT_MS_MAX = 9_223_372_036_000;
/** The lease of what is asked for only to be released. */
const WITHDRAWAL_MS = 1000;
const GONE = ["expired", "stale_token", "not_holder"];
const WORDS = new Map([
  ["unauthorized", "error_auth"],
  ["not_leader", "error_not_leader -"],
]);

/** All of several locks and semaphores, or none of them. */
export class WantedSet extends Wish {
  readonly isPlain = false;
  override readonly outlivesLink = true;
  readonly #asked: JsonObject;
  readonly #holder: string;

  /** A key is a lock that is held alone. `client`: the name by which operators know whose it is. */
  constructor(items: readonly (string | SetItem)[], lease: number | undefined, client: string) {
    const given = items.map((item) => membersOf(typeof item === "string" ? { key: item } : item));
    const [first, ...others] = given.map(({ key }) => key);
    const names = new Set(given.map(({ key, kind }) => JSON.stringify([key, kind])));
    if (first === undefined || given.length > ITEMS_MAX || names.size < given.length) {
      throw new InvalidRequest(`a set is 1 to ${ITEMS_MAX} different locks and semaphores`);
    }
    checkLease(lease);
    super([first, ...others], lease);
    const isOfKeys = given.every(({ kind, mode }) => kind === undefined && mode === undefined);
    this.#asked = isOfKeys ? { keys: this.keys } : { items: given };
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

  /** Asks for a grant that nobody may have heard of, in order to release it. */
  takeBack(): string {
    return this.#call("acquire", { ttl_ms: WITHDRAWAL_MS });
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
    if (!Array.isArray(said.not_held) || said.not_held.length === 0) return;
    const [first] = said.not_held;
    throw gone(typeof first === "object" ? first?.key : first);
  }

  readConflict(line: string): Conflict {
    return conflictOf(
      objectsOf(answerOf(line).said.conflicts).flatMap(({ held_by, waiters }) =>
        objectsOf([held_by]).map((holder) => ({ ...holder, waiters })),
      ),
    );
  }

  #call(call: string, members: JsonObject): string {
    const asked = { ...this.#asked, holder: this.#holder, ...members };
    return `api\nPOST /v1/${call}\n${JSON.stringify(asked)}\n`;
  }
}

/** As the API has it. */
interface ItemMembers {
  key: string;
  kind?: "semaphore";
  mode?: "shared";
  limit?: number;
  permits?: number;
}

function membersOf({ key, shared = false, limit, permits = 1 }: SetItem): ItemMembers {
  checkKey(key);
  checkShare(limit, permits, shared);
  if (limit !== undefined) return { key, kind: "semaphore", limit, permits };
  return shared ? { key, mode: "shared" } : { key };
}

/** A name of its own for each set: two of one client exclude each other, too. */
function holderOf(client: string): string {
  const unique = `#${randomBytes(8).toString("hex")}`;
  const room = NAME_SIZE_MAX - unique.length;
  let name = client;
  while (Buffer.byteLength(name) > room) name = [...name].slice(0, -1).join("");
  return name + unique;
}

/** Throws what a refusal stands for: mostly the line protocol has a word for the same. */
function checkStatus(status: number, said: JsonObject): void {
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
function wholeSeconds(said: JsonObject, line: string): number {
  return 1000 * Math.floor(whole(said.ttl_ms, line) / 1000);
}

function tokenOf(said: JsonObject, line: string): string {
  return whole(said.token, line).toString(16).padStart(16, "0");
}

function numberOf(token: string): number {
  return Number.parseInt(token, 16);
}

function whole(number: unknown, line: string): number {
  if (typeof number === "number" && Number.isSafeInteger(number) && number >= 1) return number;
  throw garbled(line);
}
