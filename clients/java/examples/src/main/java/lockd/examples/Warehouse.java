package lockd.examples;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import lockd.LockdClient;
import lockd.spring.LockdLockRegistry;
import org.springframework.integration.leader.Candidate;
import org.springframework.integration.support.leader.LockRegistryLeaderInitiator;
import org.springframework.integration.support.locks.LockRegistry;
import org.springframework.stereotype.Service;

/** A service whose methods lock by the registry of Spring Integration. */
@Service
public class Warehouse {
  private final LockRegistry registry;
  private int stock;

  public Warehouse(LockRegistry registry) {
    this.registry = registry;
  }

  public int take(String shelf) throws Exception {
    return registry.executeLocked("shelf/" + shelf, Duration.ofSeconds(10), () -> ++stock);
  }

  public boolean tryTake(String shelf) throws InterruptedException {
    var lock = registry.obtain("shelf/" + shelf);
    if (!lock.tryLock(5, TimeUnit.SECONDS)) return false;
    try {
      stock++;
      return true;
    } finally {
      lock.unlock(); // ConcurrentModificationException if the lock was lost
    }
  }

  /** Events OnGrantedEvent and OnRevokedEvent report which process leads. */
  static LockRegistryLeaderInitiator initiator(LockdClient client, Candidate candidate) {
    var initiator = new LockRegistryLeaderInitiator(new LockdLockRegistry(client), candidate);
    initiator.setHeartBeatMillis(500);
    return initiator;
  }
}
