package lockd.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.time.Duration;
import java.util.ConcurrentModificationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Lock;
import lockd.LockOptions;
import lockd.LockdClient;
import lockd.testing.Await;
import lockd.testing.LockdServer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.integration.leader.Context;
import org.springframework.integration.leader.DefaultCandidate;
import org.springframework.integration.leader.event.LeaderEventPublisher;
import org.springframework.integration.support.leader.LockRegistryLeaderInitiator;

/**
 * The cases of Spring Integration's own tests of lock registries (JdbcLockRegistryTests,
 * RedisLockRegistryTests, LockRegistryLeaderInitiatorTests), which are not published as a jar, for
 * this registry; and the loss of a lock.
 */
class LockRegistryTest {
  private static LockdServer server;
  private static LockdClient client;
  private static LockdClient otherClient;

  private final LockdLockRegistry registry = new LockdLockRegistry(client);
  private final LockdLockRegistry other = new LockdLockRegistry(otherClient);

  @BeforeAll
  static void start() throws Exception {
    server = LockdServer.withJournal();
    client = LockdClient.builder().servers(server.address()).lease(Duration.ofSeconds(3)).build();
    otherClient = LockdClient.connect(server.address());
  }

  @AfterAll
  static void stop() throws Exception {
    client.close();
    otherClient.close();
    server.close();
  }

  private static LockdLockRegistry expiring(long leaseMs) {
    LockOptions options = LockOptions.DEFAULT.lease(Duration.ofMillis(leaseMs)).withoutRenewal();
    return new LockdLockRegistry(client, "registry/", options);
  }

  private interface Action {
    void run() throws Exception;
  }

  /** Runs it on another thread, and returns what it throws. */
  private static Throwable elsewhere(Action action) throws Exception {
    CompletableFuture<Throwable> thrown = new CompletableFuture<>();
    new Thread(
            () -> {
              try {
                action.run();
                thrown.complete(null);
              } catch (Throwable e) {
                thrown.complete(e);
              }
            })
        .start();
    return thrown.get(60, TimeUnit.SECONDS);
  }

  @Test
  void lockIsHeldAtTheServerWhileAThreadOwnsIt() throws Exception {
    LockdLock lock = registry.obtain("plain");
    long fence = 0;
    for (int i = 0; i < 5; i++) {
      lock.lock();
      assertThat(server.isHeld("registry/plain")).isTrue();
      assertThat(lock.fence()).isGreaterThan(fence);
      fence = lock.fence();
      lock.unlock();
      assertThat(server.isHeld("registry/plain")).isFalse();
      lock.lockInterruptibly();
      lock.unlock();
    }
    registry.expireUnusedOlderThan(-10_000);
    assertThat(registry.obtain("plain")).isNotSameAs(lock);
  }

  @Test
  void lockIsReentrant() throws Exception {
    Lock lock = registry.obtain("reentrant");
    lock.lock();
    Lock same = registry.obtain("reentrant");
    assertThat(same).isSameAs(lock);
    same.lock();
    assertThat(same.tryLock()).isTrue();
    assertThat(same.tryLock(1, TimeUnit.SECONDS)).isTrue();
    for (int i = 0; i < 3; i++) same.unlock();
    assertThat(server.isHeld("registry/reentrant")).isTrue();
    lock.unlock();
    assertThat(server.isHeld("registry/reentrant")).isFalse();
  }

  @Test
  void lockThatExpiredIsTakenAgainByItsThread() throws Exception {
    LockdLockRegistry expiring = expiring(200);
    LockdLock lock = expiring.obtain("again");
    assertThat(lock.tryLock()).isTrue();
    Await.until("the lease is over", () -> !lock.isHeld());
    assertThat(lock.tryLock(30, TimeUnit.SECONDS)).isTrue();
    lock.unlock();
    Await.until("the lease is over", () -> !lock.isHeld());
    assertThatExceptionOfType(ConcurrentModificationException.class).isThrownBy(lock::unlock);
  }

  @Test
  void lockThatAnotherProcessTookIsNotOwnedAnyMore() throws Exception {
    LockdLockRegistry expiring = expiring(200);
    LockdLock lock = expiring.obtain("taken");
    lock.lock();
    Lock theirs = other.obtain("taken");
    theirs.lock();
    assertThat(lock.tryLock()).isFalse();
    assertThatExceptionOfType(IllegalMonitorStateException.class).isThrownBy(lock::unlock);
    theirs.unlock();
    assertThat(lock.tryLock(30, TimeUnit.SECONDS)).isTrue();
    lock.unlock();
  }

