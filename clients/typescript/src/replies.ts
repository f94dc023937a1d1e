/** What the server's lines mean: values, or the errors that they stand for. */

import {
  AlreadyEnqueued,
  Denied,
  Draining,
  Garbled,
  LeaseExpired,
  LimitMismatch,
  type LockdError,
  ModeMismatch,
  NotEnqueued,
  NotLeader,
  PermitsMismatch,
  Refused,
  StorageFull,
  TooManyHolds,
  TooManyKeys,
  TooManyWaiters,
  Unauthorized,
} from "./errors.js";
import { Signal, type Stats } from "./values.js";

const TOKEN = /^[!-~]{1,240}$/; // what can be sent back as it came, a lease behind it
const WHOLE_MAX = 2n ** 63n - 1n;
const SECONDS_MAX = 9_223_372_036; // what a server can count
const SHOWN_MAX = 80;

const REFUSALS: Record<string, [typeof Refused, string]> = {
  error: [Refused, "the server refused"],
  error_max_locks: [TooManyKeys, "the server has as many keys as it may"],
  error_max_waiters: [TooManyWaiters, "the key has as many waiters as it may"],
  error_max_holds: [TooManyHolds, "the server, or this client, has its fill of holds"],
  error_limit_mismatch: [LimitMismatch, "the semaphore has another limit"],
  error_mode_mismatch: [ModeMismatch, "it was asked for in the other mode before"],
  error_permits_mismatch: [PermitsMismatch, "it was asked for with other permits before"],
  error_storage: [StorageFull, "the server's disk is full"],
  error_already_enqueued: [AlreadyEnqueued, "there is a place in the queue already"],
  error_not_enqueued: [NotEnqueued, "there is no place in the queue"],
  error_lease_expired: [LeaseExpired, "the lease ran out before anyone took it"],
  error_denied: [Denied, "the auth token does not permit this"],
};

/** What the server gave. */
export interface Grant {
  readonly token: string;
  /** In milliseconds. */
  readonly lease: number;
  /** When it was asked, before the lease began. */
  readonly sentAt: number;
}

/** Who was in the way, and how many wait for it: as far as the server told. */
export interface Conflict {
  readonly holder?: string | undefined;
  readonly client?: string | undefined;
  readonly waiters?: number | undefined;
}

export type JsonObject = Record<string, unknown>;

/** The fields of a reply that is no error, its word first. Throws what any other stands for. */
export function check(reply: string): string[] {
  const fields = reply.split(" ");
  const word = fields[0] ?? "";
  if (["ok", "acquired", "queued", "timeout"].includes(word)) return fields;
  throw failureOf(reply);
}

/** The grant; nothing for `queued` and `timeout`. `asked` is the lease that was asked for. */
export function grantOf(reply: string, sentAt: number, asked?: number): Grant | undefined {
  const [word, token, lease] = check(reply);
  if (word === "queued" || word === "timeout") return undefined;
  const granted = 1000 * Math.min(whole(lease, reply), SECONDS_MAX);
  if (token === undefined || !TOKEN.test(token) || granted < 1000) throw garbled(reply);
  return { token, lease: Math.min(granted, asked ?? granted), sentAt };
}

/** What a renewal gives, in milliseconds. A server that rounds down calls a second 0. */
export function remainingOf(reply: string, asked: number): number {
  return Math.min(Math.max(1000 * countOf(reply), 1000), asked);
}

export function countOf(reply: string): number {
  const [word, count] = check(reply);
  if (word !== "ok") throw garbled(reply);
  return whole(count, reply);
}

export function statsOf(reply: string): Stats {
  check(reply);
  let stats: unknown;
  try {
    stats = JSON.parse(reply.slice("ok ".length));
  } catch {
    throw garbled(reply);
  }
  if (typeof stats !== "object" || stats === null || Array.isArray(stats)) throw garbled(reply);
  return stats as Stats;
}

