package lockd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import lockd.testing.Await;
import lockd.testing.LockdServer;
import lockd.testing.TcpProxy;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The client and the real server: what is held, lost, waited for, and held on. */
class ServerTest {
  private static final LockOptions TRY = LockOptions.DEFAULT.waitAtMost(Duration.ZERO);
  private static final LockOptions PATIENT = LockOptions.DEFAULT.waitAtMost(Duration.ofSeconds(60));
  private static LockdServer server;

  @TempDir Path directory;

  @BeforeAll
  static void start() throws Exception {
    server = LockdServer.inMemory();
  }

  @AfterAll
  static void stop() throws Exception {
    server.close();
  }

  private static LockdClient client() {
    return LockdClient.connect(server.address());
  }

  @Test
  void lockIsHeldByOneUntilItIsClosed() throws Exception {
    try (LockdClient client = client()) {
      long first;
      try (HeldLock lock = client.acquire("one")) {
        lock.check();
        first = lock.fence();
        assertTrue(lock.remaining().toMillis() > 0);
        assertTrue(lock.holder().startsWith(client.name() + "/"), lock.holder());
        assertEquals(Optional.empty(), client.tryAcquire("one"));
        var busy = assertThrows(NotAcquiredException.class, () -> client.acquire("one", TRY));
        assertEquals(lock.holder(), busy.holder().orElseThrow());
        assertEquals(new FenceState(true, first), client.fence("one"));
      }
      assertFalse(client.fence("one").isHeld());
      try (HeldLock lock = client.acquire("one")) {
        assertTrue(lock.fence() > first);
      }
    }
  }

  @Test
  void releasedLockIsNotHeldAndASecondReleaseDoesNothing() throws Exception {
    try (LockdClient client = client()) {
      HeldLock lock = client.acquire("released");
      lock.release();
      lock.release();
      lock.close();
      assertFalse(lock.isHeld());
      var loss = assertThrows(LockLostException.class, lock::check);
      assertEquals(LockLostException.Cause.RELEASED, loss.why());
      assertFalse(lock.lost().isDone());
    }
  }

  @Test
  void waiterIsGrantedWhenTheHolderReleases() throws Exception {
    try (LockdClient client = client()) {
      HeldLock first = client.acquire("queue");
      CompletableFuture<HeldLock> second = client.acquireAsync("queue", PATIENT);
      Await.until("the second waits", () -> server.waiters("queue") == 1);
      assertFalse(second.isDone());
      first.release();
      try (HeldLock lock = second.get(40, TimeUnit.SECONDS)) {
        assertTrue(lock.fence() > first.fence());
      }
    }
  }

  @Test
  void waitEndsNotBeforeItsTime() throws Exception {
    try (LockdClient client = client();
        HeldLock lock = client.acquire("timeout")) {
      long begin = System.nanoTime();
      LockOptions wait = LockOptions.DEFAULT.waitAtMost(Duration.ofMillis(300));
      assertThrows(NotAcquiredException.class, () -> client.acquire("timeout", wait));
      assertTrue(System.nanoTime() - begin >= 300_000_000);
    }
  }

  @Test
  void interruptAndCancelLeaveTheQueueAndLeaveNoHold() throws Exception {
    try (LockdClient client = client()) {
      HeldLock lock = client.acquire("cancelled");
      AtomicReference<Throwable> thrown = new AtomicReference<>();
      Thread waiter =
          new Thread(
              () -> {
                try {
                  client.acquire("cancelled");
                } catch (Throwable e) {
                  thrown.set(e);
                }
              });
      waiter.start();
      CompletableFuture<HeldLock> future = client.acquireAsync("cancelled", PATIENT);
      Await.until("both wait", () -> server.waiters("cancelled") == 2);
      waiter.interrupt();
      waiter.join();
      assertTrue(thrown.get() instanceof InterruptedException, () -> "" + thrown.get());
      future.cancel(true);
      Await.until("both have left", () -> server.waiters("cancelled") == 0);
      lock.release();
      // The second look of a withdrawal comes after a second, and takes nothing for long.
      Thread.sleep(1500);
      Await.until("it is free", () -> !server.isHeld("cancelled"));
    }
  }

