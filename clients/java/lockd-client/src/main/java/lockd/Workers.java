package lockd;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Workers: the threads on which a client renews, releases, calls back and executes asynchronous
 * calls. They are virtual where the runtime has virtual threads (Java 21), else daemon threads.
 */
final class Workers {
  private Workers() {}

  static ExecutorService create() {
    try {
      return (ExecutorService)
          Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
    } catch (ReflectiveOperationException e) {
      return Executors.newCachedThreadPool(daemons("lockd-worker-"));
    }
  }

  static ThreadFactory daemons(String prefix) {
    AtomicInteger count = new AtomicInteger();
    return task -> {
      Thread thread = new Thread(task, prefix + count.incrementAndGet());
      thread.setDaemon(true);
      return thread;
    };
  }
}
