package lockd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The parts that need no server: JSON, clock, addresses, the search for a leader, settings. */
class UnitTest {
  @TempDir Path directory;

  @Test
  void jsonOfEachKindIsRead() throws Exception {
    Object value =
        Json.parse(" {\"a\" : [1,-2,0.5,1e3,true,false,null,{}] ,\"b\":\"x\",\"c\":[]}\n");
    Map<String, Object> expected = new LinkedHashMap<>();
    List<Object> list = new java.util.ArrayList<>(List.of(1L, -2L, 0.5, 1000.0, true, false));
    list.add(null);
    list.add(Map.of());
    expected.put("a", list);
    expected.put("b", "x");
    expected.put("c", List.of());
    assertEquals(expected, value);
  }

  @Test
  void jsonEscapesAreRead() throws Exception {
    assertEquals("\"\\/\b\f\n\r\t", Json.parse("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""));
    assertEquals("Aé\u0000€", Json.parse("\"\\u0041\\u00e9\\u0000\\u20AC\""));
    assertEquals("😀", Json.parse("\"\\ud83d\\uDE00\""));
    assertEquals("😀é", Json.parse("\"😀é\"".getBytes(StandardCharsets.UTF_8)));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        " ",
        "{",
        "[",
        "[1",
        "[1,",
        "[1,]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{,}",
        "nul",
        "True",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "+1",
        "0x1",
        "NaN",
        "1 2",
        "[1]]",
        "'a'",
        "\"a",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\ud83d\"",
        "\"\\ude00\"",
        "\"\\ud83da\"",
        "\"\n\"",
        "{\"a\":1,\"a\":2}",
        "99999999999999999999",
        "\"\\",
        "[1 2]",
        "{\"a\" 1}",
        "\u00a01"
      })
  void jsonThatIsNoneIsRefused(String text) {
    assertThrows(Json.Malformed.class, () -> Json.parse(text));
  }

  @Test
  void jsonOfBrokenUtf8AndOfDeepNestingIsRefused() {
    assertThrows(Json.Malformed.class, () -> Json.parse(new byte[] {'"', (byte) 0xc0, '"'}));
    assertThrows(Json.Malformed.class, () -> Json.parse("[".repeat(100_000)));
  }

  @Test
  void jsonThatIsWrittenIsReadAgain() throws Exception {
    Map<String, Object> body = new LinkedHashMap<>();
    body.put("key", "a\"\\\n\u0001\u007f/é😀");
    body.put("list", List.of(Map.of("n", 1L), List.of(), Map.of()));
    body.put("yes", true);
    String text = Json.write(body);
    assertEquals(body, Json.parse(text));
    assertTrue(text.contains("a\\\"\\\\\\u000a\\u0001\\u007f/é😀"), text);
  }

  @Test
  void clockCountsSuspendAndNeverGoesBack() {
    AtomicLong monotonic = new AtomicLong(1_000);
    AtomicLong counting = new AtomicLong(5_000_000_000L);
    Clock clock = new Clock(monotonic::get, counting::get);
    long begin = clock.now();
    monotonic.addAndGet(7_000_000_000L);
    counting.addAndGet(7_000_000_000L);
    assertEquals(7_000_000_000L, clock.now() - begin);
    counting.addAndGet(60_000_000_000L); // suspended: the monotonic clock stands still
    long after = clock.now() - begin;
    assertTrue(after >= 67_000_000_000L && after <= 67_020_000_000L, () -> "after " + after);
    counting.addAndGet(-3_600_000_000_000L); // a wall clock that is set back
    assertEquals(after, clock.now() - begin);
    monotonic.addAndGet(1_000_000);
    assertEquals(after + 1_000_000, clock.now() - begin);
  }

  @Test
  void systemClockAdvancesAsTheMonotonicOne() throws Exception {
    long begin = Clock.SYSTEM.now();
    long monotonic = System.nanoTime();
    Thread.sleep(50);
    long passed = System.nanoTime() - monotonic;
    assertTrue(Clock.SYSTEM.now() - begin >= passed);
  }

  @Test
  void addressesAreParsed() {
    assertEquals(new Address(false, "locks.example", 8080), Address.parse("Locks.Example", false));
    assertEquals(new Address(true, "10.0.0.1", 81), Address.parse("10.0.0.1:81", true));
    assertEquals(new Address(false, "[::1]", 81), Address.parse("[::1]:81", false));
    assertEquals(new Address(true, "a", 443), Address.parse("https://a:443/", false));
    assertEquals(new Address(false, "a", 8080), Address.parse("http://a", true));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"", ":1", "a b", "a:b", "a:99999", "ftp://a", "http://a/x", "u@a", "a?b", "::1"})
  void addressesThatAreNoneAreRefused(String text) {
    assertThrows(IllegalArgumentException.class, () -> Address.parse(text, false));
  }

  private static Cluster cluster(String... servers) {
    return new Cluster(java.util.Arrays.stream(servers).map(s -> Address.parse(s, false)).toList());
  }

  private static String follow(Cluster.Search search, String leader) {
    search.moveOn(new UnreachableException.NotServed("follows", leader));
    return search.here().host();
  }

  @Test
  void searchFollowsANamedLeaderOnlyIfItWasGiven() {
    Cluster.Search search = cluster("a", "b", "c").search();
    assertEquals("c", follow(search, "c:8080"));
    assertEquals("b", follow(search, "elsewhere:8080"));
    assertTrue(search.verdict().getMessage().contains("elsewhere:8080"));
  }

