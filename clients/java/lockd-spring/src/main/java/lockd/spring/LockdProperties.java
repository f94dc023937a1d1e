package lockd.spring;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import lockd.LockdClient;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * The properties {@code lockd.*} of a Spring Boot application.
 *
 * @param enabled whether a client is configured at all
 * @param servers one server, or several that share the keys; host:port of HTTP, or URLs
 * @param cluster the servers of one cluster instead
 * @param authToken the auth token
 * @param authTokenFile the file whose first line is the auth token, read again for each request
 * @param tlsCa a PEM file with the certificates that are trusted; TLS is spoken if it is set
 * @param name the name that holders begin with; user@host:pid by default
 * @param lease the lease of locks that renew themselves
 * @param connectTimeout the time for connecting and for finding the leader of a cluster
 * @param replyTimeout the time for a reply, beyond what a request waits in a queue
 * @param releaseTimeout the time for a release
 * @param registry the lock registry of Spring Integration
 * @param shedlock the lock provider of ShedLock
 */
@ConfigurationProperties("lockd")
public record LockdProperties(
    @DefaultValue("true") boolean enabled,
    @DefaultValue List<String> servers,
    @DefaultValue List<String> cluster,
    String authToken,
    Path authTokenFile,
    Path tlsCa,
    String name,
    @DefaultValue("15s") Duration lease,
    @DefaultValue("10s") Duration connectTimeout,
    @DefaultValue("10s") Duration replyTimeout,
    @DefaultValue("5s") Duration releaseTimeout,
    @DefaultValue Registry registry,
    @DefaultValue ShedLock shedlock) {

  /**
   * The lock registry.
   *
   * @param keyPrefix what the keys of the registry begin with
   */
  public record Registry(@DefaultValue("registry/") String keyPrefix) {}

  /**
   * The lock provider.
   *
   * @param keyPrefix what the keys of scheduled tasks begin with
   */
  public record ShedLock(@DefaultValue("shedlock/") String keyPrefix) {}

  LockdClient createClient() {
    if (servers.isEmpty() == cluster.isEmpty()) {
      throw new IllegalArgumentException("set lockd.servers or lockd.cluster, and not both");
    }
    LockdClient.Builder builder = LockdClient.builder();
    if (cluster.isEmpty()) builder.servers(servers.toArray(String[]::new));
    else builder.cluster(cluster.toArray(String[]::new));
    if (authToken != null) builder.authToken(authToken);
    if (authTokenFile != null) builder.authTokenFile(authTokenFile);
    if (tlsCa != null) builder.tlsCa(tlsCa);
    if (name != null) builder.name(name);
    return builder
        .lease(lease)
        .connectTimeout(connectTimeout)
        .replyTimeout(replyTimeout)
        .releaseTimeout(releaseTimeout)
        .build();
  }
}
