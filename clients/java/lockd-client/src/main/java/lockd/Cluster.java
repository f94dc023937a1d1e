package lockd;

import java.util.List;

/**
 * Cluster: the servers among which one leads, as the program named them, and the one that led last.
 * A server that stands alone is a cluster of one. Thread-safe.
 */
final class Cluster {
  static final int SIZE_MAX = 16;

  private final List<Address> members;
  private volatile int leader;

  Cluster(List<Address> members) {
    if (members.isEmpty() || members.size() > SIZE_MAX) {
      throw new IllegalArgumentException("a cluster has 1 to " + SIZE_MAX + " servers");
    }
    if (members.stream().distinct().count() < members.size()) {
      throw new IllegalArgumentException("a server of the cluster is named twice");
    }
    this.members = List.copyOf(members);
  }

  boolean isAlone() {
    return members.size() == 1;
  }

  int size() {
    return members.size();
  }

  Search search() {
    return new Search();
  }

  /**
   * Search: the way of one call through the cluster. It visits each server once a round. From a
   * server that does not lead it continues with the leader that this server named, if the program
   * named that address too, and else with the next. Not thread-safe.
   */
  final class Search {
    private static final long PAUSE_MAX = 200_000_000;
    private static final long PAUSE_MAX_ALONE = 1_000_000_000;

    private int here = leader;
    private boolean[] tried = new boolean[members.size()];
    private boolean hasHope;
    private LockdException failure;
    private String stranger;
    private long pause;

    Address here() {
      return members.get(here);
    }

    void found() {
      leader = here;
    }

    /**
     * Leaves this server. Returns the nanoseconds to wait before the next attempt.
     *
     * @throws RefusedException if each server of the round has refused the client, which waiting
     *     does not cure
     */
    long moveOn(LockdException why) {
      tried[here] = true;
      hasHope |= why instanceof UnreachableException;
      if (failure == null || weight(why) >= weight(failure)) failure = why;
      long wait = 0;
      if (allTried()) {
        if (!hasHope) throw verdict();
        hasHope = false;
        tried = new boolean[members.size()];
        wait = pause;
        long least = isAlone() ? 50_000_000 : 10_000_000;
        pause = Math.min(Math.max(2 * pause, least), isAlone() ? PAUSE_MAX_ALONE : PAUSE_MAX);
      }
      here = choose(why);
      return wait;
    }

    /** Why no server answered. */
    LockdException verdict() {
      if (failure == null)
        return new UnreachableException.NotSent("there was no time to ask", null);
      if (isAlone() || failure instanceof RefusedException) return failure;
      String named =
          stranger == null ? "" : "; '" + stranger + "' was named as leader, and not given";
      return new UnreachableException(
          "no leader among " + members + ": " + failure.getMessage() + named, failure);
    }

    private int choose(LockdException why) {
      if (why instanceof UnreachableException.NotServed refusal && refusal.leader != null) {
        int named = find(refusal.leader);
        if (named < 0) stranger = refusal.leader;
        if (named >= 0 && !tried[named]) return named;
      }
      if (!tried[leader] && leader != here) return leader;
      int next = here;
      do next = (next + 1) % tried.length;
      while (tried[next]);
      return next;
    }

    private int find(String text) {
      try {
        Address address = Address.parse(text, here().tls());
        for (int i = 0; i < members.size(); i++) {
          Address member = members.get(i);
          if (member.host().equals(address.host()) && member.port() == address.port()) return i;
        }
      } catch (IllegalArgumentException e) {
        // No address: as good as one that was not given.
      }
      return -1;
    }

    private boolean allTried() {
      for (boolean each : tried) if (!each) return false;
      return true;
    }

    // A refusal says more than an answer that another server leads, and that more than silence.
    private static int weight(LockdException failure) {
      if (!(failure instanceof UnreachableException)) return 2;
      return failure instanceof UnreachableException.NotServed ? 1 : 0;
    }
  }
}
