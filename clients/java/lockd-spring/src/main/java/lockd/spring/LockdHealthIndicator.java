package lockd.spring;

import lockd.LockdClient;
import lockd.ServerStatus;
import org.springframework.boot.actuate.health.AbstractHealthIndicator;
import org.springframework.boot.actuate.health.Health;

/**
 * Whether a server that serves can be reached and accepts this client: UP with the server's
 * address, the name of the auth token and its rights, else DOWN with the reason.
 */
public class LockdHealthIndicator extends AbstractHealthIndicator {
  private final LockdClient client;

  /** An indicator of this client. */
  public LockdHealthIndicator(LockdClient client) {
    super("lockd is not available");
    this.client = client;
  }

  @Override
  protected void doHealthCheck(Health.Builder builder) throws Exception {
    ServerStatus status = client.status();
    builder
        .up()
        .withDetail("server", status.server())
        .withDetail("principal", status.principal())
        .withDetail("rights", status.rights());
  }
}
