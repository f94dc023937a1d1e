package lockd;

import java.net.URI;
import java.net.URISyntaxException;
import java.util.Locale;

/** Address: where the HTTP port of a server is. {@code host}, {@code host:port} or a URL. */
record Address(boolean tls, String host, int port) {
  static final int DEFAULT_PORT = 8080;

  /**
   * Parses {@code host}, {@code host:port}, {@code [::1]:8080}, {@code http://host:port} or {@code
   * https://host:port}. Without a scheme, {@code tls} decides.
   */
  static Address parse(String text, boolean tls) {
    try {
      boolean hasScheme = text.contains("://");
      URI uri = new URI(hasScheme ? text : "lockd://" + text);
      String scheme = uri.getScheme().toLowerCase(Locale.ROOT);
      boolean isPlain = uri.getPath().isEmpty() || uri.getPath().equals("/");
      boolean isKnown = !hasScheme || scheme.equals("http") || scheme.equals("https");
      boolean isBare =
          uri.getUserInfo() == null && uri.getQuery() == null && uri.getFragment() == null;
      if (uri.getHost() != null && isPlain && isKnown && isBare && uri.getPort() < 65536) {
        int port = uri.getPort() > 0 ? uri.getPort() : DEFAULT_PORT;
        boolean isTls = hasScheme ? scheme.equals("https") : tls;
        return new Address(isTls, uri.getHost().toLowerCase(Locale.ROOT), port);
      }
    } catch (URISyntaxException e) {
      // Reported below, with the forms that are accepted.
    }
    throw new IllegalArgumentException(
        "a server is host, host:port, http://host:port or https://host:port, not '" + text + "'");
  }

  URI uri(String path) {
    return URI.create((tls ? "https://" : "http://") + this + path);
  }

  @Override
  public String toString() {
    return host + ":" + port;
  }
}
