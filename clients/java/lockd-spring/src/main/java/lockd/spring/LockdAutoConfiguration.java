package lockd.spring;

import lockd.LockOptions;
import lockd.LockdClient;
import lockd.shedlock.LockdLockProvider;
import net.javacrumbs.shedlock.core.LockProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.integration.support.locks.LockRegistry;

/**
 * What Spring Boot configures of the properties {@code lockd.*}: a client, and on it a lock
 * registry if Spring Integration is present, and a lock provider if ShedLock and lockd-shedlock
 * are. A bean of the application replaces each.
 */
@AutoConfiguration
@ConditionalOnProperty(name = "lockd.enabled", matchIfMissing = true)
@EnableConfigurationProperties(LockdProperties.class)
public class LockdAutoConfiguration {
  /** The client, which is closed with the application. */
  @Bean(destroyMethod = "close")
  @ConditionalOnMissingBean
  public LockdClient lockdClient(LockdProperties properties) {
    return properties.createClient();
  }

  /** Spring Integration. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass(LockRegistry.class)
  static class RegistryConfiguration {
    @Bean
    @ConditionalOnMissingBean(LockRegistry.class)
    LockdLockRegistry lockdLockRegistry(LockdClient client, LockdProperties properties) {
      return new LockdLockRegistry(client, properties.registry().keyPrefix(), LockOptions.DEFAULT);
    }
  }

  /** ShedLock. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass({LockProvider.class, LockdLockProvider.class})
  static class ShedLockConfiguration {
    @Bean
    @ConditionalOnMissingBean(LockProvider.class)
    LockdLockProvider lockdLockProvider(LockdClient client, LockdProperties properties) {
      return new LockdLockProvider(client, properties.shedlock().keyPrefix());
    }
  }
}
