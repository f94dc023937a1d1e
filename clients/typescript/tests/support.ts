/** Servers for tests: the real one as a process, and one that plays scripts. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import {
  createServer,
  type Server as NetServer,
  connect as netConnect,
  type Socket,
} from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after } from "node:test";
import { fileURLToPath } from "node:url";

import { Client, type HeldLock, type LockLost } from "../src/index.js";

/** The package's folder: tests run from `build/tests`. */
export const PACKAGE = fileURLToPath(new URL("../..", import.meta.url));
export const ROOT = join(PACKAGE, "..", "..");
const SERVER = process.env.LOCKD_TEST_SERVER ?? join(ROOT, "build", "lockd");

/** How late a busy machine may be. */
export const PATIENCE = 20_000;

export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Waits until it is so. */
export async function eventually(
  isSo: () => boolean | Promise<boolean>,
  what = "it",
): Promise<void> {
  const deadline = now() + PATIENCE;
  while (!(await isSo())) {
    if (now() > deadline) throw new Error(`${what} did not come about`);
    await sleep(5);
  }
}

/** The error that it rejects with. It must be of this kind. */
export async function failure<E extends Error>(
  kind: abstract new (...given: never[]) => E,
  doing: Promise<unknown> | (() => unknown),
): Promise<E> {
  try {
    await (typeof doing === "function" ? doing() : doing);
  } catch (error) {
    if (error instanceof kind) return error;
    throw error;
  }
  throw new Error(`no ${kind.name} came of it`);
}

