package lockd.testing;

import java.util.concurrent.Callable;

/** Await: waits for what another thread or process brings about, for a generous time. */
public final class Await {
  private static final long MS_MAX = 40_000;

  private Await() {}

  /** Returns when the condition is true; fails the test after 40 s. */
  public static void until(String what, Callable<Boolean> condition) throws Exception {
    long end = System.nanoTime() + MS_MAX * 1_000_000;
    while (!condition.call()) {
      if (System.nanoTime() > end) throw new AssertionError("waited in vain until " + what);
      Thread.sleep(10);
    }
  }
}
