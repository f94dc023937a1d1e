package lockd;

import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Engine: what the calls, the locks and the background work of one client share: its transport, its
 * timer, its threads, and the way to the server that leads. Thread-safe.
 */
final class Engine {
  static final System.Logger LOG = System.getLogger("lockd");

  final Transport transport;
  final ExecutorService workers;
  final Duration defaultLease;
  final long connectTimeout;
  final long releaseTimeout;
  final ScheduledThreadPoolExecutor timer =
      new ScheduledThreadPoolExecutor(1, Workers.daemons("lockd-timer-"));

  private final CountDownLatch closed = new CountDownLatch(1);
  private final Set<HeldLock> held = ConcurrentHashMap.newKeySet();
  private final Set<CompletableFuture<?>> pending = ConcurrentHashMap.newKeySet();

  Engine(
      Transport transport,
      ExecutorService workers,
      Duration defaultLease,
      Duration connectTimeout,
      Duration releaseTimeout) {
    this.transport = transport;
    this.workers = workers;
    this.defaultLease = defaultLease;
    this.connectTimeout = connectTimeout.toNanos();
    this.releaseTimeout = releaseTimeout.toNanos();
    timer.setRemoveOnCancelPolicy(true);
  }

  /** One attempt at one server. */
  interface Attempt<T> {
    T at(Address server) throws InterruptedException;
  }

  /** Some work that may block. */
  interface Work {
    void run() throws InterruptedException;
  }

  /**
   * Repeats the attempt, from server to server, until one that serves has answered. The first
   * attempt is always made; none begins after {@code deadline}.
   *
   * @param isWait whether the end of the client cancels it
   */
  <T> T atLeader(Cluster cluster, long deadline, boolean isWait, Attempt<T> attempt)
      throws InterruptedException {
    Cluster.Search search = cluster.search();
    while (true) {
      long pause;
      try {
        T result = attempt.at(search.here());
        search.found();
        return result;
      } catch (UnreachableException e) {
        pause = search.moveOn(e);
      } catch (RefusedException e) {
        // Each server of a cluster has access rules of its own; those of another may be newer.
        if (e.status() != 401) search.found();
        if (e.status() != 401 || cluster.isAlone()) throw e;
        pause = search.moveOn(e);
      }
      if (Clock.SYSTEM.now() + pause >= deadline) throw search.verdict();
      pause(pause, isWait);
    }
  }

  /** For how long one server of a cluster may leave a request without a reply. */
  long turnOf(Cluster cluster) {
    return cluster.isAlone()
        ? Long.MAX_VALUE // as long as for any reply
        : Math.max(connectTimeout / cluster.size(), 500_000_000);
  }

  void pause(long nanos, boolean isWait) throws InterruptedException {
    if (!isWait) {
      TimeUnit.NANOSECONDS.sleep(nanos);
    } else if (closed.await(nanos, TimeUnit.NANOSECONDS)) {
      throw new CancellationException("the client is closed");
    }
  }

  /** Renews once; throws a {@link RefusedException} that says so if the hold is over. */
  Wish.Grant renew(Wish wish, long fence, long leaseMs, long deadline) throws InterruptedException {
    // An attempt has a quarter of the lease: the next may reach a server that is not stopped.
    long turn = Math.max(TimeUnit.MILLISECONDS.toNanos(leaseMs) / 4, 100_000_000);
    return atLeader(
        wish.cluster(),
        deadline,
        false,
        server -> {
          Reply reply = transport.ask(server, wish.path("renew"), wish.renew(fence, leaseMs), turn);
          if (!reply.isOk()) throw reply.refusal();
          Wish.Grant grant = wish.granted(reply);
          if (grant.fence() != fence) throw reply.garbled("another fence");
          return grant;
        });
  }

  /** Ends the hold. Returns whether it was in force, as far as the replies show. */
  boolean release(Wish wish, long fence, long timeout) throws InterruptedException {
    boolean[] mayBeDone = {false};
    long turn = Math.min(timeout, Math.max(timeout / 4, 500_000_000));
    return atLeader(
        wish.cluster(),
        Clock.SYSTEM.now() + timeout,
        false,
        server -> {
          try {
            Reply reply = transport.ask(server, wish.path("release"), wish.release(fence), turn);
            if (reply.isOk()) return !reply.body().containsKey("not_held") || wasWhole(reply);
            RefusedException refusal = reply.refusal();
            if (refusal.saysGone()) return mayBeDone[0];
            throw refusal;
          } catch (UnreachableException e) {
            mayBeDone[0] |= e.mayBeExecuted();
            throw e;
          }
        });
  }

  private static boolean wasWhole(Reply reply) {
    return reply.body().get("not_held") instanceof List<?> missing && missing.isEmpty();
  }

  /** Returns what the caller completes at the end of work for which {@link #close} waits. */
  CompletableFuture<Void> begin() {
    CompletableFuture<Void> done = new CompletableFuture<>();
    pending.add(done);
    done.whenComplete((nothing, failure) -> pending.remove(done));
    return done;
  }

  /** Executes work for whose end {@link #close} waits. */
  CompletableFuture<Void> inBackground(Work work) {
    CompletableFuture<Void> done = begin();
    try {
      workers.execute(
          () -> {
            try {
              work.run();
              done.complete(null);
            } catch (LockdException | InterruptedException | CancellationException e) {
              done.completeExceptionally(e);
            }
          });
    } catch (RejectedExecutionException e) {
      done.completeExceptionally(new CancellationException("the client is closed"));
    }
    return done;
  }

  boolean isClosed() {
    return closed.getCount() == 0;
  }

  void add(HeldLock lock) {
    held.add(lock);
    if (isClosed()) lock.releaseInBackground();
  }

  void remove(HeldLock lock) {
    held.remove(lock);
  }

  /** Cancels waits, releases the locks that are held, and waits for that for a limited time. */
  void close() {
    closed.countDown();
    transport.close();
    held.forEach(HeldLock::releaseInBackground);
    long until = Clock.SYSTEM.now() + releaseTimeout;
    // Work that ends may begin other work: a wait that is cancelled withdraws.
    while (!pending.isEmpty() && Clock.SYSTEM.now() < until) {
      try {
        CompletableFuture<?>[] all = pending.toArray(CompletableFuture<?>[]::new);
        CompletableFuture.allOf(all)
            .get(Math.max(until - Clock.SYSTEM.now(), 1), TimeUnit.NANOSECONDS);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        break;
      } catch (ExecutionException | TimeoutException e) {
        LOG.log(System.Logger.Level.DEBUG, "while the client was closed", e);
      }
    }
    timer.shutdownNow();
    workers.shutdown();
  }
}
