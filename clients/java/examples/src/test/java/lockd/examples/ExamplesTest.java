package lockd.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import lockd.LockdClient;
import lockd.spring.LockdLockRegistry;
import lockd.testing.Await;
import lockd.testing.LockdServer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.integration.leader.DefaultCandidate;

/** The examples do what the pages say of them. */
class ExamplesTest {
  private static final long TICK_MS = 3000;

  @TempDir Path directory;

  private Process start(Class<?> program, Path log, String... arguments) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx256m"));
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), program.getName()));
    command.addAll(List.of(arguments));
    return new ProcessBuilder(command)
        .redirectErrorStream(true)
        .redirectOutput(log.toFile())
        .start();
  }

  private List<String> output(Class<?> program, String server) throws Exception {
    Path log = directory.resolve(program.getSimpleName());
    assertEquals(0, start(program, log, server).waitFor());
    return Files.readAllLines(log).stream()
        .map(line -> line.replaceAll("fence \\d+", "fence N"))
        .toList();
  }

  @Test
  void lockIsHeldForThreeSteps() throws Exception {
    try (LockdServer server = LockdServer.inMemory()) {
      assertEquals(
          List.of("step 1 under fence N", "step 2 under fence N", "step 3 under fence N"),
          output(HoldLock.class, server.address()));
      try (LockdClient client = LockdClient.connect(server.address());
          var lock = client.acquire("my-job")) {
        client.acquireAsync("my-job", lockd.LockOptions.DEFAULT).cancel(true);
        assertTrue(lock.isHeld());
      }
    }
  }

  @Test
  void tourDoesWhatItSays() throws Exception {
    try (LockdServer server = LockdServer.inMemory()) {
      List<String> lines = output(Tour.class, server.address());
      assertEquals("invoice/7 29 s true", lines.get(0));
      assertTrue(lines.get(1).matches("tour/[0-9a-f]{16}, waiters: 0"), lines.get(1));
      assertEquals(
          List.of(
              "fence N",
              "a third: false",
              "a job of four under fence N",
              "a writer: false",
              "[seat-12, prices, cores] under one fence: true"),
          lines.subList(2, 7));
      assertEquals("done", lines.get(lines.size() - 1));
    }
  }

  @Test
  void warehouseLocksItsShelves() throws Exception {
    try (LockdServer server = LockdServer.inMemory();
        LockdClient client = LockdClient.connect(server.address())) {
      Warehouse warehouse = new Warehouse(new LockdLockRegistry(client));
      assertEquals(1, warehouse.take("a"));
      assertTrue(warehouse.tryTake("a"));
      var initiator = Warehouse.initiator(client, new DefaultCandidate("one", "role"));
      initiator.start();
      Await.until("it leads", () -> initiator.getContext().isLeader());
      assertTrue(server.isHeld("registry/role"));
      initiator.stop();
    }
  }

  /** Two processes, a tick of three seconds, and kill -9 of the server and of a process. */
  @Test
  void scheduledJobRunsOnceATickThroughKilledServersAndProcesses() throws Exception {
    Path journal = directory.resolve("report.txt");
    try (LockdServer server = LockdServer.withJournal()) {
      Process one = startReport(server, journal, "one");
      Process two = startReport(server, journal, "two");
      try {
        awaitRuns(journal, 2);
        server.kill();
        server.start();
        awaitRuns(journal, runs(journal).size() + 2);
        String last = runs(journal).get(runs(journal).size() - 1);
        boolean isOne = last.endsWith(" " + one.pid());
        (isOne ? one : two).destroyForcibly().waitFor(); // the one that ran last
        int before = runs(journal).size();
        Await.until(
            "the other process takes over",
            () ->
                runs(journal).stream()
                    .skip(before)
                    .anyMatch(run -> run.endsWith(" " + (isOne ? two : one).pid())));
      } finally {
        one.destroyForcibly().waitFor();
        two.destroyForcibly().waitFor();
      }
    }
    // A trigger may be early by a millisecond or late by a little.
    Map<Long, List<String>> byTick =
        runs(journal).stream()
            .collect(
                Collectors.groupingBy(run -> (Long.parseLong(run.split(" ")[0]) + 100) / TICK_MS));
    byTick.forEach((tick, runs) -> assertEquals(1, runs.size(), () -> "one tick has " + runs));
  }

  private Process startReport(LockdServer server, Path journal, String name) throws Exception {
    return start(
        ScheduledReport.class,
        directory.resolve(name),
        "--lockd.servers=" + server.address(),
        "--report.file=" + journal,
        "--report.cron=*/3 * * * * *",
        "--report.at-least=2600ms",
        "--report.at-most=2800ms");
  }

  private static List<String> runs(Path journal) throws IOException {
    return Files.exists(journal) ? Files.readAllLines(journal) : List.of();
  }

  private static void awaitRuns(Path journal, int count) throws Exception {
    Await.until(count + " runs", () -> runs(journal).size() >= count);
  }
}
