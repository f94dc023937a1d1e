package lockd;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * AuthToken: what a request shows to the server. A token file is read again for every request, so a
 * token that was rotated is used without a restart of the program.
 */
final class AuthToken {
  private static final int SIZE_MAX = 4096;

  private final String fixed;
  private final Path file;

  AuthToken(String fixed, Path file) {
    if (fixed != null) check(fixed);
    this.fixed = fixed;
    this.file = file;
  }

  /** The token, or null if requests show none. */
  String read() {
    if (file == null) return fixed;
    // A FIFO would block until another process opens it.
    if (!Files.isRegularFile(file)) {
      throw new UnreachableException.NotSent(
          "the token file " + file + " is no regular file", null);
    }
    try (InputStream in = Files.newInputStream(file)) {
      String text = new String(in.readNBytes(SIZE_MAX), StandardCharsets.UTF_8);
      String line = text.lines().findFirst().orElse("");
      check(line);
      return line;
    } catch (IOException | IllegalArgumentException e) {
      throw new UnreachableException.NotSent("the token file " + file + ": " + e.getMessage(), e);
    }
  }

  // The message never quotes the token.
  private static void check(String token) {
    if (token.isEmpty() || !token.chars().allMatch(c -> c > 0x20 && c < 0x7f)) {
      throw new IllegalArgumentException("an auth token is printable ASCII without spaces");
    }
  }
}