  @Test
  void unlockAfterAnotherProcessTookItReportsTheLoss() throws Exception {
    Lock lock = expiring(200).obtain("compromised");
    lock.lock();
    Lock theirs = other.obtain("compromised");
    theirs.lock();
    assertThatExceptionOfType(ConcurrentModificationException.class).isThrownBy(lock::unlock);
    theirs.unlock();
    lock.lock();
    lock.unlock();
  }

  @Test
  void locksOfTwoKeysAreIndependent() {
    Lock one = registry.obtain("foo");
    Lock two = registry.obtain("bar");
    one.lock();
    two.lock();
    assertThat(two).isNotSameAs(one);
    two.unlock();
    one.unlock();
  }

  @Test
  void secondThreadDoesNotGetTheLockAndMayNotUnlockIt() throws Exception {
    Lock lock = registry.obtain("threads");
    lock.lockInterruptibly();
    AtomicInteger got = new AtomicInteger();
    Throwable thrown =
        elsewhere(
            () -> {
              if (lock.tryLock(200, TimeUnit.MILLISECONDS)) got.incrementAndGet();
              if (lock.tryLock()) got.incrementAndGet();
              lock.unlock();
            });
    assertThat(thrown).isInstanceOf(IllegalMonitorStateException.class).hasMessageContaining("own");
    assertThat(got).hasValue(0);
    lock.unlock();
  }

  @Test
  void twoRegistriesExcludeEachOtherInTurn() throws Exception {
    for (int i = 0; i < 20; i++) {
      Lock first = registry.obtain("two");
      Lock second = other.obtain("two");
      first.lockInterruptibly();
      assertThat(second.tryLock()).isFalse();
      CountDownLatch begun = new CountDownLatch(1);
      AtomicInteger order = new AtomicInteger();
      Thread waiter =
          new Thread(
              () -> {
                begun.countDown();
                second.lock();
                order.compareAndSet(1, 2);
                second.unlock();
              });
      waiter.start();
      begun.await();
      order.set(1);
      first.unlock();
      waiter.join(60_000);
      assertThat(order).hasValue(2);
    }
  }

  @Test
  void tryLockOfALockThatAnotherProcessHasEndsWithItsTime() throws Exception {
    Lock theirs = other.obtain("busy");
    theirs.lock();
    long begin = System.nanoTime();
    assertThat(registry.obtain("busy").tryLock(300, TimeUnit.MILLISECONDS)).isFalse();
    assertThat(System.nanoTime() - begin).isGreaterThanOrEqualTo(300_000_000L);
    assertThatExceptionOfType(TimeoutException.class)
        .isThrownBy(() -> registry.executeLocked("busy", Duration.ofMillis(50), () -> {}));
    theirs.unlock();
    assertThat(registry.<String, RuntimeException>executeLocked("busy", () -> "done"))
        .isEqualTo("done");
  }

  @Test
  void interruptEndsLockInterruptiblyAndNotLock() throws Exception {
    Lock theirs = other.obtain("interrupted");
    theirs.lock();
    Throwable thrown =
        elsewhere(
            () -> {
              Thread.currentThread().interrupt();
              registry.obtain("interrupted").lockInterruptibly();
            });
    assertThat(thrown).isInstanceOf(InterruptedException.class);
    AtomicInteger flag = new AtomicInteger();
    Thread waiter =
        new Thread(
            () -> {
              Lock lock = registry.obtain("interrupted");
              lock.lock();
              flag.set(Thread.currentThread().isInterrupted() ? 1 : 2);
              lock.unlock();
            });
    waiter.start();
    Await.until("it waits", () -> server.waiters("registry/interrupted") == 1);
    waiter.interrupt();
    assertThat(server.waiters("registry/interrupted")).isEqualTo(1);
    theirs.unlock();
    waiter.join(60_000);
    assertThat(flag.get()).isPositive();
  }

  @Test
  void renewLockNeedsTheOwner() throws Exception {
    Lock lock = registry.obtain("renewed");
    assertThatExceptionOfType(IllegalMonitorStateException.class)
        .isThrownBy(() -> registry.renewLock("renewed"));
    assertThatExceptionOfType(IllegalStateException.class)
        .isThrownBy(() -> registry.renewLock("never obtained"));
    lock.lock();
    registry.renewLock("renewed");
    registry.renewLock("renewed", Duration.ofSeconds(20));
    server.revoke("registry/renewed");
    assertThatExceptionOfType(IllegalStateException.class)
        .isThrownBy(() -> registry.renewLock("renewed"));
    assertThatExceptionOfType(ConcurrentModificationException.class).isThrownBy(lock::unlock);
  }

