package lockd;

import java.io.FileInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/**
 * Clock: nanoseconds that never go back and count the time for which the machine was suspended.
 *
 * <p>{@code System.nanoTime} stands still during suspend on Linux and macOS, and Java offers no
 * other monotonic clock. A second clock that counts suspend therefore corrects it: on Linux the
 * first number of {@code /proc/uptime} (CLOCK_BOOTTIME, in hundredths of a second), elsewhere the
 * wall clock. When the second clock has advanced further than the first, the difference is added.
 * The result may be late by 20 ms after a suspend, and is never early by more than that. A wall
 * clock that is set forward ends leases early; one that is set back changes nothing.
 */
final class Clock {
  static final Clock SYSTEM = system();

  private static final long RESOLUTION = 10_000_000;

  private final LongSupplier monotonic;
  private final LongSupplier counting; // counts suspend, too
  private final long begin;
  private final AtomicLong suspended = new AtomicLong();

  Clock(LongSupplier monotonic, LongSupplier counting) {
    this.monotonic = monotonic;
    this.counting = counting;
    this.begin = difference();
  }

  // A thread that is stopped between two readings must not seem to be a machine that was suspended.
  private long difference() {
    long best = 0;
    long least = Long.MAX_VALUE;
    for (int i = 0; i < 5; i++) {
      long before = monotonic.getAsLong();
      long other = counting.getAsLong();
      long after = monotonic.getAsLong();
      if (after - before < least) best = other - after;
      least = Math.min(least, after - before);
    }
    return best;
  }

  long now() {
    // The second clock is read first: a stop between the two hides a difference until the next
    // call,
    // and never makes one.
    long other = counting.getAsLong();
    long now = monotonic.getAsLong();
    long ahead = other - now - begin;
    // Two resolutions: each of the two readings of a coarse clock may be off by one.
    if (ahead > suspended.get() + 2 * RESOLUTION) {
      suspended.accumulateAndGet(ahead + RESOLUTION, Math::max);
    }
    return now + suspended.get();
  }

  private static Clock system() {
    if (uptime().isEmpty()) return new Clock(System::nanoTime, Clock::wall);
    AtomicLong last = new AtomicLong();
    return new Clock(
        System::nanoTime, () -> uptime().stream().peek(last::set).findFirst().orElseGet(last::get));
  }

  private static long wall() {
    return System.currentTimeMillis() * 1_000_000;
  }

  // A FileInputStream, because an interrupted thread cannot read from a channel.
  private static OptionalLong uptime() {
    try (FileInputStream file = new FileInputStream("/proc/uptime")) {
      String first = new String(file.readNBytes(64), StandardCharsets.US_ASCII).split(" ")[0];
      return OptionalLong.of(Math.round(Double.parseDouble(first) * 100) * RESOLUTION);
    } catch (IOException | NumberFormatException e) {
      return OptionalLong.empty();
    }
  }
}
