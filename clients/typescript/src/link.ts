/** One connection to one server: requests go out, replies come back in order, pushes in between. */

import { connect, isIP, type Socket } from "node:net";
import { checkServerIdentity, type TLSSocket, connect as tlsConnect } from "node:tls";

import { now } from "./clock.js";
import type { Endpoint } from "./cluster.js";
import {
  Disconnected,
  Garbled,
  LockdError,
  NoReply,
  Refused,
  Unauthorized,
  Unreachable,
  Untrusted,
} from "./errors.js";
import type { Tls } from "./options.js";
import { check, lossOf, shown, signalOf } from "./replies.js";
import type { Signal } from "./values.js";
import { Latch, type Scope, waitUntil } from "./waiting.js";

const LINE_SIZE_MAX = 1024 * 1024;
export const STATS_SIZE_MAX = 256 * 1024 * 1024;
const LOSSES_MAX = 64;
const KEEPALIVE_MS = 15_000;
const NEWLINE = 10;
const CARRIAGE_RETURN = 13;

export interface Reply {
  readonly line: string;
  /** Just before the first byte of the request left. */
  readonly sentAt: number;
}

export interface AskOptions {
  replySizeMax?: number;
  /** For a caller that gives up while others use the connection. */
  staysOpen?: boolean;
}

/** A reply that is awaited. Set when it came, or when it cannot come any more. */
class Awaited extends Latch {
  #line: string | undefined;
  #failure: LockdError | undefined;

  constructor(readonly sizeMax: number) {
    super();
  }

  resolve(line: string): void {
    this.#line ??= line;
    this.set();
  }

  fail(failure: LockdError): void {
    this.#failure ??= failure;
    this.set();
  }

  take(): string {
    if (this.#line !== undefined) return this.#line;
    throw this.#failure ?? new Error("the reply is awaited");
  }
}

/**
 * Made by `open`. A call that ends without an answer closes it, unless told otherwise: nobody could
 * tell its late reply from that to the next request. It does not keep the process alive.
 */
export class Link {
  readonly closed = new Latch();
  /** Whether the server knows `client`, and so what came with it. */
  knowsClient = false;
  heardAt = now();
  onSignal: ((signal: Signal) => void) | undefined;
  /** Called with the token and the cause of what the server says is lost. */
  onLoss: ((token: string, cause: string) => void) | undefined;
  /** The same, of what was lost before anybody asked to be told. */
  readonly losses = new Map<string, string>();

  #socket: Socket | undefined;
  #failure: LockdError;
  #awaited: Awaited[] = [];
  #parts: Buffer[] = [];
  #partsSize = 0;

  private constructor(readonly endpoint: Endpoint) {
    this.#failure = new Disconnected(`${endpoint.address} ended the connection`);
  }

