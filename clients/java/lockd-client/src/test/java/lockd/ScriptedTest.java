package lockd;

import static lockd.testing.ScriptedServer.error;
import static lockd.testing.ScriptedServer.grant;
import static lockd.testing.ScriptedServer.released;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import lockd.testing.Await;
import lockd.testing.ScriptedServer;
import lockd.testing.ScriptedServer.Answer;
import lockd.testing.ScriptedServer.Request;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The client against servers that lie, stall, and close at every byte. */
class ScriptedTest {
  private static final long TTL = 20_000;
  // A third of it is long enough for a first request on a loaded machine.
  private static final long SHORT_TTL = 4000;

  private static LockdClient.Builder impatient() {
    return LockdClient.builder()
        .connectTimeout(Duration.ofSeconds(10))
        .replyTimeout(Duration.ofSeconds(3));
  }

  /** A server that grants, renews and releases. */
  private static Answer obey(Request request) {
    return switch (request.path()) {
      case "/v1/release" -> released(request);
      case "/leader", "/livez" -> Answer.of(200, "{\"status\":\"ok\"}\n");
      default -> grant(request, 7, TTL);
    };
  }

  @Test
  void acquireSurvivesAConnectionThatClosesAtEveryByteOfTheReply() throws Exception {
    acquireThroughBrokenReplies(false);
  }

  @Test
  void acquireSurvivesAReplyThatStallsAtManyOfItsBytes() throws Exception {
    acquireThroughBrokenReplies(true);
  }

  private void acquireThroughBrokenReplies(boolean isStalled) throws Exception {
    AtomicInteger cut = new AtomicInteger();
    AtomicInteger size = new AtomicInteger(Integer.MAX_VALUE);
    AtomicReference<String> holder = new AtomicReference<>();
    try (ScriptedServer server =
            new ScriptedServer(
                request -> {
                  if (!request.path().equals("/v1/acquire")) return obey(request);
                  Answer whole = obey(request);
                  size.set(whole.bytes().length);
                  boolean isFirst = holder.getAndSet(request.text("holder")) == null;
                  if (!isFirst) return whole;
                  return isStalled ? whole.stalledAt(cut.get()) : whole.cutAt(cut.get());
                });
        LockdClient client =
            impatient()
                .replyTimeout(Duration.ofMillis(isStalled ? 150 : 5000))
                .servers(server.address())
                .build()) {
      int step = isStalled ? 16 : 1;
      for (; cut.get() < size.get(); cut.addAndGet(step)) {
        holder.set(null);
        try (HeldLock lock = client.tryAcquire("k").orElseThrow()) {
          assertEquals(7, lock.fence());
          assertEquals(holder.get(), lock.holder(), "a retry is of another holder");
        }
      }
      assertTrue(cut.get() > 100);
    }
  }

  @Test
  void renewAndReleaseSurviveAConnectionThatClosesAtEveryByteOfTheReply() throws Exception {
    AtomicInteger cut = new AtomicInteger();
    AtomicReference<String> last = new AtomicReference<>("");
    AtomicInteger size = new AtomicInteger(Integer.MAX_VALUE);
    try (ScriptedServer server =
            new ScriptedServer(
                request -> {
                  Answer whole = obey(request);
                  // The second copy of a release finds nothing.
                  boolean isRepeated = last.getAndSet(request.path()).equals(request.path());
                  boolean isRelease = request.path().equals("/v1/release");
                  if (isRepeated) return isRelease ? error(409, "expired") : whole;
                  if (request.path().equals("/v1/acquire")) return whole;
                  if (!isRelease) size.set(whole.bytes().length);
                  return whole.cutAt(Math.min(cut.get(), whole.bytes().length - 1));
                });
        LockdClient client = LockdClient.connect(server.address())) {
      for (; cut.get() < size.get(); cut.incrementAndGet()) {
        HeldLock lock = client.acquire("k");
        lock.renew(Duration.ofSeconds(20));
        lock.release();
      }
      assertTrue(cut.get() > 100);
      assertEquals(2 * cut.get(), server.requests("/v1/renew").size());
      assertEquals(2 * cut.get(), server.requests("/v1/release").size());
    }
  }