/** Why the lock was lost, once it is; nothing when it still is held after the wait. */
export async function lossOf(held: HeldLock, wait = PATIENCE): Promise<LockLost | undefined> {
  const { signal } = held;
  if (!signal.aborted) {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, wait);
      signal.addEventListener("abort", () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
  return signal.aborted ? (signal.reason as LockLost) : undefined;
}

/** A folder that is gone at the end of the test. */
export class Folder {
  readonly path = mkdtempSync(join(tmpdir(), "lockd-test-"));

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** A lockd of its own. It keeps its port when it is started again. */
export class Server {
  port = 0;
  readonly #flags: string[];
  #process: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();

  private constructor(flags: string[]) {
    this.#flags = flags;
  }

  static async begin(...flags: string[]): Promise<Server> {
    const server = new Server(flags);
    await server.start();
    return server;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    const inMemory = this.#flags.includes("--wal") ? [] : ["--memory"];
    const flags = [...inMemory, "--http-addr", "off", "--port", String(this.port), ...this.#flags];
    const child = spawn(SERVER, flags, {
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.#process = child;
    this.#ended = new Promise((resolve) => child.once("close", () => resolve()));
    const log: string[] = [];
    const lines = createInterface({ input: child.stderr });
    await new Promise<void>((resolve, reject) => {
      lines.on("line", (line) => {
        log.push(line);
        const found = /listening .*port=(\d+)/.exec(line);
        if (found === null) return;
        this.port = Number(found[1]);
        resolve();
      });
      child.once("error", reject);
      void this.#ended.then(() => {
        reject(new Error(`the server did not start: ${log.join("\n")}`));
      });
    });
  }

  signal(name: NodeJS.Signals): void {
    this.#process?.kill(name);
  }

  /** As an operator does. */
  stop(): Promise<void> {
    return this.#end("SIGTERM");
  }

  kill(): Promise<void> {
    return this.#end("SIGKILL");
  }

  async #end(name: NodeJS.Signals): Promise<void> {
    this.signal(name);
    await this.#ended;
    this.#process = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process !== undefined) await this.kill();
  }
}

/** What the tests of a suite share. */
export interface Shared {
  readonly server: Server;
  readonly locks: Client;
  /** A key that no other test has. */
  nextKey(): string;
}

/** A server, and a client at it, until the suite is over. */
export async function shareServer(...flags: string[]): Promise<Shared> {
  const server = await Server.begin(...flags);
  const locks = new Client(server.address);
  after(async () => {
    await locks.close();
    await server[Symbol.asyncDispose]();
  });
  let keys = 0;
  const nextKey = () => {
    keys += 1;
    return `key ${keys}`;
  };
  return { server, locks, nextKey };
}

export type Request = [command: string, key: string, argument: string];

class Gone extends Error {}

/** One connection, as a script of a server sees it. */
export class Peer {
  readonly #server: FakeServer;
  readonly #socket: Socket;
  #input = "";
  #isGone = false;
  #wake: () => void = () => {};

  constructor(server: FakeServer, socket: Socket) {
    this.#server = server;
    this.#socket = socket;
    socket.on("data", (data) => {
      this.#input += data.toString();
      this.#wake();
    });
    for (const end of ["end", "close", "error"]) {
      socket.on(end, () => {
        this.#isGone = true;
        this.#wake();
      });
    }
  }

  /** The next request. Throws `Gone` when the client has gone. */
  async request(): Promise<Request> {
    for (;;) {
      const [command, key, argument, rest] = this.#input.split("\n", 4);
      if (command !== undefined && key !== undefined && argument !== undefined) {
        if (rest !== undefined) {
          const request: Request = [command, key, argument];
          this.#input = this.#input.slice(request.join("\n").length + 1);
          this.#server.seen.push(request);
          return request;
        }
      }
      await this.#news();
    }
  }

  async expect(command: string): Promise<Request> {
    const request = await this.request();
    if (request[0] !== command) throw new Error(`${request} came, and not ${command}`);
    return request;
  }

  send(text: string): void {
    this.#socket.write(text);
  }

  async answer(command: string, ...lines: string[]): Promise<Request> {
    const request = await this.expect(command);
    this.send(lines.map((line) => `${line}\n`).join(""));
    return request;
  }

  async waitClosed(): Promise<void> {
    while (!this.#isGone) await this.#news().catch(() => {});
  }

  close(): void {
    this.#socket.end();
  }

  async #news(): Promise<void> {
    if (this.#isGone) throw new Gone();
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
  }
}

export type Script = (peer: Peer) => Promise<void>;

/** Plays a script for each connection: the first for the first, the last for all that follow. */
export class FakeServer {
  readonly seen: Request[] = [];
  connections = 0;
  readonly #scripts: Script[];
  readonly #failures: unknown[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #listener: NetServer;

  private constructor(scripts: Script[]) {
    this.#scripts = scripts;
    this.#listener = createServer((socket) => void this.#play(socket));
  }

  static async begin(...scripts: Script[]): Promise<FakeServer> {
    const server = new FakeServer(scripts);
    await new Promise<void>((resolve) => server.#listener.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get port(): number {
    const address = this.#listener.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  get commands(): string[] {
    return this.seen.map(([command]) => command);
  }

  /** The arguments of all requests of this command. */
  argumentsOf(command: string): string[] {
    return this.seen.filter((request) => request[0] === command).map((request) => request[2]);
  }

  async #play(socket: Socket): Promise<void> {
    const script = this.#scripts[Math.min(this.connections, this.#scripts.length - 1)];
    this.connections += 1;
    this.#sockets.add(socket);
    socket.on("error", () => {}); // the client left
    try {
      await script?.(new Peer(this, socket));
    } catch (error) {
      if (!(error instanceof Gone)) this.#failures.push(error);
    }
    socket.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = new Promise((resolve) => this.#listener.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await ended;
    if (this.#failures.length > 0) throw this.#failures[0];
  }
}

export const TOKEN = "00000000000000070123456789abcdef";

/** A server of this project's next version, which grants everything, for so many seconds. */
export function grants(lease = 30): Script {
  return async (peer) => {
    for (;;) {
      const [command] = await peer.request();
      if (["l", "sl", "w", "sw"].includes(command)) peer.send(`ok ${TOKEN} ${lease}\n`);
      else if (["n", "sn"].includes(command)) peer.send(`ok ${lease}\n`);
      else peer.send("ok\n");
    }
  };
}

/** A server that knows `client`, grants the lock for so many seconds, and goes on so. */
export function grantsOnce(lease: number, then: Script = async () => {}): Script {
  return async (peer) => {
    await peer.answer("client", "ok");
    await peer.answer("l", `ok ${TOKEN} ${lease}`);
    await then(peer);
  };
}

/** A port on which nobody listens, for now. */
export async function freePort(): Promise<number> {
  await using server = await FakeServer.begin();
  return server.port;
}

/** Three lines to a server, by somebody else; its answer. */
export async function tell(port: number, lines: string): Promise<string> {
  const socket = netConnect(port, "127.0.0.1");
  socket.write(lines);
  try {
    for await (const data of socket) return String(data);
    return "";
  } finally {
    socket.destroy();
  }
}

/** An authority, a server's certificate for 127.0.0.1 and localhost, and a client's. */
export class Certificates {
  readonly #folder = new Folder();
  readonly ca = this.#file("ca.pem");
  readonly otherCa = this.#file("other.pem");
  readonly server = this.#file("server.pem");
  readonly serverKey = this.#file("server.key");
  readonly client = this.#file("client.pem");
  readonly clientKey = this.#file("client.key");

  constructor() {
    const ec = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    for (const name of ["ca", "other"]) {
      const out = `-keyout ${name}.key -out ${name}.pem -subj /CN=test-${name}`;
      this.#openssl(`req -x509 ${ec} -days 2 ${out}`);
    }
    for (const [name, extension] of [
      ["server", "subjectAltName=IP:127.0.0.1,DNS:localhost"],
      ["client", "extendedKeyUsage=clientAuth"],
    ] as const) {
      writeFileSync(this.#file("extension"), extension);
      this.#openssl(`req ${ec} -keyout ${name}.key -out ${name}.csr -subj /CN=test-${name}`);
      this.#openssl(
        `x509 -req -in ${name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 ` +
          `-out ${name}.pem -extfile extension`,
      );
    }
  }

  #file(name: string): string {
    return join(this.#folder.path, name);
  }

  #openssl(line: string): void {
    execFileSync("openssl", line.split(" "), { cwd: this.#folder.path, stdio: "ignore" });
  }

  [Symbol.dispose](): void {
    this.#folder[Symbol.dispose]();
  }
}