  /** Connects, verifies the server, authenticates, and says who this is. */
  static async open(scope: Scope, endpoint: Endpoint, until: number): Promise<Link> {
    const link = new Link(endpoint);
    try {
      await link.#dial(scope, until, endpoint.address.host);
      await link.#authenticate(scope, until);
      if (!endpoint.knowsClient || (await link.#introduce(scope, until))) return link;
    } catch (error) {
      link.abort();
      throw error;
    }
    // A server that does not know the command closes the connection: once more, without it.
    link.abort();
    return Link.open(scope, endpoint, until);
  }

  get isClosed(): boolean {
    return this.closed.isSet;
  }

  /** Whether nobody waits for a reply. */
  get isIdle(): boolean {
    return this.#awaited.length === 0;
  }

  /** Why it is closed. */
  get failure(): LockdError {
    return this.#failure;
  }

  /** Sends, for whoever does not care for the reply. */
  send(lines: string | Uint8Array): void {
    this.#send(lines, LINE_SIZE_MAX);
  }

  /** The reply, whatever it says, if it comes in time. */
  async ask(
    scope: Scope,
    lines: string | Uint8Array,
    until: number,
    { replySizeMax = LINE_SIZE_MAX, staysOpen = false }: AskOptions = {},
  ): Promise<Reply> {
    scope.check();
    const sentAt = now();
    const reply = this.#send(lines, replySizeMax);
    try {
      await waitUntil(scope, until, reply);
    } catch (cancelled) {
      if (!staysOpen) this.abort(cancelled instanceof LockdError ? cancelled : undefined);
      throw cancelled;
    }
    if (!reply.isSet) this.abort(new NoReply(`${this.endpoint.address} did not answer in time`));
    return { line: reply.take(), sentAt };
  }

  /** Closes at once: the server gives up what the connection had. */
  abort(why?: LockdError): void {
    this.#end(why);
    this.#socket?.destroy();
  }

  /** Closes as soon as what was sent has left. */
  close(): void {
    this.#end();
    this.#socket?.destroySoon();
  }

  // --- lines

  #send(lines: string | Uint8Array, replySizeMax: number): Awaited {
    const reply = new Awaited(replySizeMax);
    if (this.isClosed || this.#socket === undefined) {
      reply.fail(this.#failure);
    } else {
      this.#awaited.push(reply);
      this.#socket.write(lines);
    }
    return reply;
  }

  #receive(chunk: Buffer): void {
    this.heardAt = now();
    let start = 0;
    while (!this.isClosed) {
      const end = chunk.indexOf(NEWLINE, start);
      if (end < 0) break;
      this.#parts.push(chunk.subarray(start, end));
      start = end + 1;
      const line = this.#parts.length === 1 ? this.#parts[0] : Buffer.concat(this.#parts);
      this.#parts = [];
      this.#partsSize = 0;
      this.#take(withoutReturns(line ?? chunk));
    }
    if (this.isClosed) return;
    this.#parts.push(chunk.subarray(start));
    this.#partsSize += chunk.length - start;
    this.#checkSize(this.#partsSize);
  }

  #take(line: Buffer): void {
    if (!this.#checkSize(line.length)) return;
    const signal = signalOf(line);
    const loss = signal === undefined ? lossOf(line) : undefined;
    if (signal !== undefined) {
      this.onSignal?.(signal);
    } else if (loss !== undefined) {
      this.#takeLoss(loss.token, loss.cause);
    } else {
      const reply = this.#awaited.shift();
      if (reply === undefined) this.#takeUnasked(line.toString());
      else reply.resolve(line.toString());
    }
  }

  #takeLoss(token: string, cause: string): void {
    if (this.onLoss !== undefined) this.onLoss(token, cause);
    else if (this.losses.size < LOSSES_MAX) this.losses.set(token, cause);
  }

  /** As a server says that is about to close: it was silent for too long here, or it stops. */
  #takeUnasked(line: string): void {
    const server = this.endpoint.address;
    if (line.startsWith("error")) {
      this.abort(new Disconnected(`${server} ended the connection: ${shown(line)}`));
    } else {
      this.abort(new Garbled(`${server} answered what nobody asked: ${shown(line)}`));
    }
  }

  #checkSize(size: number): boolean {
    if (size <= (this.#awaited[0]?.sizeMax ?? LINE_SIZE_MAX)) return true;
    this.abort(new Garbled(`${this.endpoint.address} sent a line of ${size} bytes`));
    return false;
  }

  // --- opening

  async #dial(scope: Scope, until: number, host: string): Promise<void> {
    const address = this.endpoint.address;
    const tls = this.endpoint.options.tls;
    const socket = this.#connect(host, tls);
    this.#socket = socket;
    const settled = new Latch();
    let failure: Error | undefined;
    socket.once(tls === undefined ? "connect" : "secureConnect", () => settled.set());
    socket.once("close", () => settled.set());
    socket.once("error", (error) => {
      failure = error;
      settled.set();
    });
    await waitUntil(scope, until, settled);
    if (!settled.isSet) throw new Unreachable(`${address} did not answer in time`);
    if (failure === undefined && !socket.destroyed) {
      this.#adopt(socket);
      return;
    }
    socket.destroy();
    const known = this.endpoint.lastPeer;
    if (isOfNames(failure) && known !== undefined && known !== host) {
      await this.#dial(scope, until, known);
      return;
    }
    throw this.#whyUnreachable(socket, failure);
  }

