package lockd;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * Acquisition: one wish for a lock, from the first request to the grant, through servers that
 * restart and connections that break. Used by one thread.
 *
 * <p>One that ends without a grant while a request may have been executed withdraws: it asks again
 * under the holder name, which returns the grant that the lost reply announced, and releases that.
 */
final class Acquisition {
  private static final long CUT_PAUSE = 50_000_000;
  private static final long WITHDRAW_LEASE_MS = 1000;
  private static final long PROBE_MAX = 2_000_000_000;
  // A connection that a firewall has forgotten is silent for ever, although the server lives.
  private static final long TURN_MAX = TimeUnit.MINUTES.toNanos(10);

  private final Engine engine;
  private final Wish wish;
  private final LockOptions options;
  private final long deadline; // of the wait
  private final boolean isTry;
  private boolean isInDoubt;
  private boolean wasQueued;
  private boolean queuedAgain;

  Acquisition(Engine engine, Wish wish, LockOptions options, Duration wait) {
    this.engine = engine;
    this.wish = wish;
    this.options = options;
    isTry = wait.isZero();
    long ms = wait.getSeconds() > LockOptions.MS_MAX / 1000 ? LockOptions.MS_MAX : wait.toMillis();
    long nanos = ms >= LockOptions.MS_MAX / 2 ? Long.MAX_VALUE / 2 : wait.toNanos();
    deadline = Clock.SYSTEM.now() + nanos;
  }

  HeldLock run() throws InterruptedException {
    boolean isGranted = false;
    CompletableFuture<Void> done = engine.begin();
    try {
      while (true) {
        long until = isTry ? Clock.SYSTEM.now() + engine.connectTimeout : deadline;
        Wish.Grant grant = engine.atLeader(wish.cluster(), until, true, this::attempt);
        isInDoubt = true; // until it is handed over
        grant = refresh(grant);
        if (grant == null) continue;
        isGranted = true;
        return new HeldLock(engine, wish, options, grant, queuedAgain);
      }
    } finally {
      if (!isGranted && isInDoubt) withdraw();
      done.complete(null);
    }
  }

  private Wish.Grant attempt(Address server) throws InterruptedException {
    while (true) {
      if (engine.isClosed()) throw new CancellationException("the client is closed");
      long left = Math.min(Math.max(deadline - Clock.SYSTEM.now(), 0), TURN_MAX);
      // A request that waits has no early timeout, so a stopped server is noticed before it.
      if (left > 0 && !wish.cluster().isAlone()) {
        long timeout = Math.min(left, Math.min(engine.connectTimeout, PROBE_MAX));
        engine.transport.ask(server, "/leader", null, timeout);
      }
      queuedAgain |= wasQueued;
      Reply reply = request(server, left);
      if (reply.isOk()) return wish.granted(reply);
      if (reply.code().equals("held") && !isOwn(reply)) throw reply.notAcquired(wish.key());
      if (!reply.code().equals("wait_timeout")) throw reply.refusal();
      // Where time is left, the wait was cut: by this client, or by --max-set-wait.
      if (deadline - Clock.SYSTEM.now() < CUT_PAUSE) throw reply.notAcquired(wish.key());
      wasQueued = true;
      engine.pause(CUT_PAUSE, true);
    }
  }

  private Reply request(Address server, long left) throws InterruptedException {
    boolean wasInDoubt = isInDoubt;
    long waitMs = Math.min(TimeUnit.NANOSECONDS.toMillis(left + 999_999), LockOptions.MS_MAX);
    var body = wish.acquire(waitMs, wish.ttlMs());
    isInDoubt = true;
    try {
      Reply reply =
          left > 0
              ? engine.transport.await(server, wish.path("acquire"), body, left)
              : engine.transport.ask(
                  server, wish.path("acquire"), body, engine.turnOf(wish.cluster()));
      isInDoubt = wasInDoubt || reply.isOk();
      return reply;
    } catch (UnreachableException e) {
      isInDoubt = wasInDoubt || e.mayBeExecuted();
      wasQueued |= left > 0 && e.mayBeExecuted();
      throw e;
    }
  }

  // A part of a set that this holder has already: waiting would be for itself.
  private static boolean isOwn(Reply reply) {
    return reply.body().get("conflicts") instanceof List<?> conflicts
        && conflicts.stream()
            .anyMatch(each -> each instanceof Map<?, ?> one && one.get("own") == Boolean.TRUE);
  }

  /**
   * A grant that arrives later than its first renewal would be due is renewed before it is handed
   * over. Returns null if it is over, or nothing confirms it, and there is time to ask again.
   */
  private Wish.Grant refresh(Wish.Grant grant) throws InterruptedException {
    long leaseNanos = TimeUnit.MILLISECONDS.toNanos(grant.leaseMs());
    boolean isFresh = Clock.SYSTEM.now() - grant.sentAt() < leaseNanos / 3;
    if (isFresh || isTry && !options.isRenewed()) return grant;
    try {
      long until = Clock.SYSTEM.now() + leaseNanos;
      return engine.renew(wish, grant.fence(), grant.leaseMs(), until);
    } catch (UnreachableException e) {
      if (Clock.SYSTEM.now() >= deadline) throw e;
      return null; // the same holder name gets this grant again, or a place in the queue
    } catch (RefusedException e) {
      if (!e.saysGone()) throw e;
      queuedAgain |= !isTry;
      if (Clock.SYSTEM.now() < deadline) return null;
      isInDoubt = false;
      throw new LockLostException(wish.key(), LockLostException.Cause.REFUSED, e);
    }
  }

  private void withdraw() {
    engine.inBackground(
        () -> {
          // The end of a connection may reach the server after this request does, so the server may
          // still grant what the first look did not find.
          if (!withdrawOnce()) {
            engine.pause(WITHDRAW_LEASE_MS * 1_000_000, true);
            withdrawOnce();
          }
        });
  }

  private boolean withdrawOnce() throws InterruptedException {
    long until = Clock.SYSTEM.now() + engine.releaseTimeout;
    long leaseMs = Math.min(wish.ttlMs(), WITHDRAW_LEASE_MS);
    Reply reply =
        engine.atLeader(
            wish.cluster(),
            until,
            false,
            server ->
                engine.transport.ask(
                    server,
                    wish.path("acquire"),
                    wish.acquire(0, leaseMs),
                    engine.turnOf(wish.cluster())));
    if (!reply.isOk()) return false;
    engine.release(wish, reply.fence(), engine.releaseTimeout);
    return true;
  }
}
