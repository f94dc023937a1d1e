/**
 * The lock server lockd in Spring: a lock registry of Spring Integration, and the configuration
 * that Spring Boot makes of the properties {@code lockd.*}.
 */
package lockd.spring;
