package lockd.examples;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import lockd.HeldLock;
import lockd.LeaderElection;
import lockd.LockItem;
import lockd.LockOptions;
import lockd.LockdClient;
import lockd.NotAcquiredException;

/** Everything that a client can do, one thing after the other. */
public final class Tour {
  private Tour() {}

  public static void main(String[] arguments) throws Exception {
    try (var client = LockdClient.builder().servers(arguments[0]).name("tour").build()) {
      options(client);
      asynchronous(client);
      semaphore(client);
      shared(client);
      set(client);
      election(client);
    }
    System.out.println("done");
  }

  private static void options(LockdClient client) throws InterruptedException {
    LockOptions options =
        LockOptions.DEFAULT
            .waitAtMost(Duration.ofSeconds(5))
            .lease(Duration.ofSeconds(30))
            .maxHold(Duration.ofMinutes(10))
            .note("invoice run")
            .onLost(loss -> System.err.println(loss.getMessage()));
    HeldLock lock = client.acquire("invoice/7", options);
    System.out.println(lock.key() + " " + lock.remaining().toSeconds() + " s " + lock.isHeld());

    try {
      client.acquire("invoice/7", LockOptions.DEFAULT.waitAtMost(Duration.ZERO));
    } catch (NotAcquiredException busy) {
      System.out.println(busy.holder().orElse("unknown") + ", waiters: " + busy.waiters());
    }
    lock.release();
  }

  private static void asynchronous(LockdClient client) {
    CompletableFuture<Long> fence =
        client
            .acquireAsync("invoice/8", LockOptions.DEFAULT)
            .thenApply(
                lock -> {
                  try (lock) {
                    return lock.fence();
                  }
                });
    System.out.println("fence " + fence.join());
  }

  private static void semaphore(LockdClient client) throws InterruptedException {
    LockOptions printer = LockOptions.DEFAULT.semaphore(2);
    try (var first = client.acquire("printers", printer);
        var second = client.acquire("printers", printer)) {
      System.out.println("a third: " + client.tryAcquire("printers", printer).isPresent());
    }
    try (var four = client.acquire("gpus", LockOptions.DEFAULT.semaphore(8, 4))) {
      System.out.println("a job of four under fence " + four.fence());
    }
  }

  private static void shared(LockdClient client) throws InterruptedException {
    try (var one = client.acquire("report", LockOptions.DEFAULT.shared());
        var two = client.acquire("report", LockOptions.DEFAULT.shared())) {
      System.out.println("a writer: " + client.tryAcquire("report").isPresent());
    }
  }

  private static void set(LockdClient client) throws InterruptedException {
    var wanted =
        List.of(
            LockItem.lock("seat-12"), LockItem.shared("prices"), LockItem.semaphore("cores", 8, 4));
    try (var all = client.acquireAll(wanted, LockOptions.DEFAULT)) {
      System.out.println(all.keys() + " under one fence: " + (all.fence() > 0));
    }
  }

  private static void election(LockdClient client) throws InterruptedException {
    LeaderElection.Body body =
        lock -> {
          while (true) {
            System.out.println("leading under fence " + lock.fence());
            Thread.sleep(1000); // interrupted when the lock is lost or the election is closed
          }
        };
    try (var election = client.elect("leader/reports", LockOptions.DEFAULT, body)) {
      while (!election.isLeader()) Thread.sleep(10);
    }
  }
}
