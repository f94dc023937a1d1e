/**
 * Keeps one hold renewed, and tells its owner when that is over.
 *
 *     at home ──(a third of the lease)──> asking ──ok──> at home
 *                                            │
 *     the connection ends, or the server     │
 *     does not lead or is overdue            v
 *                        away: the next server, again and again ──ok──> home is there
 *
 * Home is the connection on which the lock was granted or last renewed. To leave it would be to
 * release, so a server that is merely slow is waited for. But it may be gone without a word, or hang
 * while another takes over: when its answer is overdue the client asks others as well, on
 * connections of their own, and home is kept, in case it answers after all. Of a server that stands
 * alone that is the same server.
 *
 * A server of a cluster that replies that it does not lead is left, and home is gone with it. Once
 * home is gone, a server may have released the lock: it is suspect from the first reconnection that
 * does not renew it, also one that reaches only followers, until one does. It is lost when a server
 * refuses this client.
 */

import { NEVER, now } from "./clock.js";
import { LeaderSearch, movesOn } from "./cluster.js";
import {
  InvalidRequest,
  LeaseExpired,
  LockdError,
  LockLost,
  NoReply,
  NotEnqueued,
  NotLeader,
  Refused,
} from "./errors.js";
import { certainUntil, type Hold, isDefinite } from "./hold.js";
import { Link } from "./link.js";
import { Latch, Scope, Task, waitUntil } from "./waiting.js";

const PAUSE_MS_MIN = 50;
const PAUSE_MS_MAX = 1000;
const PATIENCE_MS_MIN = 1000;

/** When a lease that was asked for at `sentAt` is to be renewed. */
export function renewalDue(sentAt: number, lease: number): number {
  return sentAt + lease / 3;
}

/** Whether the answer to a renewal says that there is nothing left to renew. */
export function saysGone(refusal: unknown): refusal is Refused {
  if ([LeaseExpired, NotEnqueued].some((kind) => refusal instanceof kind)) return true;
  return refusal instanceof Refused && refusal.reply === "error";
}

interface Confirmation {
  readonly link: Link;
  readonly askedAt: number;
  readonly remaining: number;
}

/** Begins at once. Ends when the hold is lost, or by `withdraw`. */
export class Renewal {
  readonly #hold: Hold;
  readonly #search: LeaderSearch;
  readonly #scope = new Scope();
  readonly #told = new Latch(); // by the server, that it is lost
  #link: Link;
  #former: Link[] = []; // whose end may release: kept until this ends
  #renewAt: number;
  #pause = 0;

  constructor(hold: Hold, link: Link) {
    this.#hold = hold;
    this.#search = new LeaderSearch(hold.cluster, hold.cluster.indexOf(link.endpoint));
    this.#link = link;
    this.#renewAt = renewalDue(hold.grant.sentAt, hold.grant.lease);
    this.#listenAt(link);
    void this.#run();
  }

  /** Nobody renews it any more. The connection is the caller's to close. */
  withdraw(): Link {
    this.#scope.cancel();
    this.#link.onLoss = undefined;
    this.#leaveFormer();
    return this.#link;
  }

  async #run(): Promise<void> {
    try {
      for (;;) {
        await this.#rest();
        await this.#renew();
      }
    } catch (error) {
      if (this.#scope.isSet) return;
      this.#end(error instanceof LockLost ? error : this.#hold.lost(String(error), "unsure"));
    }
  }