  @Test
  void bodyThatStallsAfterALongWaitIsNotAwaitedAsTheWaitIs() throws Exception {
    AtomicInteger asks = new AtomicInteger();
    try (ScriptedServer server =
            new ScriptedServer(
                request -> {
                  Answer whole = obey(request);
                  boolean isFirst =
                      request.path().equals("/v1/acquire") && asks.getAndIncrement() == 0;
                  return isFirst ? whole.stalledAt(whole.bytes().length - 5) : whole;
                });
        LockdClient client = impatient().servers(server.address()).build();
        HeldLock lock = client.acquire("k")) {
      assertTrue(lock.queuedAgain());
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "{\"token\":7}",
        "[]",
        "null",
        "{\"holder\":\"H\",\"token\":0,\"ttl_ms\":1000,\"expires_in_ms\":1000}",
        "{\"holder\":\"H\",\"token\":-7,\"ttl_ms\":1000,\"expires_in_ms\":1000}",
        "{\"holder\":\"H\",\"token\":\"7\",\"ttl_ms\":1000,\"expires_in_ms\":1000}",
        "{\"holder\":\"H\",\"token\":7.5,\"ttl_ms\":1000,\"expires_in_ms\":1000}",
        "{\"holder\":\"H\",\"token\":9007199254740993,\"ttl_ms\":1000,\"expires_in_ms\":1000}",
        "{\"holder\":\"H\",\"token\":7,\"ttl_ms\":0,\"expires_in_ms\":1000}",
        "{\"holder\":\"H\",\"token\":7,\"ttl_ms\":9223372036854775807,\"expires_in_ms\":1}",
        "{\"holder\":\"H\",\"token\":7,\"ttl_ms\":1000,\"expires_in_ms\":-1}",
        "{\"holder\":\"another\",\"token\":7,\"ttl_ms\":1000,\"expires_in_ms\":1000}",
        "{\"holder\":\"H\",\"token\":7,\"token\":8,\"ttl_ms\":1000,\"expires_in_ms\":1000}"
      })
  void grantThatIsNoneIsRepeatedAndThenReleased(String body) throws Exception {
    AtomicInteger lies = new AtomicInteger(3);
    try (ScriptedServer server =
            new ScriptedServer(
                request -> {
                  if (!request.path().equals("/v1/acquire")) return obey(request);
                  if (lies.getAndDecrement() <= 0) return obey(request);
                  return Answer.of(200, body.replace("\"H\"", '"' + request.text("holder") + '"'));
                });
        LockdClient client = impatient().servers(server.address()).build()) {
      client.acquire("k").close();
      assertEquals(4, server.requests("/v1/acquire").size());
      assertEquals(1, server.requests("/v1/release").size());
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "HTTP/1.1 200 X\r\nContent-Length: 99999999\r\n\r\n{}",
        "HTTP/1.1 204 X\r\n\r\n",
        "HTTP/1.1 302 X\r\nLocation: /v1/other\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 500 X\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 409 X\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/9.9 nonsense\r\n\r\n",
        "granted\r\n\r\n",
        "HTTP/1.1 200 X\r\nContent-Length: 5\r\n\r\nhello"
      })
  void replyThatIsNoneIsNoAnswer(String reply) throws Exception {
    try (ScriptedServer server = new ScriptedServer(request -> Answer.raw(reply));
        LockdClient client =
            impatient().connectTimeout(Duration.ofMillis(700)).servers(server.address()).build()) {
      assertThrows(UnreachableException.class, () -> client.tryAcquire("k"));
      assertTrue(server.requests().stream().allMatch(each -> each.path().equals("/v1/acquire")));
    }
  }

  @Test
  void endlessReplyIsCutOff() throws Exception {
    String much = "HTTP/1.1 200 X\r\nContent-Length: 4000000\r\n\r\n" + " ".repeat(4_000_000);
    try (ScriptedServer server = new ScriptedServer(request -> Answer.raw(much));
        LockdClient client =
            impatient().connectTimeout(Duration.ofMillis(300)).servers(server.address()).build()) {
      var failure = assertThrows(UnreachableException.class, () -> client.tryAcquire("k"));
      assertTrue(failure.getMessage().contains("more than 1048576 bytes"), failure.getMessage());
    }
  }