  #connect(host: string, tls: Tls | undefined): Socket {
    const to = { host, port: this.endpoint.address.port, autoSelectFamily: true };
    let socket: Socket;
    if (tls === undefined) {
      socket = connect(to);
    } else {
      const name = tls.serverName ?? this.endpoint.address.host;
      socket = tlsConnect({
        ...to,
        secureContext: tls.context,
        rejectUnauthorized: tls.verify,
        servername: isIP(name) ? "" : name,
        checkServerIdentity: (_, certificate) => checkServerIdentity(name, certificate),
      });
    }
    return socket.unref();
  }

  #adopt(socket: Socket): void {
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEPALIVE_MS);
    this.endpoint.lastPeer = socket.remoteAddress;
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    socket.on("error", (error) => this.#end(this.#whyBroken(error)));
    for (const end of ["end", "close"]) socket.on(end, () => this.#end());
  }

  #whyUnreachable(socket: Socket, failure: Error | undefined): LockdError {
    const address = this.endpoint.address;
    if (this.endpoint.options.tls === undefined) {
      return new Unreachable(`${address} cannot be reached: ${told(failure)}`, { cause: failure });
    }
    if ((socket as TLSSocket).authorizationError) {
      return new Untrusted(`the certificate of ${address} cannot be verified: ${told(failure)}`, {
        cause: failure,
      });
    }
    if (failure !== undefined && isOfCertificate(failure)) return this.#whyBroken(failure);
    return new Unreachable(`no TLS with ${address}: ${told(failure)}`, { cause: failure });
  }

  #whyBroken(error: Error): LockdError {
    const address = this.endpoint.address;
    if (isOfCertificate(error)) {
      // With TLS 1.3 a server refuses a client's certificate after the handshake.
      return new Unauthorized(`${address} refused the certificate: ${error.message}`, {
        cause: error,
      });
    }
    return new Disconnected(`the connection with ${address} broke: ${error.message}`, {
      cause: error,
    });
  }

  async #authenticate(scope: Scope, until: number): Promise<void> {
    const auth = this.endpoint.options.auth();
    if (auth === undefined) return;
    const { line } = await this.ask(scope, auth, until);
    const address = this.endpoint.address;
    try {
      check(line);
    } catch (error) {
      if (error instanceof Unauthorized) {
        throw new Unauthorized(`${address} did not accept the auth token`);
      }
      // A server that asks for no auth token knows no `auth`.
      if (error instanceof Refused) {
        throw new Unauthorized(`${address} refused the auth token; it may ask for none`);
      }
      throw error;
    }
  }

  /** False when the server knows no `client`. */
  async #introduce(scope: Scope, until: number): Promise<boolean> {
    const { line } = await this.ask(scope, this.endpoint.options.identity, until);
    try {
      check(line);
      this.knowsClient = true;
    } catch (error) {
      if (error instanceof Unauthorized) {
        const { address } = this.endpoint;
        throw new Unauthorized(`${address} asks for an auth token, or serves its own machine only`);
      }
      if (!(error instanceof Refused)) throw error;
      this.knowsClient = error.reply !== "error";
      this.endpoint.knowsClient = this.knowsClient;
    }
    return this.knowsClient;
  }

  #end(why?: LockdError): void {
    if (this.isClosed) return;
    this.#failure = why ?? this.#failure;
    this.closed.set();
    const awaited = this.#awaited;
    this.#awaited = [];
    for (const reply of awaited) reply.fail(this.#failure);
  }
}

function withoutReturns(line: Buffer): Buffer {
  let end = line.length;
  while (end > 0 && line[end - 1] === CARRIAGE_RETURN) end -= 1;
  return line.subarray(0, end);
}

function isOfNames(error: Error | undefined): boolean {
  return (error as NodeJS.ErrnoException | undefined)?.syscall === "getaddrinfo";
}

/** Whether it is the alert of a server that does not like the client's certificate. */
function isOfCertificate(error: Error | undefined): boolean {
  const code = (error as NodeJS.ErrnoException | undefined)?.code ?? "";
  return code.includes("ALERT") && code.includes("CERTIFICATE");
}

/** What it says; the first of several, as when a name has several addresses. */
function told(error: Error | undefined): string {
  if (error === undefined) return "the connection ended";
  if (error instanceof AggregateError && error.errors[0] instanceof Error) {
    return error.errors[0].message;
  }
  return error.message;
}
