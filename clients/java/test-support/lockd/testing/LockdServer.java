package lockd.testing;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * LockdServer: a process of the server under test, on a port that it keeps through restarts. The
 * program is that of the variable LOCKD_TEST_SERVER.
 */
public final class LockdServer implements AutoCloseable {
  private static final Pattern LISTENING = Pattern.compile("listening http .*port=(\\d+)");

  private final Path directory;
  private final List<String> flags;
  private final HttpClient http =
      HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
  private Process process;
  private int port;
  private int starts;
  private String token;

  private LockdServer(List<String> flags) throws Exception {
    directory = Files.createTempDirectory("lockd-java-");
    this.flags = flags;
    start();
  }

  /** A server that keeps nothing on disk. */
  public static LockdServer inMemory(String... flags) throws Exception {
    List<String> all = new ArrayList<>(List.of("--memory"));
    all.addAll(List.of(flags));
    return new LockdServer(all);
  }

  /** A server with a journal: what it has granted is there after a restart. */
  public static LockdServer withJournal(String... flags) throws Exception {
    List<String> all = new ArrayList<>(List.of("--wal", "WAL"));
    all.addAll(List.of(flags));
    return new LockdServer(all);
  }

  /** The auth token that this test itself shows. */
  public LockdServer token(String token) {
    this.token = token;
    return this;
  }

  public String address() {
    return "127.0.0.1:" + port;
  }

  public int port() {
    return port;
  }

  public synchronized void start() throws Exception {
    // A port that was just left may be busy for a moment.
    for (int tries = 0; tries < 20; tries++) {
      if (launch()) return;
      Thread.sleep(200);
    }
    throw new IOException("the server does not start: " + Files.readString(log()));
  }

  /** Ends it without a warning: kill -9. */
  public synchronized void kill() throws InterruptedException {
    process.destroyForcibly().waitFor();
  }

  /** Sends a signal such as STOP, CONT or HUP. */
  public synchronized void signal(String name) throws Exception {
    new ProcessBuilder("kill", "-" + name, String.valueOf(process.pid())).start().waitFor();
  }

  public String get(String path) throws Exception {
    return send(request(path).GET().build()).body();
  }

  public String post(String path, String body) throws Exception {
    return send(request(path).POST(HttpRequest.BodyPublishers.ofString(body)).build()).body();
  }

  /** Whether the lock is held by any client. */
  public boolean isHeld(String key) throws Exception {
    return get("/v1/fence?key=" + key).contains("\"held\":true");
  }

  /** Ends what is held of the key, as an operator does. */
  public void revoke(String key) throws Exception {
    String reply =
        post("/v1/admin/release", "{\"key\":\"" + key + "\",\"all\":true,\"reason\":\"a test\"}");
    if (!reply.contains("\"released\":[{")) throw new AssertionError(reply);
  }

  /** The number of requests in the queue of the key. */
  public int waiters(String key) throws Exception {
    String reply =
        post("/v1/acquire", "{\"key\":\"" + key + "\",\"holder\":\"a test that looks\"}");
    Matcher found = Pattern.compile("\"waiters\":(\\d+)").matcher(reply);
    if (!found.find()) throw new AssertionError("not held: " + reply);
    return Integer.parseInt(found.group(1));
  }

  @Override
  public void close() throws Exception {
    kill();
    try (var files = Files.walk(directory)) {
      files.sorted((a, b) -> b.compareTo(a)).forEach(file -> file.toFile().delete());
    }
  }

  private boolean launch() throws Exception {
    starts++;
    List<String> command = new ArrayList<>(List.of(System.getenv("LOCKD_TEST_SERVER")));
    command.addAll(List.of("--host", "127.0.0.1", "--port", "0"));
    command.addAll(List.of("--http-addr", "127.0.0.1:" + port));
    for (String flag : flags) {
      command.add(flag.equals("WAL") ? directory.resolve("wal").toString() : flag);
    }
    process =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(log().toFile())
            .start();
    process.getOutputStream().close();
    while (true) {
      Matcher found = LISTENING.matcher(Files.readString(log()));
      if (found.find()) {
        port = Integer.parseInt(found.group(1));
        return true;
      }
      if (process.waitFor(20, TimeUnit.MILLISECONDS)) return false;
    }
  }

  private Path log() {
    return directory.resolve("log-" + starts);
  }

  private HttpRequest.Builder request(String path) {
    HttpRequest.Builder request = HttpRequest.newBuilder(URI.create("http://" + address() + path));
    if (token != null) request.header("Authorization", "Bearer " + token);
    return request;
  }

  private HttpResponse<String> send(HttpRequest request) throws Exception {
    for (int tries = 1; ; tries++) {
      try {
        return http.send(request, HttpResponse.BodyHandlers.ofString());
      } catch (IOException e) {
        if (tries == 3) throw e; // a connection of before a restart
      }
    }
  }
}