/** Status and object of an answer of `api`. Throws what any other reply stands for. */
export function answerOf(line: string): { status: number; said: JsonObject } {
  check(line);
  const [, status = "", text = ""] = /^ok (\d+) (.*)$/s.exec(line) ?? [];
  try {
    const said: unknown = JSON.parse(text);
    if (isObject(said)) return { status: Number(status), said };
  } catch {
    // As of what is no object.
  }
  throw garbled(line);
}

/** Those of a list; none of what is no list. */
export function objectsOf(said: unknown): JsonObject[] {
  return Array.isArray(said) ? said.filter(isObject) : [];
}

/** The first of those that are told to be in the way that has a holder. */
export function conflictOf(told: JsonObject[]): Conflict {
  for (const { holder, client, waiters } of told) {
    if (typeof holder !== "string" || holder === "") continue;
    return {
      holder,
      client: typeof client === "string" && client !== "" ? client : undefined,
      waiters: Number.isSafeInteger(waiters) && Number(waiters) >= 0 ? Number(waiters) : undefined,
    };
  }
  return {};
}

/** The signal that a pushed line is, if it is one. */
export function signalOf(line: Buffer): Signal | undefined {
  if (!startsWith(line, "sig ")) return undefined;
  const blank = line.indexOf(" ", 4);
  const end = blank < 0 ? line.length : blank;
  return new Signal(line.toString("utf8", 4, end), Uint8Array.from(line.subarray(end + 1)));
}

/** Token and cause of a pushed line `lost <token> <cause> <key>`, if it is one. */
export function lossOf(line: Buffer): { token: string; cause: string } | undefined {
  if (!startsWith(line, "lost ")) return undefined;
  const [, token = "", cause = "expired"] = line.toString().split(" ", 3);
  return { token, cause };
}

/** The number of the grant: 0 when the token is none of this project's kind. */
export function fenceOf(token: string): bigint {
  const digits = /^[0-9a-f]{16}/i.exec(token);
  return digits === null ? 0n : BigInt(`0x${digits[0]}`);
}

/** Text of a stranger, fit to be shown. */
export function shown(text: string): string {
  const safe = text.slice(0, SHOWN_MAX).replace(/\p{C}/gu, "?");
  return text.length > SHOWN_MAX ? `"${safe}..."` : `"${safe}"`;
}

/** What a reply stands for that is no success. */
export function failureOf(reply: string): LockdError {
  const fields = reply.split(" ");
  const word = fields[0] ?? "";
  const refusal = Object.hasOwn(REFUSALS, word) ? REFUSALS[word] : undefined;
  if (refusal !== undefined) return new refusal[0](refusal[1], word);
  if (word === "error_not_leader") {
    const leader = fields[1] && fields[1] !== "-" ? fields[1] : undefined;
    const said = leader === undefined ? "nobody does" : `${shown(leader)} does`;
    return new NotLeader(`the server does not lead; it says that ${said}`, leader);
  }
  if (word === "error_draining") return new Draining("the server is stopping");
  if (word === "error_auth") return new Unauthorized("the server asks for another auth token");
  if (word.startsWith("error")) return new Refused(`the server says ${shown(reply)}`, word);
  return garbled(reply);
}

function whole(word: string | undefined, reply: string): number {
  const isWhole = word !== undefined && /^[0-9]{1,20}$/.test(word) && BigInt(word) <= WHOLE_MAX;
  if (!isWhole) throw garbled(reply);
  return Number(word);
}

export function garbled(reply: string): Garbled {
  return new Garbled(`the server's answer makes no sense: ${shown(reply)}`);
}

function isObject(said: unknown): said is JsonObject {
  return typeof said === "object" && said !== null && !Array.isArray(said);
}

function startsWith(line: Buffer, text: string): boolean {
  return line.length >= text.length && line.toString("latin1", 0, text.length) === text;
}
