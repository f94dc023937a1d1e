package lockd;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.FutureTask;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import java.util.zip.CRC32;
import javax.net.ssl.SSLContext;

/**
 * Takes locks from a server, or from the servers of a cluster, over the HTTP API.
 *
 * <pre>{@code
 * try (var client = LockdClient.connect("locks.example:8080");
 *     var lock = client.acquire("invoice/7")) {
 *   write(row, lock.fence());
 *   lock.check();
 * }
 * }</pre>
 *
 * <p>A program needs one client. Thread-safe.
 */
public final class LockdClient implements AutoCloseable {
  private static final Duration FOREVER = Duration.ofMillis(LockOptions.MS_MAX);
  private static final SecureRandom RANDOM = new SecureRandom();

  private final List<Cluster> shards;
  private final Engine engine;
  private final String name;

  private LockdClient(Builder builder) {
    shards = builder.shards();
    name = builder.name == null ? defaultName() : builder.name;
    LockItem.checkName("a client's name with its random part", name + "/0123456789abcdef");
    ExecutorService workers = Workers.create();
    AuthToken token = new AuthToken(builder.token, builder.tokenFile);
    SSLContext tls = builder.sslContext;
    if (tls == null && builder.tlsCa != null) tls = Tls.trusting(builder.tlsCa);
    Transport transport =
        new Transport(tls, token, builder.connectTimeout, builder.replyTimeout, workers);
    engine =
        new Engine(
            transport, workers, builder.lease, builder.connectTimeout, builder.releaseTimeout);
  }

  /**
   * A client of one server: {@code host}, {@code host:port} or a URL. The port is 8080 by default.
   */
  public static LockdClient connect(String server) {
    return builder().servers(server).build();
  }

  /**
   * A client as the environment says: {@code LOCKD_SERVERS} or {@code LOCKD_CLUSTER}, with HTTP
   * addresses separated by commas, {@code LOCKD_AUTH_TOKEN_FILE} and {@code LOCKD_TLS_CA}, both of
   * which may be missing.
   */
  public static LockdClient fromEnv() {
    return builder().environment(System::getenv).build();
  }

  /** The settings of a client. */
  public static Builder builder() {
    return new Builder();
  }

  /** Waits for the lock, without a bound, and holds it until it is closed. */
  public HeldLock acquire(String key) throws InterruptedException {
    return acquire(key, LockOptions.DEFAULT);
  }

  /**
   * Waits for the lock or the permits of a semaphore, and holds them until they are closed. An
   * interrupt gives up the wait and the place in the queue.
   *
   * @throws NotAcquiredException if the wait of the options is over
   * @throws UnreachableException if no server that serves was found within the wait
   * @throws RefusedException if the server refused the request
   * @throws CancellationException if the client is closed meanwhile
   */
  public HeldLock acquire(String key, LockOptions options) throws InterruptedException {
    return acquire(List.of(options.item(key)), false, options, options.wait(FOREVER));
  }

  /** Takes the lock if it is free now. The wait of the options does not count. */
  public Optional<HeldLock> tryAcquire(String key, LockOptions options)
      throws InterruptedException {
    try {
      return Optional.of(acquire(List.of(options.item(key)), false, options, Duration.ZERO));
    } catch (NotAcquiredException e) {
      return Optional.empty();
    }
  }

  /** Takes the lock if it is free now. */
  public Optional<HeldLock> tryAcquire(String key) throws InterruptedException {
    return tryAcquire(key, LockOptions.DEFAULT);
  }

  /**
   * Waits for up to 64 keys and takes them in one step, all or none, under one fence. They are
   * renewed, lost and released together.
   */
  public HeldLock acquireAll(Collection<LockItem> items, LockOptions options)
      throws InterruptedException {
    if (items.isEmpty() || items.size() > 64) {
      throw new IllegalArgumentException("a set has 1 to 64 keys");
    }
    if (options.saysHow()) {
      throw new IllegalArgumentException("how each key of a set is held is said by its LockItem");
    }
    return acquire(List.copyOf(items), true, options, options.wait(FOREVER));
  }

  /**
   * Acquires the lock on a thread of the client. To cancel the future, or to complete it otherwise,
   * gives up the wait; a grant that is already under way is released.
   */
  public CompletableFuture<HeldLock> acquireAsync(String key, LockOptions options) {
    return async(() -> acquire(key, options));
  }

  /** Acquires the keys on a thread of the client, as {@link #acquireAsync} does. */
  public CompletableFuture<HeldLock> acquireAllAsync(
      Collection<LockItem> items, LockOptions options) {
    List<LockItem> copy = List.copyOf(items);
    return async(() -> acquireAll(copy, options));
  }

