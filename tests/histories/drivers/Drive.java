import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.logging.LogManager;
import lockd.HeldLock;
import lockd.LockOptions;
import lockd.LockdClient;
import lockd.LockdException;
import lockd.NotAcquiredException;

/** Drives the client for Java, over HTTP. README.md says what a driver does. */
public final class Drive {
  private static final int WORKERS = 32;
  private static final long ASLEEP = Long.parseLong(System.getenv("HISTORIES_ASLEEP_NS"));
  private static final PrintStream OUT =
      new PrintStream(
          new java.io.FileOutputStream(java.io.FileDescriptor.out), false, StandardCharsets.UTF_8);
  private static volatile boolean isStopping;

  private final LockdClient client;
  private final long proc;
  private final Random chance;

  private Drive(LockdClient client, long proc, long seed) {
    this.client = client;
    this.proc = proc;
    this.chance = new Random(seed);
  }

  public static void main(String[] arguments) throws IOException, InterruptedException {
    long proc = Long.parseLong(arguments[1]);
    long seed = Long.parseLong(arguments[2]);
    LogManager.getLogManager().reset(); // broken connections are no news here
    List<Thread> workers = new ArrayList<>();
    try (LockdClient client =
        LockdClient.connect("127.0.0.1:" + System.getenv("HISTORIES_HTTP_PORT"))) {
      for (int i = 0; i < WORKERS; i++) {
        Thread worker = new Thread(new Drive(client, proc + i, seed + i)::work);
        worker.start();
        workers.add(worker);
      }
      while (System.in.read() >= 0) {}
      isStopping = true;
      for (Thread each : workers) each.join();
    }
    OUT.flush();
  }

  // System.nanoTime is CLOCK_MONOTONIC, which is behind by the time for which the machine slept.
  private static long now() {
    return System.nanoTime() + ASLEEP;
  }

  private void work() {
    try {
      while (!isStopping) {
        holdOne();
        Thread.sleep(5 + chance.nextInt(20));
      }
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private void holdOne() throws InterruptedException {
    boolean isLock = chance.nextDouble() < 0.8;
    String key = (isLock ? "lock-" : "sem-") + chance.nextInt(isLock ? 160 : 20);
    int ttl = 1 + chance.nextInt(3);
    int timeout = chance.nextBoolean() ? 0 : 2;
    String request =
        String.format(
            Locale.ROOT,
            "{\"proc\":%d,\"key\":\"%s\",\"kind\":\"%s\",\"limit\":%d,\"ttl\":%d,\"timeout\":%d,"
                + "\"via\":\"lib\",\"srv\":\"w\",\"life\":1",
            proc,
            key,
            isLock ? "lock" : "sem",
            isLock ? 1 : 2,
            ttl,
            timeout);
    LockOptions options =
        LockOptions.DEFAULT.waitAtMost(Duration.ofSeconds(timeout)).lease(Duration.ofSeconds(ttl));
    long call = now();
    HeldLock held;
    try {
      held = client.acquire(key, isLock ? options : options.semaphore(2));
    } catch (NotAcquiredException e) {
      note(request, "acquire", call, "ret", "error:refused");
      return;
    } catch (LockdException e) {
      note(request, "acquire", call, "gave_up", "info");
      return;
    }
    long granted = now();
    request += ",\"fence\":" + held.fence();
    note(request, "acquire", call, "ret", "ok", granted);
    long believed = keep(request, held, granted);
    release(request, held, believed > 0 ? believed : granted);
  }

  private long keep(String request, HeldLock held, long granted) throws InterruptedException {
    long until = granted + (long) ((0.5 + 3.5 * chance.nextDouble()) * 1e9);
    boolean isLong = chance.nextDouble() < 0.02;
    long believed = 0; // not even once, if the lease was over when the answer came
    while (true) {
      long at = now();
      if (!held.isHeld()) break;
      believed = at;
      if (!isLong || at >= until) break;
      Thread.sleep(20);
    }
    if (believed > 0) note(request, "believe", granted, "ret", "ok", believed);
    return believed;
  }

  // A client that loses a hold releases it by itself: at any time since it last believed in it.
  private static void release(String request, HeldLock held, long believed) {
    long call = now();
    try {
      held.release();
      note(request, "release", call, "ret", "ok");
    } catch (LockdException e) {
      note(request, "release", believed, "gave_up", "info");
    }
  }

  private static void note(String request, String what, long call, String end, String result) {
    note(request, what, call, end, result, now());
  }

  private static void note(
      String request, String what, long call, String end, String result, long at) {
    String line =
        request
            + ",\"f\":\""
            + what
            + "\",\"call\":"
            + call
            + ",\""
            + end
            + "\":"
            + at
            + ",\"res\":\""
            + result
            + "\"}\n";
    synchronized (OUT) {
      OUT.print(line);
    }
  }
}
