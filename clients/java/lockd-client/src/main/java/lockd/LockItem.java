package lockd;

import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/**
 * A key and how it is held: alone, shared, or as permits of a semaphore.
 *
 * @param key 1 to 256 bytes of UTF-8 without control characters
 * @param isShared whether the lock is held together with all others who share it
 * @param limit the number of permits of the semaphore, or 0 for a lock
 * @param permits how many permits of the semaphore to take; 1 for a lock
 */
public record LockItem(String key, boolean isShared, int limit, int permits) {
  /** Checks the terms; throws {@link IllegalArgumentException} if no server could accept them. */
  public LockItem {
    checkName("a key", key);
    if (limit < 0 || isShared && limit > 0) {
      throw new IllegalArgumentException("a semaphore has a limit of at least 1 and is not shared");
    }
    if (permits < 1 || permits > Math.max(limit, 1)) {
      throw new IllegalArgumentException("permits are at least 1 and at most the limit");
    }
  }

  /** A lock that one holder has alone. */
  public static LockItem lock(String key) {
    return new LockItem(key, false, 0, 1);
  }

  /** A lock that is held together with all others who share it. */
  public static LockItem shared(String key) {
    return new LockItem(key, true, 0, 1);
  }

  /** Permits of a semaphore that has {@code limit} of them. */
  public static LockItem semaphore(String key, int limit, int permits) {
    if (limit < 1) throw new IllegalArgumentException("a semaphore has a limit of at least 1");
    return new LockItem(key, false, limit, permits);
  }

  boolean isSemaphore() {
    return limit > 0;
  }

  static void checkName(String what, String name) {
    boolean isClean = !name.isEmpty() && name.chars().allMatch(c -> c >= 0x20 && c != 0x7f);
    try {
      // An encoder of its own reports half a surrogate pair; getBytes would replace it.
      int size = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(name)).remaining();
      if (isClean && size <= 256) return;
    } catch (CharacterCodingException e) {
      // Reported below.
    }
    throw new IllegalArgumentException(
        what + " is 1 to 256 bytes of UTF-8 without control characters");
  }
}