  /** Asks for the fence of a lock, without taking it. */
  public FenceState fence(String key) throws InterruptedException {
    LockItem.checkName("a key", key);
    String query = "/v1/fence?key=" + java.net.URLEncoder.encode(key, StandardCharsets.UTF_8);
    return ask(clusterOf(key), query.replace("+", "%20"), Reply::fence);
  }

  /**
   * Asks whether the server serves and accepts this client; of several servers that share the keys,
   * each, and returns the reply of the last.
   *
   * @throws UnreachableException if it does not serve, or a cluster has no leader
   * @throws RefusedException if it does not accept the auth token
   */
  public ServerStatus status() throws InterruptedException {
    ServerStatus status = null;
    for (Cluster each : shards) status = status(each);
    return status;
  }

  /**
   * Keeps trying to hold the lock, and calls {@code body} whenever it is granted, on a thread of
   * the client. See {@link LeaderElection}.
   */
  public LeaderElection elect(String key, LockOptions options, LeaderElection.Body body) {
    return new LeaderElection(this, key, options, body);
  }

  /** The name of this client, with which the holder names of its locks begin. */
  public String name() {
    return name;
  }

  /** Gives up all waits, releases all locks, and waits for the replies for a limited time. */
  @Override
  public void close() {
    engine.close();
  }

  /** Which of so many servers has the key: CRC-32 modulo their number, in all clients. */
  static int shardOf(String key, int servers) {
    CRC32 crc = new CRC32();
    crc.update(key.getBytes(StandardCharsets.UTF_8));
    return (int) (crc.getValue() % servers);
  }

  private HeldLock acquire(List<LockItem> items, boolean isSet, LockOptions options, Duration wait)
      throws InterruptedException {
    if (Thread.interrupted()) throw new InterruptedException();
    Cluster cluster = clusterOf(items.get(0).key());
    if (items.stream().anyMatch(item -> clusterOf(item.key()) != cluster)) {
      throw new IllegalArgumentException("the keys of a set are at several servers");
    }
    byte[] random = new byte[8];
    RANDOM.nextBytes(random);
    String holder = name + "/" + HexFormat.of().formatHex(random);
    long ttlMs = options.leaseMs(engine.defaultLease);
    Wish wish = new Wish(cluster, items, isSet, holder, ttlMs, options.note());
    return new Acquisition(engine, wish, options, wait).run();
  }

  private Cluster clusterOf(String key) {
    return shards.size() == 1 ? shards.get(0) : shards.get(shardOf(key, shards.size()));
  }

  private ServerStatus status(Cluster cluster) throws InterruptedException {
    return engine.atLeader(
        cluster,
        Clock.SYSTEM.now() + engine.connectTimeout,
        true,
        server -> {
          long timeout = engine.turnOf(cluster);
          for (String path : List.of("/leader", "/readyz")) {
            Reply reply = engine.transport.ask(server, path, null, timeout);
            if (!reply.isOk()) throw reply.refusal();
          }
          Reply reply = engine.transport.ask(server, "/v1/whoami", null, timeout);
          if (!reply.isOk()) throw reply.refusal();
          Object principal = reply.body().get("name");
          List<String> rights = new ArrayList<>();
          if (reply.body().get("rights") instanceof List<?> list) {
            list.forEach(each -> rights.add(String.valueOf(each)));
          }
          return new ServerStatus(
              server.toString(), principal instanceof String text ? text : "", List.copyOf(rights));
        });
  }

  private FenceState ask(
      Cluster cluster, String path, java.util.function.ToLongFunction<Reply> fence)
      throws InterruptedException {
    return engine.atLeader(
        cluster,
        Clock.SYSTEM.now() + engine.connectTimeout,
        true,
        server -> {
          Reply reply = engine.transport.ask(server, path, null, engine.turnOf(cluster));
          if (!reply.isOk()) throw reply.refusal();
          boolean isHeld = reply.body().get("held") == Boolean.TRUE;
          return new FenceState(isHeld, fence.applyAsLong(reply));
        });
  }

  private interface Call {
    HeldLock run() throws InterruptedException;
  }

  private CompletableFuture<HeldLock> async(Call call) {
    CompletableFuture<HeldLock> result = new CompletableFuture<>();
    AtomicBoolean isOver = new AtomicBoolean();
    FutureTask<Void> task =
        new FutureTask<>(
            () -> {
              try {
                HeldLock lock = call.run();
                isOver.set(true);
                if (!result.complete(lock)) lock.releaseInBackground();
              } catch (RuntimeException | InterruptedException e) {
                isOver.set(true);
                result.completeExceptionally(e);
              }
              return null;
            });
    result.whenComplete(
        (lock, failure) -> {
          if (!isOver.get()) task.cancel(true);
        });
    try {
      engine.workers.execute(task);
    } catch (RejectedExecutionException e) {
      result.completeExceptionally(new CancellationException("the client is closed"));
    }
    return result;
  }

