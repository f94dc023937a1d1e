/** Calls that find the server that leads, and go on through servers that are down. */

import { now } from "./clock.js";
import { type Cluster, LeaderSearch, movesOn } from "./cluster.js";
import { Link, type Reply } from "./link.js";
import { check } from "./replies.js";
import { BARRIER } from "./requests.js";
import { type Scope, waitUntil } from "./waiting.js";

/** Of a short rest of a wait, what a second try to connect may take all the same. */
const ATTEMPT_MS_MIN = 1000;

/**
 * What `ask` returns of a connection with whoever leads, which is then its to close.
 *
 * Whoever cannot be reached, or stops to lead, is asked again, or the next one is, until the
 * deadline. The first try is made in any case, and in a cluster an election is waited for.
 */
export async function atLeader<T>(
  scope: Scope,
  cluster: Cluster,
  deadline: number,
  ask: (link: Link) => Promise<T>,
): Promise<T> {
  const search = new LeaderSearch(cluster);
  const until = cluster.isAlone
    ? deadline
    : Math.max(deadline, now() + cluster.options.connectTimeout);
  for (let failures = 0; ; failures += 1) {
    await waitUntil(scope, Math.min(search.notBefore, until));
    // What is left of a wait bounds a second try, not the first.
    const attemptMax = failures > 0 ? Math.max(until, now() + ATTEMPT_MS_MIN) : undefined;
    try {
      return await askLeader(scope, search, attemptMax, ask);
    } catch (failure) {
      if (!movesOn(failure)) throw failure;
      search.moveOn(failure, now());
      if (search.isHopeless || now() >= until) throw search.verdict();
      if (failures === 0) cluster.options.warn(`${failure.message}; trying again`);
    }
  }
}

/** A request that any connection may ask and whoever leads may answer, and what that means. */
export interface Request<T> {
  readonly lines: string;
  readonly until: number;
  readonly read: (reply: Reply) => T;
}

/**
 * What the answer to a renewal or a release means, which is asked on this connection or, when it
 * ends, on another. The connection stays open when the caller is cancelled.
 */
export async function askByToken<T>(
  scope: Scope,
  cluster: Cluster,
  link: Link | undefined,
  request: Request<T>,
): Promise<T> {
  const { lines, until, read } = request;
  if (link !== undefined && !link.isClosed) {
    // Of a cluster another may lead by now: not all the time is for this one.
    const share = (until - now()) / (cluster.isAlone ? 1 : 2);
    try {
      return read(await link.ask(scope, lines, now() + share, { staysOpen: true }));
    } catch (failure) {
      if (!movesOn(failure) || now() >= until) throw failure;
    }
  }
  const search = new LeaderSearch(cluster);
  for (;;) {
    await waitUntil(scope, Math.min(search.notBefore, until));
    try {
      return await askVisiting(scope, search, request);
    } catch (failure) {
      if (!movesOn(failure)) throw failure;
      search.moveOn(failure, now());
      if (search.isHopeless || Math.max(now(), search.notBefore) >= until) throw search.verdict();
    }
  }
}

async function askLeader<T>(
  scope: Scope,
  search: LeaderSearch,
  until: number | undefined,
  ask: (link: Link) => Promise<T>,
): Promise<T> {
  const { cluster, here } = search;
  const attemptUntil = attemptUntilOf(cluster, until);
  const link = await Link.open(scope, cluster.member(here), attemptUntil);
  try {
    if (!cluster.isAlone) {
      check((await link.ask(scope, BARRIER, attemptUntil)).line);
      cluster.leader = here;
    }
    return await ask(link);
  } catch (failure) {
    link.abort();
    throw failure;
  }
}

async function askVisiting<T>(
  scope: Scope,
  search: LeaderSearch,
  { lines, until, read }: Request<T>,
): Promise<T> {
  const { cluster, here } = search;
  const link = await Link.open(scope, cluster.member(here), attemptUntilOf(cluster, until));
  try {
    const answer = read(await link.ask(scope, lines, until));
    cluster.leader = here;
    return answer;
  } finally {
    link.close();
  }
}

/** What one server may take, so that there is time for all, and for a second look at one. */
function attemptUntilOf(cluster: Cluster, until: number | undefined): number {
  const parts = cluster.isAlone ? 1 : cluster.members.length + 1;
  const limit = now() + cluster.options.connectTimeout / parts;
  return until === undefined ? limit : Math.min(limit, until);
}