  #end(loss: LockLost): void {
    // The server may keep it a little longer than this client believed in it.
    if (!this.#link.isClosed) {
      this.#link.send(this.#hold.wanted.release(this.#hold.grant.token));
    }
    this.#link.close();
    this.#leaveFormer();
    this.#hold.lose(loss);
  }

  /** Until something is to be done; throws when it is over. */
  async #rest(): Promise<void> {
    const { certainty, heldUntilMax } = this.#hold;
    await this.#waitUntil(Math.min(this.#renewAt, certainty.until), ...this.#connections());
    if (heldUntilMax === undefined || now() < heldUntilMax) return;
    await this.#waitUntil(certainty.until, ...this.#connections());
    // A connection that ends may release, which only a renewal could tell.
    certainty.end(now());
    this.#throwIfOver();
  }

  /** Returns when the server has confirmed, or cannot tell now. */
  async #renew(): Promise<void> {
    let home: Task<Confirmation> | undefined;
    let visit: Task<Confirmation> | undefined;
    const overdueAt = now() + this.#patience();
    this.#former = this.#former.filter((link) => !link.isClosed);
    if (this.#link.isClosed) this.#search.moveOn(this.#link.failure, now());
    else home = new Task((scope) => this.#ask(scope, this.#link, NEVER));
    try {
      for (;;) {
        if (visit === undefined && (home === undefined || now() >= overdueAt)) {
          visit = this.#visitNext(home !== undefined);
        }
        await this.#waitFor(home, visit, overdueAt);
        if (home?.isSet) {
          const failure = this.#judge(home);
          if (failure === undefined) return;
          home = undefined;
          // A server that does not lead cannot renew: its connection counts as lost.
          this.#link.abort(failure);
          if (visit === undefined) this.#search.moveOn(failure, now());
        }
        if (visit?.isSet) {
          const failure = this.#judge(visit);
          if (failure === undefined) return;
          visit = undefined;
          this.#search.moveOn(failure, now());
          this.#doubt(failure);
        }
      }
    } finally {
      for (const task of [home, visit]) this.#discard(task);
    }
  }

  /** Asks who is next; nobody when it is too early, or when that is who is asked already. */
  #visitNext(homeIsOpen: boolean): Task<Confirmation> | undefined {
    if (now() < this.#search.notBefore) return undefined;
    const { cluster } = this.#hold;
    const member = this.#search.here;
    if (homeIsOpen && !cluster.isAlone && cluster.member(member) === this.#link.endpoint) {
      this.#search.moveOn(new NoReply("its answer is overdue"), now());
      return undefined;
    }
    return new Task(
      (scope) => this.#visit(scope, member),
      (confirmed) => confirmed.link.abort(),
    );
  }

  async #waitFor(
    home: Task<Confirmation> | undefined,
    visit: Task<Confirmation> | undefined,
    overdueAt: number,
  ): Promise<void> {
    let until = this.#hold.certainty.until;
    if (visit === undefined) {
      const { notBefore } = this.#search;
      until = Math.min(until, home === undefined ? notBefore : Math.max(notBefore, overdueAt));
    }
    const tasks = [home, visit].filter((task) => task !== undefined);
    await this.#waitUntil(until, ...tasks);
  }

  /** Nothing when there was an answer; else why another server has to be asked. */
  #judge(task: Task<Confirmation>): LockdError | undefined {
    try {
      this.#take(task.result());
      return undefined;
    } catch (failure) {
      if (saysGone(failure)) {
        throw this.#hold.lost(`not renewed, ${failure.message}`, "refused", failure);
      }
      if (failure instanceof LockdError) this.#note(failure);
      // A server that stands alone, and does not lead, is not left: that would be to release.
      const stays = failure instanceof NotLeader && this.#hold.cluster.isAlone;
      if (movesOn(failure) && !stays) return failure;
      const isNo = failure instanceof Refused || failure instanceof InvalidRequest;
      if (!(stays || isNo)) throw failure;
      this.#pause = Math.min(Math.max(2 * this.#pause, PAUSE_MS_MIN), PAUSE_MS_MAX);
      this.#renewAt = now() + this.#pause;
      this.#doubt(failure);
      return undefined;
    }
  }

  /** Warns once of each kind of failure in a row. */
  #note(failure: LockdError): void {
    const { cluster, lastError, wanted } = this.#hold;
    if (failure.constructor !== lastError?.constructor) {
      cluster.options.warn(`${wanted} was not renewed: ${failure.message}`);
    }
    this.#hold.lastError = failure;
  }

  /** After a try that did not renew: a server may have released it with its connection. */
  #doubt(failure: LockdError): void {
    const isConnected = [this.#link, ...this.#former].some((link) => !link.isClosed);
    if (isConnected || this.#hold.wanted.outlivesLink) return;
    const isByAll = failure instanceof Refused || this.#search.isHopeless;
    if (isDefinite(failure) && isByAll) throw this.#hold.refused(failure);
    this.#hold.certainty.suspect();
  }

  #take(confirmed: Confirmation): void {
    const until = certainUntil(confirmed.askedAt, confirmed.remaining);
    if (!this.#hold.certainty.extend(now(), until)) this.#throwIfOver();
    this.#renewAt = renewalDue(confirmed.askedAt, confirmed.remaining);
    this.#pause = 0;
    this.#hold.lastError = undefined;
    this.#search.found(this.#hold.cluster.indexOf(confirmed.link.endpoint));
    if (confirmed.link === this.#link) return;
    if (!this.#link.isClosed) this.#former.push(this.#link);
    this.#link = confirmed.link;
    this.#listenAt(confirmed.link);
  }

  async #visit(scope: Scope, member: number): Promise<Confirmation> {
    const { cluster, certainty } = this.#hold;
    const parts = cluster.isAlone ? 1 : cluster.members.length + 1;
    const share = (certainty.until - now()) / parts;
    const limit = Math.min(cluster.options.connectTimeout, this.#patience(), share);
    const link = await Link.open(scope, cluster.member(member), now() + limit);
    try {
      return await this.#ask(scope, link, now() + this.#patience());
    } catch (failure) {
      link.abort();
      throw failure;
    }
  }

  async #ask(scope: Scope, link: Link, until: number): Promise<Confirmation> {
    // The lease is named, since there are servers that forget what was granted.
    const { wanted, grant } = this.#hold;
    const lines = wanted.renew(grant.token, grant.lease);
    const reply = await link.ask(scope, lines, until, { staysOpen: true });
    const remaining = wanted.readRenewal(reply.line, grant.lease);
    return { link, askedAt: reply.sentAt, remaining };
  }

  /** Of two that were asked, the one whose answer nobody needs any more. */
  #discard(task: Task<Confirmation> | undefined): void {
    if (task === undefined) return;
    if (!task.isSet) {
      task.cancel();
      return;
    }
    try {
      const { link } = task.result();
      if (link !== this.#link && !this.#former.includes(link)) link.abort();
    } catch {
      // It had failed, and left nothing behind.
    }
  }

  async #waitUntil(until: number, ...latches: Latch[]): Promise<void> {
    await waitUntil(this.#scope, until, this.#told, ...latches);
    this.#throwIfOver();
  }

  #connections(): Latch[] {
    return [this.#link, ...this.#former].map((link) => link.closed);
  }

  #leaveFormer(): void {
    for (const link of this.#former) link.close();
    this.#former = [];
  }

  #listenAt(link: Link): void {
    link.onLoss = (token, cause) => this.#takeLoss(token, cause);
    for (const [token, cause] of link.losses) this.#takeLoss(token, cause);
  }

  #takeLoss(token: string, cause: string): void {
    if (token !== this.#hold.grant.token || this.#told.isSet) return;
    this.#hold.loseAsTold(cause);
    this.#told.set();
  }

  #throwIfOver(): void {
    const loss = this.#hold.whyOver();
    if (loss !== undefined) throw loss;
  }

  /** For what must not take most of the lease. */
  #patience(): number {
    return Math.max(this.#hold.grant.lease / 4, PATIENCE_MS_MIN);
  }
}
