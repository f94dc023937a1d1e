package lockd.shedlock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import lockd.LockdClient;
import lockd.testing.Await;
import lockd.testing.LockdServer;
import net.javacrumbs.shedlock.core.ExtensibleLockProvider;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.support.LockException;
import net.javacrumbs.shedlock.test.support.AbstractExtensibleLockProviderIntegrationTest;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** ShedLock's published tests of providers, and what they do not ask. One server for all. */
@Execution(ExecutionMode.SAME_THREAD) // some of the published tests lock the same name
class LockdLockProviderTest extends AbstractExtensibleLockProviderIntegrationTest {
  private static LockdServer server;
  private static LockdClient client;

  @BeforeAll
  static void start() throws Exception {
    server = LockdServer.withJournal();
    client = LockdClient.connect(server.address());
  }

  @AfterAll
  static void stop() throws Exception {
    client.close();
    server.close();
  }

  @Override
  protected ExtensibleLockProvider getLockProvider() {
    return new LockdLockProvider(client);
  }

  @Override
  protected void assertUnlocked(String name) {
    assertFalse(isHeld(name), name);
  }

  @Override
  protected void assertLocked(String name) {
    assertTrue(isHeld(name), name);
  }

  private static boolean isHeld(String name) {
    try {
      return client.fence("shedlock/" + name).isHeld();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private static LockConfiguration config(String name, long mostMs, long leastMs) {
    return new LockConfiguration(
        Instant.now(), name, Duration.ofMillis(mostMs), Duration.ofMillis(leastMs));
  }

  @Test
  void lockAtLeastForIsKeptAfterThisClientIsClosed() throws Exception {
    long begin;
    try (LockdClient other = LockdClient.connect(server.address())) {
      begin = System.nanoTime();
      new LockdLockProvider(other).lock(config("at-least", 60_000, 1000)).orElseThrow().unlock();
    }
    assertEquals(Optional.empty(), getLockProvider().lock(config("at-least", 1000, 0)));
    Await.until("the lock has ended", () -> !isHeld("at-least"));
    assertTrue(System.nanoTime() - begin >= 1_000_000_000L, "it ended too early");
  }

  @Test
  void lockIsHeldThroughAKilledServerWithAJournal() throws Exception {
    SimpleLock lock = getLockProvider().lock(config("restart", 60_000, 0)).orElseThrow();
    server.kill();
    server.start();
    assertEquals(Optional.empty(), getLockProvider().lock(config("restart", 1000, 0)));
    lock.unlock();
    assertUnlocked("restart");
  }

  @Test
  void unlockOfALockThatIsOverDoesNotThrow() throws Exception {
    SimpleLock lock = getLockProvider().lock(config("over", 50, 0)).orElseThrow();
    Await.until("the lease is over", () -> !isHeld("over"));
    SimpleLock next = getLockProvider().lock(config("over", 60_000, 0)).orElseThrow();
    lock.unlock();
    assertLocked("over");
    next.unlock();
  }

  @Test
  void serverThatCannotBeReachedIsAnErrorAndNotABusyLock() {
    try (LockdClient lonely =
        LockdClient.builder()
            .servers("127.0.0.1:1")
            .connectTimeout(Duration.ofMillis(300))
            .build()) {
      LockdLockProvider provider = new LockdLockProvider(lonely);
      assertThrows(LockException.class, () -> provider.lock(config("unreachable", 1000, 0)));
    }
  }
}
