package lockd;

import java.time.Duration;

/** A process that holds a lock and prints the times at which it believed in it. */
final class StoppedHolder {
  private StoppedHolder() {}

  public static void main(String[] arguments) throws InterruptedException {
    LockOptions options = LockOptions.DEFAULT.lease(Duration.ofMillis(1500));
    try (LockdClient client = LockdClient.connect(arguments[0]);
        HeldLock lock = client.acquire("stopped", options)) {
      while (true) {
        long at = System.nanoTime(); // before the question, so a belief is never too long
        if (!lock.isHeld()) break;
        System.out.println(at);
        Thread.sleep(5);
      }
    } catch (LockLostException e) {
      System.out.println("lost");
    }
  }
}
