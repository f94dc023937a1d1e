package lockd.spring;

import lockd.LockdClient;
import org.springframework.boot.actuate.autoconfigure.health.ConditionalOnEnabledHealthIndicator;
import org.springframework.boot.actuate.health.HealthIndicator;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;

/** A health indicator of the client, if Spring Boot's actuator is present. */
@AutoConfiguration(after = LockdAutoConfiguration.class)
@ConditionalOnClass({HealthIndicator.class, ConditionalOnEnabledHealthIndicator.class})
@ConditionalOnBean(LockdClient.class)
@ConditionalOnEnabledHealthIndicator("lockd")
public class LockdHealthAutoConfiguration {
  /** The indicator. */
  @Bean
  @ConditionalOnMissingBean(name = "lockdHealthIndicator")
  public LockdHealthIndicator lockdHealthIndicator(LockdClient client) {
    return new LockdHealthIndicator(client);
  }
}
