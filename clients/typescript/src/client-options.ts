/** What a client may be told when it is made. */

/** TLS 1.2 or later. The server's certificate must name the host that was asked for. */
export interface TlsOptions {
  /** A file, PEM: whom to believe. Without it, the authorities that Node knows. */
  caFile?: string | undefined;
  /** A file, PEM, with its chain: for servers that ask who the client is. */
  certificate?: string | undefined;
  /** A file, PEM, of the certificate; without it, the key is in the same file. */
  key?: string | undefined;
  /** Whom the server's certificate must name, when it is not the host of the address. */
  serverName?: string | undefined;
  /** False believes anybody who answers. */
  verify?: boolean | undefined;
}

/** All times are in milliseconds. */
export interface ClientOptions {
  /**
   * `host` or `host:port`, one or several. Several share the keys among them: all clients must have
   * the same list, in the same order. Without any it is `127.0.0.1:6388`.
   */
  servers?: string | readonly string[] | undefined;
  /**
   * Instead of `servers`: those of one cluster, in any order. The one that leads is looked for among
   * these, and nowhere else, whomever they name.
   */
  cluster?: string | readonly string[] | undefined;
  /** The auth token. */
  token?: string | undefined;
  /** Instead of `token`: the file whose first line it is, read for every connection. */
  tokenFile?: string | undefined;
  /** `true`, or what more there is to say. */
  tls?: boolean | TlsOptions | undefined;
  /** What operators are shown; without it `user@host:pid`. */
  name?: string | undefined;
  /** What operators are shown beside the name; without it the program's base name. */
  note?: string | undefined;
  /** Bounds one connection with its handshakes, and the search for a leader. 10 seconds. */
  connectTimeout?: number | undefined;
  /** Bounds a reply, beyond what the request asked to wait. 10 seconds. */
  replyTimeout?: number | undefined;
  /** Bounds a release, at however many servers. 5 seconds. */
  releaseTimeout?: number | undefined;
  /** Is told of servers that are asked again, and of locks that are not renewed. Without it, `NODE_DEBUG=lockd` shows it. */
  warn?: ((message: string) => void) | undefined;
}