  @Test
  void requestsHaveOnlyMembersThatTheServerKnows() throws Exception {
    try (ScriptedServer server = new ScriptedServer(ScriptedTest::obey);
        LockdClient client = impatient().servers(server.address()).name("me").build()) {
      HeldLock lock =
          client.acquire("k\"1", LockOptions.DEFAULT.waitAtMost(Duration.ofMillis(2500)));
      String holder = lock.holder();
      assertTrue(holder.matches("me/[0-9a-f]{16}"), holder);
      lock.renew(Duration.ofSeconds(9));
      lock.close();
      assertEquals(
          List.of(
              "{\"key\":\"k\\\"1\",\"holder\":\""
                  + holder
                  + "\",\"ttl_ms\":15000,\"wait_ms\":2500}",
              "{\"key\":\"k\\\"1\",\"holder\":\"" + holder + "\",\"token\":7,\"ttl_ms\":9000}",
              "{\"key\":\"k\\\"1\",\"holder\":\"" + holder + "\",\"token\":7}"),
          server.requests().stream().map(Request::body).toList());
    }
  }

  @Test
  void fenceOfLaterServersIsReadBeforeTheToken() throws Exception {
    try (ScriptedServer server =
            new ScriptedServer(
                request -> {
                  String reply = new String(obey(request).bytes());
                  String body = reply.substring(reply.indexOf("\r\n\r\n") + 4);
                  return Answer.of(
                      200, body.replace("{\"key\"", "{\"again\":false,\"fence\":9,\"key\""));
                });
        LockdClient client = impatient().servers(server.address()).build();
        HeldLock lock = client.acquire("k")) {
      assertEquals(9, lock.fence());
    }
  }

  @Test
  void refusalNamesTheHolderInHeldBy() throws Exception {
    String refusal =
        "{\"error\":\"held\",\"detail\":\"d\",\"held_by\":{\"holder\":\"ann\",\"fence\":3},"
            + "\"holders\":1,\"waiters\":4}";
    try (ScriptedServer server = new ScriptedServer(request -> Answer.of(409, refusal));
        LockdClient client = impatient().servers(server.address()).build()) {
      LockOptions aTry = LockOptions.DEFAULT.waitAtMost(Duration.ZERO);
      var failure = assertThrows(NotAcquiredException.class, () -> client.acquire("k", aTry));
      assertEquals("ann", failure.holder().orElseThrow());
      assertEquals(4, failure.waiters());
      assertEquals("k", failure.key());
    }
  }

  @Test
  void certaintyCountsFromWhenTheRequestWasSent() throws Exception {
    AtomicReference<Runnable> delay = new AtomicReference<>(() -> sleep(400));
    try (ScriptedServer server =
            new ScriptedServer(
                request -> {
                  if (request.path().equals("/v1/acquire")) delay.get().run();
                  return obey(request);
                });
        LockdClient client = LockdClient.connect(server.address())) {
      long before = System.nanoTime();
      try (HeldLock lock = client.acquire("k")) {
        long passed = System.nanoTime() - before;
        long most = TTL * 1_000_000 - 400_000_000;
        assertTrue(lock.remaining().toNanos() <= most, () -> "after " + passed + " ns");
      }
    }
  }

  @Test
  void lateConfirmationDoesNotReviveALock() throws Exception {
    AtomicLong begin = new AtomicLong(System.nanoTime());
    AtomicInteger late = new AtomicInteger();
    try (ScriptedServer server =
            new ScriptedServer(
                request -> {
                  if (!request.path().equals("/v1/renew")) return shortGrant(request);
                  long passed = System.nanoTime() - begin.get();
                  if (passed < 3_400_000_000L) return error(500, "scripted");
                  late.incrementAndGet();
                  sleep(900); // the reply to a renewal that was sent before the end comes after it
                  return shortGrant(request);
                });
        LockdClient client = LockdClient.connect(server.address())) {
      begin.set(System.nanoTime());
      HeldLock lock = client.acquire("k");
      LockLostException loss = lock.lost().get(40, TimeUnit.SECONDS);
      assertEquals(LockLostException.Cause.UNSURE, loss.why());
      Await.until("a late confirmation was sent", () -> late.get() > 0);
      sleep(1000);
      assertFalse(lock.isHeld());
      assertEquals(Duration.ZERO, lock.remaining());
      assertThrows(LockLostException.class, lock::check);
      assertThrows(LockLostException.class, lock::close);
    }
  }

