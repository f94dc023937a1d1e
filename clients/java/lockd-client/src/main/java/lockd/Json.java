package lockd;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Json: a strict reader and writer of what the HTTP API sends.
 *
 * <p>Values are {@code Map<String, Object>}, {@code List<Object>}, {@code String}, {@code Long},
 * {@code Double}, {@code Boolean} and null. The reader refuses everything that RFC 8259 refuses,
 * and also a member that is given twice, half a surrogate pair, and nesting deeper than 32.
 */
final class Json {
  private static final int DEPTH_MAX = 32;

  private final String text;
  private int at;
  private int depth;

  private Json(String text) {
    this.text = text;
  }

  /** The text is not JSON. */
  static final class Malformed extends Exception {
    private static final long serialVersionUID = 1;

    Malformed(String message) {
      super(message);
    }
  }

  static Object parse(byte[] utf8) throws Malformed {
    try {
      // A decoder of its own reports malformed input; String would replace it.
      return parse(StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(utf8)).toString());
    } catch (CharacterCodingException e) {
      throw new Malformed("not UTF-8");
    }
  }

  static Object parse(String text) throws Malformed {
    Json json = new Json(text);
    Object value = json.value();
    json.skipSpace();
    if (json.at != text.length()) throw json.malformed("text after the value");
    return value;
  }

  /** Writes a map, a list, a string, a number, a boolean or null. */
  static String write(Object value) {
    StringBuilder out = new StringBuilder();
    write(value, out);
    return out.toString();
  }

  private static void write(Object value, StringBuilder out) {
    if (value instanceof Map<?, ?> map) {
      String separator = "{";
      for (Map.Entry<?, ?> member : map.entrySet()) {
        out.append(separator);
        writeString((String) member.getKey(), out);
        out.append(':');
        write(member.getValue(), out);
        separator = ",";
      }
      out.append(map.isEmpty() ? "{}" : "}");
    } else if (value instanceof List<?> list) {
      String separator = "[";
      for (Object item : list) {
        out.append(separator);
        write(item, out);
        separator = ",";
      }
      out.append(list.isEmpty() ? "[]" : "]");
    } else if (value instanceof String string) {
      writeString(string, out);
    } else {
      out.append(value);
    }
  }

  private static void writeString(String string, StringBuilder out) {
    out.append('"');
    for (int i = 0; i < string.length(); i++) {
      char c = string.charAt(i);
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (c < 0x20 || c == 0x7f) {
        out.append(String.format("\\u%04x", (int) c));
      } else {
        out.append(c);
      }
    }
    out.append('"');
  }

  private Object value() throws Malformed {
    skipSpace();
    if (at == text.length()) throw malformed("the text ends before the value");
    return switch (text.charAt(at)) {
      case '{' -> object();
      case '[' -> array();
      case '"' -> string();
      case 't' -> word("true", true);
      case 'f' -> word("false", false);
      case 'n' -> word("null", null);
      default -> number();
    };
  }

  private Map<String, Object> object() throws Malformed {
    enter();
    Map<String, Object> members = new LinkedHashMap<>();
    if (!skip('}')) {
      do {
        skipSpace();
        String name = string();
        expect(':');
        if (members.containsKey(name)) throw malformed("a member is given twice");
        members.put(name, value());
      } while (skip(','));
      expect('}');
    }
    depth--;
    return members;
  }

  private List<Object> array() throws Malformed {
    enter();
    List<Object> items = new ArrayList<>();
    if (!skip(']')) {
      do {
        items.add(value());
      } while (skip(','));
      expect(']');
    }
    depth--;
    return items;
  }

  private void enter() throws Malformed {
    at++;
    if (++depth > DEPTH_MAX) throw malformed("nested too deeply");
  }

  private String string() throws Malformed {
    if (at == text.length() || text.charAt(at) != '"') throw malformed("a string is missing");
    at++;
    StringBuilder out = new StringBuilder();
    while (true) {
      char c = next();
      if (c == '"') break;
      if (c < 0x20) throw malformed("a control character in a string");
      out.append(c == '\\' ? escaped() : c);
    }
    for (int i = 0; i < out.length(); i++) {
      if (!Character.isSurrogate(out.charAt(i))) continue;
      boolean isPair =
          Character.isHighSurrogate(out.charAt(i))
              && i + 1 < out.length()
              && Character.isLowSurrogate(out.charAt(i + 1));
      if (!isPair) throw malformed("half a surrogate pair");
      i++;
    }
    return out.toString();
  }

  private char escaped() throws Malformed {
    char c = next();
    return switch (c) {
      case '"', '\\', '/' -> c;
      case 'b' -> '\b';
      case 'f' -> '\f';
      case 'n' -> '\n';
      case 'r' -> '\r';
      case 't' -> '\t';
      case 'u' -> {
        int unit = 0;
        for (int i = 0; i < 4; i++) unit = 16 * unit + hexDigit(next());
        yield (char) unit;
      }
      default -> throw malformed("an unknown escape");
    };
  }

  private int hexDigit(char c) throws Malformed {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    throw malformed("no hexadecimal digit");
  }

  private Object word(String word, Object value) throws Malformed {
    if (!text.startsWith(word, at)) throw malformed("an unknown word");
    at += word.length();
    return value;
  }

  private Object number() throws Malformed {
    int begin = at;
    skip1('-');
    if (!skip1('0')) digits();
    boolean isWhole = true;
    if (skip1('.')) {
      isWhole = false;
      digits();
    }
    if (skip1('e') || skip1('E')) {
      isWhole = false;
      if (!skip1('+')) skip1('-');
      digits();
    }
    String number = text.substring(begin, at);
    try {
      if (isWhole) return Long.valueOf(number);
    } catch (NumberFormatException e) {
      throw malformed("a whole number of more than 64 bits");
    }
    return Double.valueOf(number);
  }

  private void digits() throws Malformed {
    int begin = at;
    while (at < text.length() && text.charAt(at) >= '0' && text.charAt(at) <= '9') at++;
    if (at == begin) throw malformed("a digit is missing");
  }

  private char next() throws Malformed {
    if (at == text.length()) throw malformed("the text ends in a string");
    return text.charAt(at++);
  }

  private void expect(char c) throws Malformed {
    if (!skip(c)) throw malformed("'" + c + "' is missing");
  }

  private boolean skip(char c) {
    skipSpace();
    return skip1(c);
  }

  private boolean skip1(char c) {
    if (at == text.length() || text.charAt(at) != c) return false;
    at++;
    return true;
  }

  private void skipSpace() {
    while (at < text.length() && " \t\n\r".indexOf(text.charAt(at)) >= 0) at++;
  }

  private Malformed malformed(String what) {
    return new Malformed(what + " at character " + at);
  }
}
