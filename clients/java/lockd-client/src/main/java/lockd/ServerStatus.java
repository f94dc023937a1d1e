package lockd;

import java.util.List;

/**
 * What a server that serves replied about itself and this client.
 *
 * @param server the address of the server, or of the leader of a cluster
 * @param principal the name of the auth token or certificate, or an empty string if none was needed
 * @param rights what this client may do, such as {@code lock}
 */
public record ServerStatus(String server, String principal, List<String> rights) {}
