package lockd;

import java.io.IOException;
import java.net.ConnectException;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodySubscriber;
import java.net.http.HttpResponse.BodySubscribers;
import java.nio.ByteBuffer;
import java.nio.channels.UnresolvedAddressException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;

/**
 * Transport: sends one request to one server and returns its reply.
 *
 * <p>A call blocks its thread. To interrupt the thread closes the connection, which takes a waiting
 * request out of the queue at the server. Each failure is an {@link UnreachableException} that says
 * whether the request may have been executed. Thread-safe.
 */
final class Transport {
  private static final int BODY_MAX = 1 << 20;
  private static final long PROBE_EVERY = 15_000_000_000L;

  private final HttpClient http;
  private final AuthToken token;
  private final long replyTimeout;
  private final Set<CompletableFuture<?>> waits = ConcurrentHashMap.newKeySet();
  private volatile boolean isClosed;

  Transport(
      SSLContext tls,
      AuthToken token,
      Duration connectTimeout,
      Duration replyTimeout,
      Executor on) {
    HttpClient.Builder builder =
        HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1)
            .followRedirects(HttpClient.Redirect.NEVER)
            .proxy(HttpClient.Builder.NO_PROXY) // requests go to the named servers, not elsewhere
            .connectTimeout(connectTimeout)
            .executor(on);
    if (tls != null) builder.sslContext(tls);
    this.http = builder.build();
    this.token = token;
    this.replyTimeout = replyTimeout.toNanos();
  }

  /** Cancels all requests that wait in queues, now and later. */
  void close() {
    isClosed = true;
    waits.forEach(each -> each.cancel(true));
  }

  /**
   * A request that is answered at once.
   *
   * @param body the members of the body, or null for a GET
   * @param timeout in nanoseconds
   */
  Reply ask(Address server, String path, Map<String, Object> body, long timeout)
      throws InterruptedException {
    return read(server, send(server, path, body), Math.min(timeout, replyTimeout), false);
  }

  /**
   * A request that may wait in a queue for {@code wait} nanoseconds. The server is probed meanwhile
   * on another connection, so that one that died without closing the connection is noticed.
   *
   * @throws CancellationException if the client is closed
   */
  Reply await(Address server, String path, Map<String, Object> body, long wait)
      throws InterruptedException {
    Exchange exchange = send(server, path, body);
    waits.add(exchange.reply);
    try {
      if (isClosed) exchange.reply.cancel(true);
      long timeout = wait + replyTimeout;
      return read(server, exchange, timeout < 0 ? Long.MAX_VALUE : timeout, wait > PROBE_EVERY);
    } finally {
      waits.remove(exchange.reply);
    }
  }

  private record Exchange(CompletableFuture<HttpResponse<byte[]>> reply, long sentAt) {}

  private Exchange send(Address server, String path, Map<String, Object> body) {
    HttpRequest.Builder request = HttpRequest.newBuilder(server.uri(path));
    String shown = token.read();
    if (shown != null) request.header("Authorization", "Bearer " + shown);
    if (body != null) {
      request.header("Content-Type", "application/json");
      request.POST(BodyPublishers.ofString(Json.write(body)));
    }
    long sentAt = Clock.SYSTEM.now();
    CompletableFuture<Void> head = new CompletableFuture<>();
    CompletableFuture<HttpResponse<byte[]>> reply =
        http.sendAsync(
            request.build(),
            information -> {
              head.complete(null);
              return new LimitedBody();
            });
    // A body follows its head at once, also after a long wait.
    head.thenRun(() -> reply.orTimeout(replyTimeout, TimeUnit.NANOSECONDS));
    return new Exchange(reply, sentAt);
  }

  private Reply read(Address server, Exchange exchange, long timeout, boolean isProbed)
      throws InterruptedException {
    try {
      return understand(server, await(server, exchange, timeout, isProbed), exchange.sentAt);
    } catch (TimeoutException e) {
      throw new UnreachableException(server + " did not reply in time", null);
    } catch (ExecutionException e) {
      throw failure(server, e.getCause());
    } finally {
      exchange.reply.cancel(true); // no effect on one that is complete
    }
  }

  private HttpResponse<byte[]> await(
      Address server, Exchange exchange, long timeout, boolean isProbed)
      throws InterruptedException, ExecutionException, TimeoutException {
    long until = Clock.SYSTEM.now() + timeout;
    if (until < 0) until = Long.MAX_VALUE;
    for (int failures = 0; ; ) {
      long left = until - Clock.SYSTEM.now();
      try {
        long turn = isProbed ? Math.min(left, PROBE_EVERY) : left;
        return exchange.reply.get(Math.max(turn, 1), TimeUnit.NANOSECONDS);
      } catch (TimeoutException e) {
        if (Clock.SYSTEM.now() >= until) throw e;
        failures = isAlive(server) ? 0 : failures + 1;
        if (failures == 2) throw e;
      }
    }
  }

  // Any answer will do: a server that does not lead any more ends the waits at it by itself.
  private boolean isAlive(Address server) throws InterruptedException {
    HttpRequest probe = HttpRequest.newBuilder(server.uri("/livez")).build();
    CompletableFuture<?> reply = http.sendAsync(probe, head -> new LimitedBody());
    try {
      reply.get(replyTimeout, TimeUnit.NANOSECONDS);
      return true;
    } catch (ExecutionException | TimeoutException e) {
      return false;
    } finally {
      reply.cancel(true);
    }
  }

  private static UnreachableException failure(Address server, Throwable cause) {
    String message = server + ": " + (cause.getMessage() == null ? cause : cause.getMessage());
    boolean isUnsent =
        cause instanceof ConnectException
            || cause instanceof HttpConnectTimeoutException
            || cause instanceof UnresolvedAddressException
            || cause instanceof SSLException;
    if (isUnsent) return new UnreachableException.NotSent("cannot connect to " + message, cause);
    return new UnreachableException(message, cause);
  }

  @SuppressWarnings("unchecked")
  private static Reply understand(Address server, HttpResponse<byte[]> response, long sentAt) {
    int status = response.statusCode();
    Map<String, Object> body;
    try {
      body = (Map<String, Object>) Json.parse(response.body());
    } catch (Json.Malformed | ClassCastException e) {
      throw new UnreachableException(server + " replied " + status + " without a JSON object", e);
    }
    if (body == null) throw new UnreachableException(server + " replied null", null);
    Reply reply = new Reply(server, status, body, sentAt);
    if (status == 503) {
      String leader = response.headers().firstValue("X-Lockd-Leader-Http").orElse("-");
      String message = server + " does not serve: " + reply.code();
      throw new UnreachableException.NotServed(message, leader.equals("-") ? null : leader);
    }
    boolean isAnswer = status == 200 || status >= 400 && status < 500 && !reply.code().isEmpty();
    if (!isAnswer || status == 408) throw reply.garbled("the status " + status);
    return reply;
  }

  /** Collects a body and fails for one that is longer than any reply of a server. */
  private static final class LimitedBody implements BodySubscriber<byte[]> {
    private final BodySubscriber<byte[]> all = BodySubscribers.ofByteArray();
    private final AtomicBoolean isOver = new AtomicBoolean();
    private Flow.Subscription subscription;
    private long size;

    @Override
    public CompletionStage<byte[]> getBody() {
      return all.getBody();
    }

    @Override
    public void onSubscribe(Flow.Subscription given) {
      subscription = given;
      all.onSubscribe(given);
    }

    @Override
    public void onNext(List<ByteBuffer> parts) {
      for (ByteBuffer part : parts) size += part.remaining();
      if (size <= BODY_MAX) {
        all.onNext(parts);
      } else if (isOver.compareAndSet(false, true)) {
        subscription.cancel();
        all.onError(new IOException("a reply of more than " + BODY_MAX + " bytes"));
      }
    }

    @Override
    public void onError(Throwable failure) {
      if (!isOver.get()) all.onError(failure);
    }

    @Override
    public void onComplete() {
      if (!isOver.get()) all.onComplete();
    }
  }
}