  @Test
  void renewedLockOutlivesItsLease() throws Exception {
    LockdLock lock = expiring(500).obtain("longer");
    assertThat(lock.tryLock()).isTrue();
    lock.renew(Duration.ofSeconds(30));
    Thread.sleep(700);
    assertThat(other.obtain("longer").tryLock()).isFalse();
    lock.unlock();
  }

  @Test
  void lockThatIsHeldIsNotExpiredFromTheRegistry() {
    Lock lock = registry.obtain("kept");
    lock.lock();
    registry.expireUnusedOlderThan(-10_000);
    assertThat(registry.obtain("kept")).isSameAs(lock);
    lock.unlock();
  }

  private static final class Events implements LeaderEventPublisher {
    final CountDownLatch granted = new CountDownLatch(1);
    final CountDownLatch revoked = new CountDownLatch(1);
    final CountDownLatch failed = new CountDownLatch(1);

    @Override
    public void publishOnGranted(Object source, Context context, String role) {
      granted.countDown();
    }

    @Override
    public void publishOnRevoked(Object source, Context context, String role) {
      revoked.countDown();
    }

    @Override
    public void publishOnFailedToAcquire(Object source, Context context, String role) {
      failed.countDown();
    }
  }

  private static LockRegistryLeaderInitiator initiator(
      LockdLockRegistry registry, String role, Events events) {
    LockRegistryLeaderInitiator initiator =
        new LockRegistryLeaderInitiator(registry, new DefaultCandidate(role + registry, role));
    initiator.setHeartBeatMillis(100);
    initiator.setBusyWaitMillis(20);
    initiator.setPublishFailedEvents(true);
    initiator.setLeaderEventPublisher(events);
    return initiator;
  }

  private static void await(CountDownLatch latch) throws InterruptedException {
    assertThat(latch.await(40, TimeUnit.SECONDS)).isTrue();
  }

  @Test
  void initiatorLeadsUntilItStopsAndThenTheOtherLeads() throws Exception {
    Events ours = new Events();
    Events theirs = new Events();
    LockRegistryLeaderInitiator first = initiator(registry, "role", ours);
    LockRegistryLeaderInitiator second = initiator(other, "role", theirs);
    first.start();
    await(ours.granted);
    assertThat(first.getContext().isLeader()).isTrue();
    second.start();
    await(theirs.failed);
    assertThat(second.getContext().isLeader()).isFalse();
    first.stop();
    await(ours.revoked);
    await(theirs.granted);
    assertThat(second.getContext().isLeader()).isTrue();
    second.stop();
    await(theirs.revoked);
  }

  @Test
  void initiatorThatYieldsIsRevoked() throws Exception {
    Events events = new Events();
    LockRegistryLeaderInitiator initiator = initiator(registry, "yielding", events);
    initiator.start();
    await(events.granted);
    initiator.getContext().yield();
    await(events.revoked);
    initiator.stop();
  }

  @Test
  void leaderIsRevokedWhenAnOperatorReleasesItsLock() throws Exception {
    Events ours = new Events();
    Events theirs = new Events();
    LockRegistryLeaderInitiator first = initiator(registry, "revoked", ours);
    LockRegistryLeaderInitiator second = initiator(other, "revoked", theirs);
    first.start();
    await(ours.granted);
    second.start();
    Await.until("the second waits", () -> server.waiters("registry/revoked") == 1);
    server.revoke("registry/revoked");
    await(theirs.granted);
    await(ours.revoked);
    second.stop();
    first.stop();
  }

  @Test
  void leaderLeadsThroughAKilledServer() throws Exception {
    try (LockdServer mortal = LockdServer.withJournal();
        LockdClient mine = LockdClient.connect(mortal.address())) {
      Events events = new Events();
      LockRegistryLeaderInitiator leader =
          initiator(new LockdLockRegistry(mine), "surviving", events);
      leader.start();
      await(events.granted);
      mortal.kill();
      Thread.sleep(500);
      mortal.start();
      Thread.sleep(500);
      assertThat(leader.getContext().isLeader()).isTrue();
      assertThat(events.revoked.getCount()).isEqualTo(1);
      leader.stop();
      Await.until("its thread has unlocked", () -> !mortal.isHeld("registry/surviving"));
    }
  }
}
