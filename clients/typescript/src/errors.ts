/**
 * What a call rejects with: each type says why, and each message says it to people.
 *
 * `LockdError` is the base of all. The two that most programs handle are `NotAcquired`, when the
 * wait is over, and `LockLost`, when a lock is held no more. `ConnectionFailed` is the base of those
 * that another try may cure.
 */

/** The base of everything that this package throws. */
export class LockdError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The request can be sent to no server, and was not. */
export class InvalidRequest extends LockdError {}

/** The server does not know what was asked for, and was not asked. */
export class Unsupported extends LockdError {}

/**
 * The wait is over, and somebody else has the lock. No place in the queue is left.
 *
 * The server is asked for `holder`, `client` and `waiters` when it has ended the wait, for a second
 * at most. Of one key it counts whole seconds: where the wait, or what is left of it once connected,
 * is no such number, this client leaves, and nobody is asked.
 */
export class NotAcquired extends LockdError {
  readonly key: string;
  /** Whether the place in the queue was lost, and asked for again, meanwhile. */
  readonly queuedAgain: boolean;
  /** Who holds it: `tcp:17` of a connection, or the name by which it is held, if the server told. */
  readonly holder: string | undefined;
  /** The name that the holder gave itself, if the server told. */
  readonly client: string | undefined;
  /** How many others wait for it, if the server told. */
  readonly waiters: number | undefined;

  constructor(
    message: string,
    about: {
      key: string;
      queuedAgain?: boolean;
      holder?: string | undefined;
      client?: string | undefined;
      waiters?: number | undefined;
    },
  ) {
    super(message);
    this.key = about.key;
    this.queuedAgain = about.queuedAgain ?? false;
    this.holder = about.holder;
    this.client = about.client;
    this.waiters = about.waiters;
  }
}

/**
 * Why a lock is held no more: `expired` and `revoked`, as the server's `lost` line says; `refused`,
 * when the server refused to renew it or to release it; `unauthorized`, when the server did not let
 * this client in again, or denied it the right to renew; `unsure`, when its lease ran out by this
 * client's clock without a confirmed renewal; `max_hold`; `released`, by its own owner.
 */
export type LossReason =
  | "expired"
  | "revoked"
  | "refused"
  | "unauthorized"
  | "unsure"
  | "max_hold"
  | "released"
  | (string & {});

/** The lock is held no more. `cause` is the error of the last renewal that failed, if one did. */
export class LockLost extends LockdError {
  readonly key: string;
  readonly reason: LossReason;

  constructor(
    message: string,
    about: { key: string; reason: LossReason },
    options?: { cause?: unknown },
  ) {
    super(message, options);
    this.key = about.key;
    this.reason = about.reason;
  }

  /**
   * The loss behind an error, if there is one: the error itself; the cause of an `AbortError`, as
   * Node's own functions throw it when `held.signal` is aborted; or one of the two errors of a
   * `SuppressedError`, as an `await using` block throws it that failed and lost its lock.
   */
  static behind(error: unknown): LockLost | undefined {
    let seen = 0;
    const pending: unknown[] = [error];
    while (pending.length > 0 && seen < BEHIND_MAX) {
      const one = pending.shift();
      seen += 1;
      if (one instanceof LockLost) return one;
      if (!(one instanceof Error)) continue;
      const wrapped = one as { cause?: unknown; error?: unknown; suppressed?: unknown };
      pending.push(wrapped.error, wrapped.suppressed, wrapped.cause);
    }
    return undefined;
  }
}

const BEHIND_MAX = 64;

/**
 * The connection of the lock has ended, and no new one has renewed it yet.
 *
 * The server may have released the lock with the connection, so another client may hold it. The
 * client tries to renew it until its lease is over: then it is held again, or lost. `cause` is why
 * the last try failed.
 */
export class LockSuspect extends LockdError {
  constructor(
    message: string,
    readonly key: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }
}

/** The caller gave up, by its `AbortSignal` (`cause` is that signal's reason) or by closing. */
export class Cancelled extends LockdError {
  /** As of Node's own functions. */
  readonly code = "ABORT_ERR";

  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "AbortError";
  }
}

/** The server answered, and the answer is no. */
export class Refused extends LockdError {
  /** The server's word for it. */
  readonly reply: string;

  constructor(message: string, reply: string, options?: { cause?: unknown }) {
    super(message, options);
    this.reply = reply;
  }
}

/** The server has as many keys as it may (`--max-locks`). */
export class TooManyKeys extends Refused {}

/** The key has as many waiters as it may (`--max-waiters`). */
export class TooManyWaiters extends Refused {}

/** The server, or this client, has as many holds and places as it may. */
export class TooManyHolds extends Refused {}

/** The semaphore has another limit. */
export class LimitMismatch extends Refused {}

/** It was asked for before, in the other mode. There is no upgrade: release, and ask again. */
export class ModeMismatch extends Refused {}

/** It was asked for before, with another number of permits. */
export class PermitsMismatch extends Refused {}

/** The server's disk is full. */
export class StorageFull extends Refused {}

/** This connection has a place in that queue. */
export class AlreadyEnqueued extends Refused {}

/** This connection has no place in that queue. */
export class NotEnqueued extends Refused {}

/** The turn came, and its lease ran out before anyone took it. */
export class LeaseExpired extends Refused {}

/** The auth token does not permit this. */
export class Denied extends Refused {}

/** The server did not let this client in: its auth token or its certificate. */
export class Unauthorized extends LockdError {}

/** The server's certificate could not be verified. */
export class Untrusted extends LockdError {}

/** What came from the server is no answer. */
export class Garbled extends LockdError {}

/** There was no answer, or none from a server that grants. It may pass by itself. */
export class ConnectionFailed extends LockdError {}

/** No connection could be made: the name, the network, TLS, or not in time. */
export class Unreachable extends ConnectionFailed {}

/** The connection ended. A request that had been sent may have been executed. */
export class Disconnected extends ConnectionFailed {}

/** The server did not answer in time. The request may have been executed. */
export class NoReply extends ConnectionFailed {}

/** The server is stopping, and grants no more. */
export class Draining extends ConnectionFailed {}

/** Another server of the cluster leads. */
export class NotLeader extends ConnectionFailed {
  /** The address of the one that leads, where it is known. */
  readonly leader: string | undefined;

  constructor(message: string, leader?: string, options?: { cause?: unknown }) {
    super(message, options);
    this.leader = leader;
  }
}