  private static Answer shortGrant(Request request) {
    return request.path().equals("/v1/release") ? released(request) : grant(request, 7, SHORT_TTL);
  }

  @ParameterizedTest
  @ValueSource(strings = {"expired", "stale_token", "not_holder"})
  void lockIsLostAtOnceWhenTheServerSaysSo(String code) throws Exception {
    AtomicReference<LockLostException> reported = new AtomicReference<>();
    try (ScriptedServer server =
            new ScriptedServer(
                request ->
                    request.path().equals("/v1/renew") ? error(409, code) : shortGrant(request));
        LockdClient client = LockdClient.connect(server.address())) {
      long begin = System.nanoTime();
      HeldLock lock = client.acquire("k", LockOptions.DEFAULT.onLost(reported::set));
      Await.until("the loss is reported", () -> reported.get() != null);
      assertTrue(
          System.nanoTime() - begin >= 1_000_000_000L, "renewed before a third of the lease");
      assertEquals(LockLostException.Cause.REFUSED, reported.get().why());
      assertFalse(lock.isHeld());
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {401, 403, 429, 400, 503, 500})
  void refusalThatDoesNotSayGoneIsRepeatedUntilTheLeaseIsOver(int status) throws Exception {
    AtomicInteger refusals = new AtomicInteger();
    try (ScriptedServer server =
            new ScriptedServer(
                request -> {
                  if (!request.path().equals("/v1/renew")) return shortGrant(request);
                  refusals.incrementAndGet();
                  return error(status, "scripted");
                });
        LockdClient client = LockdClient.connect(server.address())) {
      long begin = System.nanoTime();
      HeldLock lock = client.acquire("k");
      Await.until("a renewal fails", () -> lock.lastError().isPresent() || !lock.isHeld());
      LockLostException loss = lock.lost().get(40, TimeUnit.SECONDS);
      assertTrue(
          System.nanoTime() - begin >= SHORT_TTL * 1_000_000, "lost before its lease was over");
      boolean isRejected = status == 401 || status == 403;
      assertEquals(
          isRejected ? LockLostException.Cause.UNAUTHORIZED : LockLostException.Cause.UNSURE,
          loss.why());
      assertTrue(refusals.get() > 0);
      assertTrue(loss.getCause() instanceof LockdException);
    }
  }

  @Test
  void grantThatArrivesLateIsRenewedBeforeItIsHandedOver() throws Exception {
    try (ScriptedServer server =
            new ScriptedServer(
                request -> {
                  if (request.path().equals("/v1/acquire")) sleep(1500);
                  return shortGrant(request);
                });
        LockdClient client = LockdClient.connect(server.address())) {
      HeldLock lock = client.acquire("k", LockOptions.DEFAULT.waitAtMost(Duration.ofSeconds(30)));
      assertEquals("/v1/renew", server.requests().get(1).path());
      lock.close();
    }
  }

  @Test
  void grantThatIsOverWhenItArrivesIsRequestedAgain() throws Exception {
    AtomicInteger renewals = new AtomicInteger();
    try (ScriptedServer server =
            new ScriptedServer(
                request -> {
                  if (request.path().equals("/v1/renew") && renewals.getAndIncrement() == 0) {
                    return error(409, "expired");
                  }
                  if (request.path().equals("/v1/acquire") && renewals.get() == 0) sleep(1500);
                  return shortGrant(request);
                });
        LockdClient client = LockdClient.connect(server.address())) {
      HeldLock lock = client.acquire("k", LockOptions.DEFAULT.waitAtMost(Duration.ofSeconds(30)));
      assertTrue(lock.queuedAgain());
      lock.close();
    }
  }

  @Test
  void waitContinuesWhenNothingConfirmsAGrantThatArrivedLate() throws Exception {
    AtomicInteger asks = new AtomicInteger();
    try (ScriptedServer server =
            new ScriptedServer(
                request -> {
                  if (request.path().equals("/v1/renew")) return error(500, "scripted");
                  if (!request.path().equals("/v1/acquire")) return released(request);
                  if (asks.getAndIncrement() == 0) sleep(500);
                  return grant(request, 7, asks.get() == 1 ? 1000 : TTL);
                });
        LockdClient client = LockdClient.connect(server.address());
        HeldLock lock = client.acquire("k")) {
      assertEquals(2, asks.get());
      assertTrue(lock.isHeld());
    }
  }

  @Test
  void interruptedAcquireReleasesTheGrantWhoseReplyWasLost() throws Exception {
    CompletableFuture<Void> asked = new CompletableFuture<>();
    AtomicInteger acquires = new AtomicInteger();
    try (ScriptedServer server =
            new ScriptedServer(
                request -> {
                  boolean isFirst =
                      request.path().equals("/v1/acquire") && acquires.getAndIncrement() == 0;
                  if (!isFirst) return obey(request);
                  asked.complete(null);
                  return obey(request).stalledAt(0); // granted, and the reply never arrives
                });
        LockdClient client = LockdClient.connect(server.address())) {
      Thread self = Thread.currentThread();
      asked.thenRun(self::interrupt);
      assertThrows(InterruptedException.class, () -> client.acquire("k"));
      Await.until("the grant is released", () -> server.requests("/v1/release").size() == 1);
      List<Request> asks = server.requests("/v1/acquire");
      assertEquals(asks.get(0).text("holder"), asks.get(1).text("holder"));
      assertFalse(asks.get(1).body().contains("wait_ms"));
      assertEquals(
          asks.get(0).text("holder"), server.requests("/v1/release").get(0).text("holder"));
    }
  }

  @Test
  void cancelledFutureAndClosedClientReleaseTheGrantWhoseReplyWasLost() throws Exception {
    for (boolean isClosed : new boolean[] {false, true}) {
      CompletableFuture<Void> asked = new CompletableFuture<>();
      AtomicInteger acquires = new AtomicInteger();
      try (ScriptedServer server =
              new ScriptedServer(
                  request -> {
                    boolean isFirst =
                        request.path().equals("/v1/acquire") && acquires.getAndIncrement() == 0;
                    if (!isFirst) return obey(request);
                    asked.complete(null);
                    return obey(request).stalledAt(0);
                  });
          LockdClient client = LockdClient.connect(server.address())) {
        CompletableFuture<HeldLock> lock = client.acquireAsync("k", LockOptions.DEFAULT);
        asked.get(40, TimeUnit.SECONDS);
        if (isClosed) client.close();
        else lock.cancel(true);
        assertThrows(CancellationException.class, lock::join);
        Await.until("the grant is released", () -> server.requests("/v1/release").size() == 1);
      }
    }
  }

  @Test
  void releaseIsRepeatedUntilItIsAnswered() throws Exception {
    AtomicInteger releases = new AtomicInteger();
    try (ScriptedServer server =
            new ScriptedServer(
                request -> {
                  if (!request.path().equals("/v1/release")) return obey(request);
                  // The first is executed, and its reply is lost; the second finds nothing.
                  if (releases.getAndIncrement() == 0) return released(request).cutAt(20);
                  return error(409, "expired");
                });
        LockdClient client = LockdClient.connect(server.address())) {
      client.acquire("k").release();
      assertEquals(2, releases.get());
    }
  }

  @Test
  void releaseOfALockThatIsGoneReportsTheLoss() throws Exception {
    try (ScriptedServer server =
            new ScriptedServer(
                request ->
                    request.path().equals("/v1/release") ? error(409, "expired") : obey(request));
        LockdClient client = LockdClient.connect(server.address())) {
      HeldLock lock = client.acquire("k");
      assertThrows(LockLostException.class, lock::release);
    }
  }

  @Test
  void clusterIsSearchedForItsLeaderAndNoOtherAddressIsAsked() throws Exception {
    AtomicReference<String> named = new AtomicReference<>();
    ScriptedServer.Script follower =
        request -> error(503, "not_leader", "X-Lockd-Leader-Http: " + named.get());
    try (ScriptedServer stranger = new ScriptedServer(ScriptedTest::obey);
        ScriptedServer first = new ScriptedServer(follower);
        ScriptedServer second = new ScriptedServer(follower);
        ScriptedServer leader = new ScriptedServer(ScriptedTest::obey);
        LockdClient client =
            impatient().cluster(first.address(), second.address(), leader.address()).build()) {
      named.set(leader.address());
      client.tryAcquire("k").orElseThrow().close();
      assertEquals(1, first.requests().size());
      assertEquals(0, second.requests().size());
      named.set(stranger.address());
      leader.script(follower);
      second.script(ScriptedTest::obey);
      try (HeldLock lock =
          client.acquire("k", LockOptions.DEFAULT.waitAtMost(Duration.ofSeconds(30)))) {
        assertEquals(7, lock.fence());
      }
      assertEquals(0, stranger.requests().size());
    }
  }

  @Test
  void lockIsRenewedAtTheNextLeaderWhenTheFirstStalls() throws Exception {
    try (ScriptedServer first = new ScriptedServer(request -> grant(request, 7, SHORT_TTL));
        ScriptedServer second =
            new ScriptedServer(
                request ->
                    request.path().equals("/v1/release")
                        ? released(request)
                        : grant(request, 7, SHORT_TTL));
        LockdClient client =
            LockdClient.builder().cluster(first.address(), second.address()).build()) {
      HeldLock lock =
          client
              .tryAcquire("k", LockOptions.DEFAULT.lease(Duration.ofMillis(SHORT_TTL)))
              .orElseThrow();
      first.script(request -> grant(request, 7, SHORT_TTL).stalledAt(10));
      Await.until("the second renews", () -> !second.requests("/v1/renew").isEmpty());
      assertTrue(lock.isHeld());
      lock.release();
    }
  }

  @Test
  void renewalOfAnotherFenceIsNoConfirmation() throws Exception {
    try (ScriptedServer server =
            new ScriptedServer(
                request ->
                    request.path().equals("/v1/renew")
                        ? grant(request, 8, SHORT_TTL)
                        : shortGrant(request));
        LockdClient client = LockdClient.connect(server.address())) {
      HeldLock lock = client.acquire("k");
      assertEquals(LockLostException.Cause.UNSURE, lock.lost().get(40, TimeUnit.SECONDS).why());
    }
  }

  @Test
  void waitThatTheServerCutsIsContinued() throws Exception {
    AtomicInteger asks = new AtomicInteger();
    try (ScriptedServer server =
            new ScriptedServer(
                request ->
                    request.path().equals("/v1/acquire") && asks.getAndIncrement() < 3
                        ? error(409, "wait_timeout")
                        : obey(request));
        LockdClient client = LockdClient.connect(server.address());
        HeldLock lock = client.acquire("k")) {
      assertTrue(lock.queuedAgain());
      assertEquals(4, asks.get());
    }
  }

  @Test
  void maxHoldEndsRenewalsAndTheLockEndsWithItsLease() throws Exception {
    try (ScriptedServer server = new ScriptedServer(ScriptedTest::shortGrant);
        LockdClient client = LockdClient.connect(server.address())) {
      long begin = System.nanoTime();
      HeldLock lock = client.acquire("k", LockOptions.DEFAULT.maxHold(Duration.ofMillis(2000)));
      LockLostException loss = lock.lost().get(40, TimeUnit.SECONDS);
      assertEquals(LockLostException.Cause.MAX_HOLD, loss.why());
      assertTrue(
          System.nanoTime() - begin >= SHORT_TTL * 1_000_000, "lost before its lease was over");
    }
  }

  private static void sleep(long ms) {
    try {
      Thread.sleep(ms);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