  @Test
  void searchVisitsEachServerOnceARoundAndThenPauses() {
    Cluster.Search search = cluster("a", "b", "c").search();
    assertEquals("b", follow(search, "b:8080"));
    assertEquals("c", follow(search, "a:8080")); // a was asked already
    var failure = new UnreachableException("silent", null);
    assertEquals(0, search.moveOn(failure)); // the second round begins at once
    for (int i = 0; i < 2; i++) assertEquals(0, search.moveOn(failure));
    assertTrue(search.moveOn(failure) > 0);
  }

  @Test
  void searchEndsWhenEachServerRefusesTheClient() {
    Cluster.Search search = cluster("a", "b").search();
    var refusal = new RefusedException("wrong auth token", 401, "unauthorized");
    search.moveOn(refusal);
    assertEquals(refusal, assertThrows(RefusedException.class, () -> search.moveOn(refusal)));
  }

  @Test
  void searchBeginsWithTheLeaderThatWasFoundLast() {
    Cluster cluster = cluster("a", "b", "c");
    Cluster.Search search = cluster.search();
    follow(search, "c:8080");
    search.found();
    assertEquals("c", cluster.search().here().host());
  }

  @Test
  void keysAreSharedByCrc32AsInAllClients() {
    // The check values of the line protocol's page.
    assertEquals(2, LockdClient.shardOf("my-key", 3));
    assertEquals(0xcbf43926L % 7, LockdClient.shardOf("123456789", 7));
  }

  @Test
  void impossibleRequestsAreRefusedBeforeTheyAreSent() {
    assertThrows(IllegalArgumentException.class, () -> LockItem.lock(""));
    assertThrows(IllegalArgumentException.class, () -> LockItem.lock("a\nb"));
    assertThrows(IllegalArgumentException.class, () -> LockItem.lock("\ud83d"));
    assertThrows(IllegalArgumentException.class, () -> LockItem.lock("é".repeat(129)));
    assertEquals("é".repeat(128), LockItem.lock("é".repeat(128)).key());
    assertThrows(IllegalArgumentException.class, () -> LockItem.semaphore("a", 0, 1));
    assertThrows(IllegalArgumentException.class, () -> LockItem.semaphore("a", 2, 3));
    LockOptions options = LockOptions.DEFAULT;
    assertThrows(IllegalArgumentException.class, () -> options.waitAtMost(Duration.ofMillis(-1)));
    assertThrows(IllegalArgumentException.class, () -> options.lease(Duration.ofNanos(999_999)));
    assertThrows(IllegalArgumentException.class, () -> options.maxHold(Duration.ZERO));
    assertThrows(IllegalArgumentException.class, () -> options.note("x".repeat(257)));
    assertThrows(IllegalArgumentException.class, () -> LockdClient.builder().build());
    assertThrows(IllegalArgumentException.class, () -> cluster("a", "A"));
    try (LockdClient client = LockdClient.builder().servers("a", "b").build()) {
      var keys = List.of(LockItem.lock("my-key"), LockItem.lock("123456789")); // at two servers
      assertThrows(IllegalArgumentException.class, () -> client.acquireAll(keys, options));
      assertThrows(IllegalArgumentException.class, () -> client.acquireAll(List.of(), options));
    }
  }

  @Test
  void environmentNamesServersTokenAndAuthority() throws Exception {
    Map<String, String> variables = new java.util.HashMap<>();
    assertThrows(IllegalArgumentException.class, () -> environment(variables));
    variables.put("LOCKD_SERVERS", "a:1, b:2");
    environment(variables).close();
    variables.put("LOCKD_CLUSTER", "c:3");
    assertThrows(IllegalArgumentException.class, () -> environment(variables));
    variables.remove("LOCKD_SERVERS");
    Path none = Files.writeString(directory.resolve("ca.pem"), "no certificate\n");
    variables.put("LOCKD_TLS_CA", none.toString());
    assertThrows(IllegalArgumentException.class, () -> environment(variables));
  }

  private static LockdClient environment(Map<String, String> variables) {
    return LockdClient.builder().environment(variables::get).build();
  }

  @Test
  void tokenFileIsReadAgainAndItsFirstLineIsTheToken() throws Exception {
    Path file = Files.writeString(directory.resolve("token"), "first\nsecond\n");
    AuthToken token = new AuthToken(null, file);
    assertEquals("first", token.read());
    Files.writeString(file, "next");
    assertEquals("next", token.read());
    Files.writeString(file, "a b\n");
    var failure = assertThrows(UnreachableException.class, token::read);
    assertFalse(failure.getMessage().contains("a b"), "the message quotes the token");
    Files.delete(file);
    assertThrows(UnreachableException.class, token::read);
    new ProcessBuilder("mkfifo", file.toString()).start().waitFor();
    assertThrows(UnreachableException.class, token::read); // and does not block
    assertNull(new AuthToken(null, null).read());
  }

  @Test
  void workersAreVirtualWhereTheRuntimeHasThem() throws Exception {
    var isVirtual =
        Workers.create()
            .submit(
                () -> {
                  try {
                    return Thread.class.getMethod("isVirtual").invoke(Thread.currentThread());
                  } catch (NoSuchMethodException e) {
                    return false;
                  }
                })
            .get();
    assertEquals(Runtime.version().feature() >= 21, isVirtual);
  }
}
