package lockd;

import java.util.List;
import java.util.Map;

/**
 * Reply: an answer of a server to one request.
 *
 * @param server the server that answered
 * @param status the HTTP status
 * @param body the members of the JSON object
 * @param sentAt when the request was sent, by {@link Clock}
 */
record Reply(Address server, int status, Map<String, Object> body, long sentAt) {
  private static final long FENCE_MAX = 1L << 53;

  boolean isOk() {
    return status == 200;
  }

  String code() {
    return body.get("error") instanceof String code ? code : "";
  }

  /** What the server says against the request, as an exception. */
  RefusedException refusal() {
    String detail = body.get("detail") instanceof String text ? text : "";
    return new RefusedException(server + " replied " + code() + ": " + detail, status, code());
  }

  long number(String name) {
    return number(body, name, Long.MAX_VALUE);
  }

  /**
   * The fencing token: the member {@code fence}, or {@code token} of servers that send only that.
   */
  long fence() {
    return number(body, body.containsKey("fence") ? "fence" : "token", FENCE_MAX);
  }

  /** What a refusal of {@code key} says about its holder. */
  NotAcquiredException notAcquired(String key) {
    Map<?, ?> refusal = body;
    if (body.get("conflicts") instanceof List<?> conflicts
        && !conflicts.isEmpty()
        && conflicts.get(0) instanceof Map<?, ?> first) {
      refusal = first;
    }
    String inTheWay = refusal.get("key") instanceof String text ? text : key;
    String holder = null;
    if (refusal.get("held_by") instanceof Map<?, ?> heldBy) {
      holder = heldBy.get("holder") instanceof String text ? text : null;
    }
    long waiters = refusal.get("waiters") instanceof Long count ? count : 0;
    String by = holder == null ? "" : " by '" + holder + "'";
    return new NotAcquiredException("'" + inTheWay + "' is held" + by, inTheWay, holder, waiters);
  }

  /** A reply of which a member is missing or impossible. */
  UnreachableException garbled(String what) {
    return new UnreachableException(server + " sent a reply that is not understood: " + what, null);
  }

  private long number(Map<String, Object> from, String name, long max) {
    if (from.get(name) instanceof Long value && value >= 0 && value <= max) return value;
    throw garbled("the member '" + name + "'");
  }
}
