package lockd.spring;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import lockd.HeldLock;
import lockd.LockdClient;
import lockd.shedlock.LockdLockProvider;
import lockd.testing.LockdServer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.actuate.health.Status;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.core.env.SystemEnvironmentPropertySource;
import org.springframework.integration.support.locks.DefaultLockRegistry;
import org.springframework.integration.support.locks.LockRegistry;

/** What Spring Boot makes of the properties. */
class AutoConfigurationTest {
  private static final String TOKEN = "a-token-of-this-test";
  private static LockdServer server;
  @TempDir static Path directory;
  private static Path tokenFile;

  private final ApplicationContextRunner application =
      new ApplicationContextRunner()
          .withConfiguration(
              AutoConfigurations.of(
                  LockdAutoConfiguration.class, LockdHealthAutoConfiguration.class))
          .withPropertyValues(
              "lockd.servers=" + server.address(), "lockd.auth-token-file=" + tokenFile);

  @BeforeAll
  static void start() throws Exception {
    server = LockdServer.inMemory("--auth-token", TOKEN).token(TOKEN);
    tokenFile = Files.writeString(directory.resolve("token"), TOKEN + "\n");
  }

  @AfterAll
  static void stop() throws Exception {
    server.close();
  }

  @Test
  void clientRegistryProviderAndHealthAreConfigured() {
    application
        .withPropertyValues(
            "lockd.name=app", "lockd.lease=20s", "lockd.registry.key-prefix=my-registry/")
        .run(
            context -> {
              assertThat(context).hasSingleBean(LockdLockProvider.class);
              assertThat(context.getBean(LockdHealthIndicator.class).health().getStatus())
                  .isEqualTo(Status.UP);
              assertThat(context.getBean(LockdHealthIndicator.class).health().getDetails())
                  .containsEntry("server", server.address());
              LockdLock lock = context.getBean(LockdLockRegistry.class).obtain("k");
              lock.lock();
              assertThat(server.isHeld("my-registry/k")).isTrue();
              lock.unlock();
              HeldLock held = context.getBean(LockdClient.class).acquire("direct");
              assertThat(held.holder()).startsWith("app/");
              assertThat(held.lease()).hasSeconds(20);
            });
  }

  @Test
  void closedApplicationReleasesItsLocks() throws Exception {
    application.run(context -> context.getBean(LockdClient.class).acquire("until-closed"));
    assertThat(server.isHeld("until-closed")).isFalse();
  }

  @Test
  void variablesOfTheEnvironmentAreProperties() {
    new ApplicationContextRunner()
        .withConfiguration(AutoConfigurations.of(LockdAutoConfiguration.class))
        .withInitializer(
            context ->
                context
                    .getEnvironment()
                    .getPropertySources()
                    .addFirst(
                        new SystemEnvironmentPropertySource(
                            "test-systemEnvironment",
                            java.util.Map.of(
                                "LOCKD_SERVERS", server.address(),
                                "LOCKD_AUTH_TOKEN_FILE", tokenFile.toString()))))
        .run(
            context ->
                assertThat(context.getBean(LockdClient.class).tryAcquire("environment"))
                    .isPresent());
  }

  @Test
  void healthIsDownWithoutAServerAndWithAWrongToken() throws Exception {
    Path wrong = Files.writeString(directory.resolve("wrong"), "another-token\n");
    application
        .withPropertyValues("lockd.auth-token-file=" + wrong)
        .run(
            context ->
                assertThat(context.getBean(LockdHealthIndicator.class).health().getStatus())
                    .isEqualTo(Status.DOWN));
    application
        .withPropertyValues("lockd.servers=127.0.0.1:1", "lockd.connect-timeout=200ms")
        .run(
            context ->
                assertThat(context.getBean(LockdHealthIndicator.class).health().getStatus())
                    .isEqualTo(Status.DOWN));
  }

  @Test
  void beansOfTheApplicationReplaceThoseOfTheConfiguration() {
    application
        .withBean(DefaultLockRegistry.class)
        .run(context -> assertThat(context).doesNotHaveBean(LockdLockRegistry.class));
    application
        .withPropertyValues("lockd.enabled=false")
        .run(context -> assertThat(context).doesNotHaveBean(LockdClient.class));
    application
        .withPropertyValues("management.health.lockd.enabled=false")
        .run(context -> assertThat(context).doesNotHaveBean(LockdHealthIndicator.class));
  }

  @Test
  void clientIsConfiguredWithoutTheOptionalLibraries() {
    new ApplicationContextRunner()
        .withConfiguration(AutoConfigurations.of(LockdAutoConfiguration.class))
        .withPropertyValues("lockd.servers=" + server.address())
        .withClassLoader(
            new FilteredClassLoader("org.springframework.integration", "net.javacrumbs"))
        .run(
            context -> {
              assertThat(context).hasSingleBean(LockdClient.class);
              assertThat(context).doesNotHaveBean(LockRegistry.class);
            });
  }

  @Test
  void missingServersAreNamed() {
    new ApplicationContextRunner()
        .withConfiguration(AutoConfigurations.of(LockdAutoConfiguration.class))
        .run(
            context ->
                assertThat(context.getStartupFailure())
                    .rootCause()
                    .hasMessageContaining("lockd.servers"));
  }
}