  private static String defaultName() {
    String host;
    try {
      host = InetAddress.getLocalHost().getHostName();
    } catch (UnknownHostException e) {
      host = "localhost";
    }
    String name = System.getProperty("user.name", "java") + "@" + host;
    // A host's name may be longer than a holder's; the process and the random part have to fit.
    String clean = name.replaceAll("[^\\x21-\\x7e]", "?");
    return clean.substring(0, Math.min(clean.length(), 200)) + ":" + ProcessHandle.current().pid();
  }

  /** The settings of a {@link LockdClient}. Each has a default but for the servers. */
  public static final class Builder {
    private List<String> servers = List.of();
    private boolean isCluster;
    private String name;
    private String token;
    private Path tokenFile;
    private Path tlsCa;
    private SSLContext sslContext;
    private Duration lease = Duration.ofSeconds(15);
    private Duration connectTimeout = Duration.ofSeconds(10);
    private Duration replyTimeout = Duration.ofSeconds(10);
    private Duration releaseTimeout = Duration.ofSeconds(5);

    private Builder() {}

    /**
     * One server, or several that share the keys by CRC-32: all clients need the same list in the
     * same order. Each is {@code host}, {@code host:port} or a URL with {@code http} or {@code
     * https}.
     */
    public Builder servers(String... servers) {
      return servers(List.of(servers), false);
    }

    /** The servers of one cluster, in any order. Requests go to its leader, and nowhere else. */
    public Builder cluster(String... servers) {
      return servers(List.of(servers), true);
    }

    /** The name that holders begin with; {@code user@host:pid} by default. */
    public Builder name(String name) {
      this.name = name;
      return this;
    }

    /** The auth token. */
    public Builder authToken(String token) {
      this.token = token;
      return this;
    }

    /** The file whose first line is the auth token. It is read again for each request. */
    public Builder authTokenFile(Path file) {
      this.tokenFile = file;
      return this;
    }

    /** Speak TLS, and trust the certificates of this PEM file instead of the system's. */
    public Builder tlsCa(Path pem) {
      this.tlsCa = pem;
      return this;
    }

    /** Speak TLS with this context, such as one that has a client certificate. */
    public Builder sslContext(SSLContext context) {
      this.sslContext = context;
      return this;
    }

    /** The lease of locks whose options name none; 15 seconds by default. */
    public Builder lease(Duration lease) {
      this.lease = LockOptions.checkLease(lease);
      return this;
    }

    /** For connecting, and for finding the leader of a cluster; 10 seconds by default. */
    public Builder connectTimeout(Duration timeout) {
      this.connectTimeout = timeout;
      return this;
    }

    /** For a reply, beyond what the request asked to wait; 10 seconds by default. */
    public Builder replyTimeout(Duration timeout) {
      this.replyTimeout = timeout;
      return this;
    }

    /** For a release; 5 seconds by default. */
    public Builder releaseTimeout(Duration timeout) {
      this.releaseTimeout = timeout;
      return this;
    }

    /** Creates the client. It connects with its first request. */
    public LockdClient build() {
      if (token != null && tokenFile != null) {
        throw new IllegalArgumentException("give the auth token or its file, not both");
      }
      return new LockdClient(this);
    }

    Builder environment(UnaryOperator<String> variable) {
      take(variable, "LOCKD_SERVERS", list -> servers(split(list), false));
      take(
          variable,
          "LOCKD_CLUSTER",
          list -> {
            if (!servers.isEmpty()) {
              throw new IllegalArgumentException(
                  "LOCKD_SERVERS and LOCKD_CLUSTER: give one of them");
            }
            servers(split(list), true);
          });
      if (servers.isEmpty()) throw new IllegalArgumentException("LOCKD_SERVERS is not set");
      take(variable, "LOCKD_AUTH_TOKEN_FILE", file -> authTokenFile(Path.of(file)));
      take(variable, "LOCKD_TLS_CA", file -> tlsCa(Path.of(file)));
      return this;
    }

    private Builder servers(List<String> given, boolean isCluster) {
      this.servers = List.copyOf(given);
      this.isCluster = isCluster;
      return this;
    }

    private List<Cluster> shards() {
      boolean isTls = tlsCa != null || sslContext != null;
      List<Address> addresses = servers.stream().map(each -> Address.parse(each, isTls)).toList();
      if (addresses.isEmpty()) throw new IllegalArgumentException("name at least one server");
      if (isCluster) return List.of(new Cluster(addresses));
      return addresses.stream().map(each -> new Cluster(List.of(each))).toList();
    }

    private static void take(
        UnaryOperator<String> variable, String name, Consumer<String> setting) {
      String value = variable.apply(name);
      if (value != null && !value.isBlank()) setting.accept(value.strip());
    }

    private static List<String> split(String list) {
      return Arrays.stream(list.split(",")).map(String::strip).toList();
    }
  }
}
