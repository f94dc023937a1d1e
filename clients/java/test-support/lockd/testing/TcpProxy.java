package lockd.testing;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** TcpProxy: stands between clients and a server, and breaks or stalls what passes. */
public final class TcpProxy implements AutoCloseable {
  private final int target;
  private final int port;
  private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
  private ServerSocket listener;
  private volatile boolean isStalled;
  private volatile boolean dropsReplies;

  public TcpProxy(int target) throws IOException {
    this.target = target;
    listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    port = listener.getLocalPort();
    serve(listener);
  }

  public String address() {
    return "127.0.0.1:" + port;
  }

  /** Closes all connections and accepts no more, as when the proxy's process is killed. */
  public synchronized void kill() throws IOException {
    listener.close();
    cut();
  }

  /** Accepts connections again after {@link #kill}. */
  public synchronized void restart() throws IOException {
    listener = new ServerSocket();
    listener.setReuseAddress(true);
    listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
    serve(listener);
  }

  /** Closes all connections. */
  public void cut() {
    sockets.forEach(TcpProxy::close);
  }

  /** Holds back all bytes, or lets them pass again. */
  public void stall(boolean isStalled) {
    this.isStalled = isStalled;
  }

  /** Passes requests, and closes the connection in place of each reply. */
  public void dropReplies(boolean dropsReplies) {
    this.dropsReplies = dropsReplies;
  }

  @Override
  public void close() throws IOException {
    kill();
  }

  private void serve(ServerSocket from) {
    start(
        () -> {
          while (true) {
            Socket client = from.accept();
            sockets.add(client);
            try {
              Socket server = new Socket(InetAddress.getLoopbackAddress(), target);
              sockets.add(server);
              start(() -> pump(client, server, false));
              start(() -> pump(server, client, true));
            } catch (IOException e) {
              close(client);
            }
          }
        });
  }

  private void pump(Socket from, Socket to, boolean isReply) throws IOException {
    try (from;
        to) {
      InputStream in = from.getInputStream();
      OutputStream out = to.getOutputStream();
      byte[] buffer = new byte[8192];
      for (int size; (size = in.read(buffer)) > 0; ) {
        while (isStalled && !from.isClosed()) Thread.sleep(5);
        if (isReply && dropsReplies) return;
        out.write(buffer, 0, size);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } finally {
      sockets.remove(from);
      sockets.remove(to);
    }
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
                // The connection, or the proxy, has ended.
              }
            });
    thread.setDaemon(true);
    thread.start();
  }

  private static void close(Socket socket) {
    try {
      socket.close();
    } catch (IOException e) {
      // It is closed anyway.
    }
  }
}
