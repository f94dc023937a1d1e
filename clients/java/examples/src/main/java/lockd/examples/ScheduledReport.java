package lockd.examples;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import net.javacrumbs.shedlock.spring.annotation.EnableSchedulerLock;
import net.javacrumbs.shedlock.spring.annotation.SchedulerLock;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.scheduling.annotation.Scheduled;

/** A job that runs once a minute, in one of the processes of this application. */
@SpringBootApplication
@EnableScheduling
@EnableSchedulerLock(defaultLockAtMostFor = "50s")
public class ScheduledReport {
  private final Path journal;

  public ScheduledReport(@Value("${report.file:report.txt}") Path journal) {
    this.journal = journal;
  }

  public static void main(String[] arguments) {
    SpringApplication.run(ScheduledReport.class, arguments);
  }

  // Kept for 50 seconds, so that a process whose clock is late does not run it again.
  @Scheduled(cron = "${report.cron:0 * * * * *}")
  @SchedulerLock(
      name = "report",
      lockAtMostFor = "${report.at-most:50s}",
      lockAtLeastFor = "${report.at-least:50s}")
  public void report() throws IOException {
    String line = System.currentTimeMillis() + " " + ProcessHandle.current().pid() + "\n";
    Files.writeString(journal, line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
  }
}
