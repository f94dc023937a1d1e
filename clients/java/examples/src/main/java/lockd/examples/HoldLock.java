package lockd.examples;

import java.time.Duration;
import lockd.LockLostException;
import lockd.LockOptions;
import lockd.LockdClient;
import lockd.NotAcquiredException;

/** Does a job that only one process may do at a time. */
public final class HoldLock {
  private HoldLock() {}

  public static void main(String[] arguments) throws InterruptedException {
    String server = arguments.length > 0 ? arguments[0] : "127.0.0.1:8080";
    // Wait in the queue for up to ten seconds. From then on the lock renews itself.
    LockOptions options =
        LockOptions.DEFAULT.waitAtMost(Duration.ofSeconds(10)).lease(Duration.ofSeconds(30));
    try (var client = LockdClient.connect(server);
        var lock = client.acquire("my-job", options)) {
      for (int step = 1; step <= 3; step++) {
        // Before everything that cannot be undone: throws if the lock is lost.
        lock.check();
        // The resource rejects a fence that is smaller than the largest it has seen.
        System.out.println("step " + step + " under fence " + lock.fence());
      }
    } catch (NotAcquiredException busy) {
      System.out.println("not now: " + busy.getMessage());
    } catch (LockLostException lost) {
      System.out.println("lost: " + lost.getMessage());
    }
  }
}