  @Test
  void asyncGrantsThatRaceWithCancelsAreNotLeaked() throws Exception {
    try (LockdClient client = client()) {
      for (int i = 0; i < 40; i++) {
        CompletableFuture<HeldLock> future = client.acquireAsync("race", PATIENT);
        Thread.sleep(i % 3, 90_000 * (i % 10));
        if (!future.cancel(true)) future.join().close();
      }
      Await.until(
          "it is free",
          () ->
              client
                  .tryAcquire("race")
                  .map(
                      l -> {
                        l.close();
                        return true;
                      })
                  .orElse(false));
    }
  }

  @Test
  void closedClientReleasesItsLocksAndEndsItsWaits() throws Exception {
    LockdClient client = client();
    HeldLock lock = client.acquire("closed");
    CompletableFuture<HeldLock> wait = client.acquireAsync("closed", PATIENT);
    Await.until("it waits", () -> server.waiters("closed") == 1);
    client.close();
    assertFalse(lock.isHeld());
    assertFalse(server.isHeld("closed"));
    assertThrows(java.util.concurrent.CancellationException.class, wait::join);
    assertThrows(java.util.concurrent.CancellationException.class, () -> client.acquire("closed"));
  }

  @Test
  void lockIsRenewedForLongerThanItsLease() throws Exception {
    try (LockdClient client = client();
        HeldLock lock = client.acquire("renewed", lease(900))) {
      long begin = System.nanoTime();
      while (System.nanoTime() - begin < 3_000_000_000L) {
        if (!lock.isHeld()) throw new AssertionError(lock.lost().getNow(null));
        assertEquals(Optional.empty(), client.tryAcquire("renewed"));
        Thread.sleep(50);
      }
    }
  }

  private static LockOptions lease(long ms) {
    return PATIENT.lease(Duration.ofMillis(ms));
  }

  @Test
  void lockWithoutRenewalEndsWithItsLease() throws Exception {
    try (LockdClient client = client()) {
      long begin = System.nanoTime();
      HeldLock lock = client.acquire("fixed", lease(700).withoutRenewal());
      assertEquals(LockLostException.Cause.EXPIRED, lock.lost().get(40, TimeUnit.SECONDS).why());
      try (HeldLock next = client.acquire("fixed")) {
        assertTrue(System.nanoTime() - begin >= 700_000_000, "granted before the lease was over");
        assertTrue(next.fence() > lock.fence());
      }
    }
  }

  @Test
  void leaseThatIsRenewedShorterEndsSooner() throws Exception {
    try (LockdClient client = client()) {
      HeldLock lock = client.acquire("shorter", lease(60_000));
      lock.expireIn(Duration.ofMillis(500));
      assertFalse(lock.isHeld());
      assertTrue(server.isHeld("shorter"));
      Await.until("it has ended", () -> !server.isHeld("shorter"));
    }
  }

  @Test
  void revokedLockIsLostAndReported() throws Exception {
    AtomicReference<LockLostException> reported = new AtomicReference<>();
    try (LockdClient client = client()) {
      HeldLock lock = client.acquire("revoked", lease(1500).onLost(reported::set));
      server.revoke("revoked");
      Await.until("it is reported", () -> reported.get() != null);
      assertEquals(LockLostException.Cause.REFUSED, reported.get().why());
      assertThrows(LockLostException.class, lock::check);
      assertThrows(LockLostException.class, lock::close);
    }
  }

  @Test
  void semaphoreAdmitsItsLimit() throws Exception {
    try (LockdClient client = client();
        HeldLock two = client.acquire("pool", PATIENT.semaphore(3, 2));
        HeldLock one = client.acquire("pool", PATIENT.semaphore(3))) {
      assertTrue(two.isHeld() && one.isHeld());
      assertEquals(Optional.empty(), client.tryAcquire("pool", TRY.semaphore(3)));
      var refused =
          assertThrows(RefusedException.class, () -> client.acquire("pool", TRY.semaphore(4)));
      assertEquals("limit_mismatch", refused.code());
      two.renew(Duration.ofSeconds(20));
    }
    try (LockdClient client = client()) {
      client.tryAcquire("pool", TRY.semaphore(3, 3)).orElseThrow().close();
    }
  }

  @Test
  void sharedLocksAreHeldTogetherAndExcludeAWriter() throws Exception {
    try (LockdClient client = client()) {
      HeldLock reader = client.acquire("atlas", PATIENT.shared());
      HeldLock another = client.acquire("atlas", PATIENT.shared());
      assertEquals(Optional.empty(), client.tryAcquire("atlas"));
      reader.close();
      another.close();
      client.tryAcquire("atlas").orElseThrow().close();
    }
  }

