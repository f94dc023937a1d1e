package lockd;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Wish: the requests of one acquisition, from the first to the release.
 *
 * <p>The holder name is new for each acquisition, and the server knows the hold by it: a request
 * that is sent again returns the grant that its first copy received.
 *
 * @param cluster the servers that have the keys
 * @param items one key, or those of a set
 * @param isSet whether the keys are held as one set, even if there is only one
 * @param holder the name under which the keys are held
 * @param ttlMs the lease in milliseconds
 * @param note a text for operators, or null
 */
record Wish(
    Cluster cluster, List<LockItem> items, boolean isSet, String holder, long ttlMs, String note) {

  /**
   * What the server granted or renewed.
   *
   * @param fence the fencing token
   * @param leaseMs the lease, which the server may have cut
   * @param sentAt when the request was sent
   * @param certainUntil the time at which the hold may end, by {@link Clock}
   */
  record Grant(long fence, long leaseMs, long sentAt, long certainUntil) {}

  String key() {
    return items.get(0).key();
  }

  String path(String verb) {
    return (!isSet && items.get(0).isSemaphore() ? "/v1/semaphores/" : "/v1/") + verb;
  }

  Map<String, Object> acquire(long waitMs, long leaseMs) {
    Map<String, Object> body = new LinkedHashMap<>();
    if (isSet) body.put("items", items.stream().map(item -> terms(item, true)).toList());
    else body.putAll(terms(items.get(0), false));
    body.put("holder", holder);
    body.put("ttl_ms", leaseMs);
    if (waitMs > 0) body.put("wait_ms", waitMs);
    if (note != null) body.put("note", note);
    return body;
  }

  Map<String, Object> renew(long fence, long leaseMs) {
    Map<String, Object> body = release(fence);
    body.put("ttl_ms", leaseMs);
    return body;
  }

  Map<String, Object> release(long fence) {
    Map<String, Object> body = new LinkedHashMap<>();
    if (isSet) body.put("items", items.stream().map(Wish::name).toList());
    else body.put("key", key());
    body.put("holder", holder);
    body.put("token", fence);
    return body;
  }

  /** Reads the reply to an acquisition or a renewal. */
  Grant granted(Reply reply) {
    long fence = reply.fence();
    long leaseMs = reply.number("ttl_ms");
    long left = reply.number("expires_in_ms");
    if (fence == 0 || leaseMs == 0 || leaseMs > LockOptions.MS_MAX) throw reply.garbled("a grant");
    if (!holder.equals(reply.body().get("holder"))) throw reply.garbled("another holder");
    // The hold began between the request and the reply, so this is never too late.
    long certainUntil = reply.sentAt() + 1_000_000 * Math.min(left, leaseMs);
    if (certainUntil < reply.sentAt()) certainUntil = Long.MAX_VALUE;
    return new Grant(fence, leaseMs, reply.sentAt(), certainUntil);
  }

  private static Map<String, Object> name(LockItem item) {
    Map<String, Object> name = new LinkedHashMap<>();
    name.put("key", item.key());
    name.put("kind", item.isSemaphore() ? "semaphore" : "lock");
    return name;
  }

  private static Map<String, Object> terms(LockItem item, boolean isPart) {
    Map<String, Object> terms = new LinkedHashMap<>();
    terms.put("key", item.key());
    if (isPart && item.isSemaphore()) terms.put("kind", "semaphore");
    if (item.isShared()) terms.put("mode", "shared");
    if (item.isSemaphore()) terms.put("limit", item.limit());
    if (item.permits() > 1) terms.put("permits", item.permits());
    return terms;
  }
}
