package lockd.testing;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** ScriptedServer: answers each HTTP request with the bytes that its script returns. */
public final class ScriptedServer implements AutoCloseable {
  /** What to do about a request. */
  public interface Script {
    Answer answer(Request request);
  }

  /** The first line of a request's head, the head, and the body. */
  public record Request(String line, String head, String body) {
    public String path() {
      return line.split(" ")[1];
    }

    /** The text of a string member of the body. */
    public String text(String member) {
      Matcher found =
          Pattern.compile("\"" + member + "\":\"((?:[^\"\\\\]|\\\\.)*)\"").matcher(body);
      return found.find() ? found.group(1) : null;
    }
  }

  /**
   * An answer.
   *
   * @param bytes what is sent
   * @param isStalled whether the connection then stays open in silence; otherwise it is closed if
   *     the bytes are not a whole reply
   * @param isWhole whether another request may follow
   */
  public record Answer(byte[] bytes, boolean isStalled, boolean isWhole) {
    public static Answer of(int status, String body, String... fields) {
      StringBuilder head = new StringBuilder("HTTP/1.1 " + status + " X\r\n");
      for (String field : fields) head.append(field).append("\r\n");
      head.append("Content-Length: " + body.getBytes(StandardCharsets.UTF_8).length + "\r\n\r\n");
      return new Answer((head + body).getBytes(StandardCharsets.UTF_8), false, true);
    }

    public static Answer raw(String text) {
      return new Answer(text.getBytes(StandardCharsets.UTF_8), false, false);
    }

    /** The first bytes of this answer; the connection is closed behind them. */
    public Answer cutAt(int size) {
      return new Answer(java.util.Arrays.copyOf(bytes, size), false, false);
    }

    /** The first bytes of this answer, and then silence. */
    public Answer stalledAt(int size) {
      return new Answer(java.util.Arrays.copyOf(bytes, size), true, false);
    }
  }

  private final ServerSocket listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
  private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
  private final List<Request> requests = new CopyOnWriteArrayList<>();
  private volatile Script script;

  public ScriptedServer(Script script) throws IOException {
    this.script = script;
    start(
        () -> {
          while (true) {
            Socket socket = listener.accept();
            sockets.add(socket);
            start(() -> serve(socket));
          }
        });
  }

  public void script(Script next) {
    script = next;
  }

  public String address() {
    return "127.0.0.1:" + listener.getLocalPort();
  }

  public List<Request> requests() {
    return requests;
  }

  public List<Request> requests(String path) {
    return requests.stream().filter(each -> each.path().equals(path)).toList();
  }

  /** The reply to an acquisition or a renewal, as the server sends it. */
  public static Answer grant(Request request, long fence, long ttlMs) {
    String key = request.text("key");
    return Answer.of(
        200,
        "{\"key\":\""
            + key
            + "\",\"holder\":\""
            + request.text("holder")
            + "\",\"token\":"
            + fence
            + ",\"ttl_ms\":"
            + ttlMs
            + ",\"expires_in_ms\":"
            + ttlMs
            + ",\"expires_at_unix_ms\":1794700860000}\n");
  }

  public static Answer released(Request request) {
    return Answer.of(200, "{\"key\":\"" + request.text("key") + "\",\"released\":true}\n");
  }

  public static Answer error(int status, String code, String... fields) {
    return Answer.of(status, "{\"error\":\"" + code + "\",\"detail\":\"scripted\"}\n", fields);
  }

  @Override
  public void close() throws IOException {
    listener.close();
    for (Socket each : sockets) each.close();
  }

  private void serve(Socket socket) throws IOException {
    try (socket) {
      InputStream in = socket.getInputStream();
      while (true) {
        Request request = read(in);
        if (request == null) return;
        requests.add(request);
        Answer answer = script.answer(request);
        socket.getOutputStream().write(answer.bytes());
        if (answer.isStalled()) in.read();
        if (!answer.isWhole()) return;
      }
    } finally {
      sockets.remove(socket);
    }
  }

  private static Request read(InputStream in) throws IOException {
    ByteArrayOutputStream head = new ByteArrayOutputStream();
    while (!head.toString(StandardCharsets.UTF_8).endsWith("\r\n\r\n")) {
      int next = in.read();
      if (next < 0) return null;
      head.write(next);
    }
    String text = head.toString(StandardCharsets.UTF_8);
    Matcher length = Pattern.compile("(?i)content-length: *(\\d+)").matcher(text);
    byte[] body = in.readNBytes(length.find() ? Integer.parseInt(length.group(1)) : 0);
    String line = text.substring(0, text.indexOf("\r\n"));
    return new Request(line, text, new String(body, StandardCharsets.UTF_8));
  }

  private interface Job {
    void run() throws IOException;
  }

  private static void start(Job job) {
    Thread thread =
        new Thread(
            () -> {
              try {
                job.run();
              } catch (IOException e) {
                // The connection, or the server, has ended.
              }
            });
    thread.setDaemon(true);
    thread.start();
  }
}