  @Test
  void setIsTakenWholeRenewedAndLostTogether() throws Exception {
    var keys =
        List.of(
            LockItem.lock("seat-1"), LockItem.shared("plan"), LockItem.semaphore("drills", 4, 2));
    try (LockdClient client = client()) {
      HeldLock single = client.acquire("seat-1");
      var busy = assertThrows(NotAcquiredException.class, () -> client.acquireAll(keys, TRY));
      assertEquals("seat-1", busy.key());
      assertEquals(single.holder(), busy.holder().orElseThrow());
      client.tryAcquire("plan").orElseThrow().close();
      single.close();
      HeldLock set = client.acquireAll(keys, lease(1500));
      assertEquals(List.of("seat-1", "plan", "drills"), set.keys());
      Thread.sleep(2500);
      set.check();
      client.tryAcquire("plan", TRY.shared()).orElseThrow().close();
      server.revoke("seat-1");
      set.lost().get(40, TimeUnit.SECONDS);
      HeldLock again = client.acquireAllAsync(keys, lease(20_000)).get(40, TimeUnit.SECONDS);
      again.release();
      client.acquireAll(keys, TRY).close();
    }
  }

  @Test
  void threadsOfTwoClientsExcludeEachOther() throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(8);
    AtomicInteger inside = new AtomicInteger();
    AtomicInteger count = new AtomicInteger();
    AtomicReference<Long> last = new AtomicReference<>(0L);
    try (LockdClient a = client();
        LockdClient b = client()) {
      List<Future<?>> all = new ArrayList<>();
      for (int i = 0; i < 8; i++) {
        LockdClient client = i % 2 == 0 ? a : b;
        all.add(
            threads.submit(
                () -> {
                  for (int turn = 0; turn < 25; turn++) {
                    try (HeldLock lock = client.acquire("counter", PATIENT)) {
                      assertEquals(1, inside.incrementAndGet());
                      assertTrue(lock.fence() > last.getAndSet(lock.fence()));
                      count.incrementAndGet();
                      inside.decrementAndGet();
                    }
                  }
                  return null;
                }));
      }
      for (Future<?> each : all) each.get(80, TimeUnit.SECONDS);
      assertEquals(200, count.get());
    } finally {
      threads.shutdownNow();
    }
  }

  @Test
  void leaderElectionRunsItsBodyInOneProcessAtATime() throws Exception {
    AtomicInteger leaders = new AtomicInteger();
    AtomicInteger terms = new AtomicInteger();
    AtomicBoolean overlapped = new AtomicBoolean();
    LeaderElection.Body body =
        lock -> {
          if (leaders.incrementAndGet() != 1) overlapped.set(true);
          terms.incrementAndGet();
          try {
            Thread.sleep(60_000);
          } finally {
            leaders.decrementAndGet();
          }
        };
    try (LockdClient one = client();
        LockdClient two = client()) {
      LeaderElection first = one.elect("leader", lease(1500), body);
      Await.until("the first leads", first::isLeader);
      LeaderElection second = two.elect("leader", lease(1500), body);
      Await.until("the second waits", () -> server.waiters("leader") == 1);
      assertFalse(second.isLeader());
      server.revoke("leader"); // the body of the first is interrupted, and it queues again
      Await.until("the second leads", second::isLeader);
      Await.until("the first waits", () -> server.waiters("leader") == 1);
      second.close();
      assertFalse(second.isLeader());
      Await.until("the first leads again", first::isLeader);
      first.close();
      assertEquals(3, terms.get());
      assertEquals(0, leaders.get());
    }
    // A revoked leader notices it with its next renewal, so here alone two may overlap.
    assertTrue(terms.get() == 3);
  }

  @Test
  void statusNamesTheServerAndRejectsAWrongToken() throws Exception {
    try (LockdClient client = client()) {
      ServerStatus status = client.status();
      assertEquals(server.address(), status.server());
      assertTrue(status.rights().contains("lock"));
    }
    try (LockdServer guarded = LockdServer.inMemory("--auth-token", "secret-token-of-this-test");
        LockdClient stranger =
            LockdClient.builder().servers(guarded.address()).authToken("wrong").build()) {
      var refused = assertThrows(RefusedException.class, stranger::status);
      assertTrue(refused.isUnauthorized());
      assertThrows(RefusedException.class, () -> stranger.acquire("k"));
    }
  }

  @Test
  void lockAndWaitSurviveAKilledServerWithAJournal() throws Exception {
    try (LockdServer durable = LockdServer.withJournal();
        LockdClient client = LockdClient.connect(durable.address())) {
      HeldLock lock = client.acquire("restart", lease(15_000));
      CompletableFuture<HeldLock> waiter = client.acquireAsync("restart", PATIENT);
      Await.until("it waits", () -> durable.waiters("restart") == 1);
      durable.kill();
      Thread.sleep(300);
      durable.start();
      Await.until("it waits again", () -> durable.waiters("restart") == 1);
      lock.check();
      lock.renew(Duration.ofSeconds(15));
      lock.release();
      try (HeldLock next = waiter.get(40, TimeUnit.SECONDS)) {
        assertTrue(next.queuedAgain());
        assertTrue(next.fence() > lock.fence());
      }
    }
  }

  @Test
  void lockIsLostAsUnsureWhenNoServerConfirmsItAndNotBeforeItsLease() throws Exception {
    try (LockdServer gone = LockdServer.inMemory();
        LockdClient client = LockdClient.connect(gone.address())) {
      HeldLock lock = client.acquire("unsure", lease(1500));
      long begin = System.nanoTime();
      gone.kill();
      assertEquals(LockLostException.Cause.UNSURE, lock.lost().get(40, TimeUnit.SECONDS).why());
      assertTrue(System.nanoTime() - begin >= 500_000_000, "lost before two thirds of its lease");
      assertTrue(lock.lost().join().getCause() instanceof UnreachableException);
    }
  }

  @Test
  void replyThatIsLostIsRequestedAgainUnderTheSameName() throws Exception {
    try (TcpProxy proxy = new TcpProxy(server.port());
        LockdClient client = LockdClient.connect(proxy.address())) {
      proxy.dropReplies(true);
      CompletableFuture<HeldLock> pending = client.acquireAsync("lost-reply", PATIENT);
      Await.until("the server has granted it", () -> server.isHeld("lost-reply"));
      proxy.dropReplies(false);
      try (HeldLock lock = pending.get(40, TimeUnit.SECONDS)) {
        assertEquals(client.fence("lost-reply").fence(), lock.fence());
      }
    }
  }

  @Test
  void processThatWasStoppedForLongerThanItsLeaseDoesNotBelieveAfterwards() throws Exception {
    Path out = directory.resolve("beliefs");
    Process holder =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                System.getProperty("java.class.path"),
                StoppedHolder.class.getName(),
                server.address())
            .redirectError(ProcessBuilder.Redirect.DISCARD)
            .redirectOutput(out.toFile())
            .start();
    try (LockdClient client = client()) {
      Await.until("it holds", () -> Files.readAllLines(out).size() > 20);
      String pid = String.valueOf(holder.pid());
      new ProcessBuilder("kill", "-STOP", pid).start().waitFor();
      long granted;
      try (HeldLock lock = client.acquire("stopped", PATIENT)) {
        // CLOCK_MONOTONIC is that of all processes. The server granted it before the reply came.
        granted = System.nanoTime();
        new ProcessBuilder("kill", "-CONT", pid).start().waitFor();
        holder.waitFor();
        assertTrue(lock.isHeld());
      }
      List<String> lines = Files.readAllLines(out);
      assertEquals("lost", lines.get(lines.size() - 1));
      long last = Long.parseLong(lines.get(lines.size() - 2));
      assertTrue(last < granted, () -> "it believed " + (last - granted) + " ns after the grant");
    } finally {
      holder.destroyForcibly().waitFor();
    }
  }

  /** Two believers through a broken network: none at any time overlaps with another. */
  @Test
  void noTwoBelieveThroughAProxyThatIsKilledAndStalledAndAServerThatIsKilled() throws Exception {
    try (LockdServer durable = LockdServer.withJournal();
        TcpProxy left = new TcpProxy(durable.port());
        TcpProxy right = new TcpProxy(durable.port());
        LockdClient a = LockdClient.connect(left.address());
        LockdClient b = LockdClient.connect(right.address())) {
      Believers believers = new Believers("network");
      believers.add(a, lease(1500));
      believers.add(b, lease(1500));
      for (int round = 0; round < 3; round++) {
        TcpProxy proxy = round % 2 == 0 ? left : right;
        proxy.kill();
        Thread.sleep(1800); // longer than a lease
        proxy.restart();
        proxy.stall(true);
        Thread.sleep(1800);
        proxy.stall(false);
        durable.kill();
        Thread.sleep(200);
        durable.start();
        Thread.sleep(600);
      }
      believers.end();
    }
  }

  /** Rotates the auth token as docs/security.md describes: add, reload, change, remove, reload. */
  @Test
  void noLockIsLostWhenTheAuthTokenIsRotated() throws Exception {
    Path access = directory.resolve("access.toml");
    Path token = Files.writeString(directory.resolve("token"), "the-first-token-of-three\n");
    Files.writeString(access, entry("the-first-token-of-three"));
    try (LockdServer guarded = LockdServer.withJournal("--access", access.toString());
        LockdClient client =
            LockdClient.builder().servers(guarded.address()).authTokenFile(token).build()) {
      guarded.token("the-first-token-of-three");
      HeldLock lock = client.acquire("rotated", lease(3000));
      Believers believers = new Believers("contended");
      believers.add(client, lease(1500));
      believers.add(client, lease(1500));
      String old = "the-first-token-of-three";
      for (String next : List.of("the-second-token-of-three", "the-third-token-of-three")) {
        Files.writeString(access, entry(old) + entry(next));
        guarded.signal("HUP");
        Thread.sleep(300);
        Files.writeString(token, next + "\n");
        guarded.token(next);
        Files.writeString(access, entry(next));
        guarded.signal("HUP");
        Thread.sleep(3000);
        lock.check();
        old = next;
      }
      believers.end();
      lock.release();
      // And without a new token in the file, a lock ends as unauthorized.
      HeldLock last = client.acquire("rotated", lease(2000));
      Files.writeString(access, entry("another-token-than-theirs"));
      guarded.signal("HUP");
      assertEquals(
          LockLostException.Cause.UNAUTHORIZED, last.lost().get(40, TimeUnit.SECONDS).why());
    }
  }

  private static String entry(String token) throws Exception {
    byte[] hash = MessageDigest.getInstance("SHA-256").digest(token.getBytes());
    return "[[token]]\nname = \"job\"\nsha256 = \""
        + HexFormat.of().formatHex(hash)
        + "\"\nrights = [\"lock\", \"read\"]\n\n";
  }

  /** Threads that hold one lock in turn, and note the times at which they believed in it. */
  private static final class Believers {
    private record Belief(long from, long to, long fence) {}

    private final String key;
    private final List<Belief> beliefs = java.util.Collections.synchronizedList(new ArrayList<>());
    private final List<Thread> threads = new ArrayList<>();
    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    private volatile boolean isOver;

    Believers(String key) {
      this.key = key;
    }

    void add(LockdClient client, LockOptions options) {
      Thread thread = new Thread(() -> run(client, options));
      thread.start();
      threads.add(thread);
    }

    void end() throws InterruptedException {
      isOver = true;
      for (Thread each : threads) each.join();
      if (failure.get() != null) throw new AssertionError(failure.get());
      List<Belief> sorted = new ArrayList<>(beliefs);
      sorted.sort((x, y) -> Long.compare(x.from, y.from));
      assertTrue(sorted.size() >= 4, () -> "only " + sorted.size() + " beliefs");
      for (int i = 1; i < sorted.size(); i++) {
        Belief before = sorted.get(i - 1);
        Belief after = sorted.get(i);
        assertTrue(before.to < after.from, () -> before + " overlaps " + after);
        assertTrue(before.fence < after.fence, () -> before + " has a larger fence than " + after);
      }
    }

    private void run(LockdClient client, LockOptions options) {
      while (!isOver) {
        try (HeldLock lock = client.acquire(key, options)) {
          long from = System.nanoTime();
          long believed = 0;
          for (int i = 0; i < 40; i++) {
            long at = System.nanoTime(); // before the question, so a belief is never too long
            if (!lock.isHeld()) break;
            believed = at;
            Thread.sleep(10);
          }
          if (believed > 0)
            beliefs.add(new Belief(Math.min(from, believed), believed, lock.fence()));
        } catch (LockdException e) {
          // Lost or unreachable: the next turn.
        } catch (Throwable e) {
          failure.set(e);
        }
      }
    }
  }
}
