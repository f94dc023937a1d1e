/** How a client reaches servers, and who it says it is. */

import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { hostname, userInfo } from "node:os";
import { basename } from "node:path";
import { createSecureContext, type SecureContext } from "node:tls";
import { debuglog } from "node:util";

import type { ClientOptions, TlsOptions } from "./client-options.js";
import { InvalidRequest } from "./errors.js";
import { authLines, clientLines } from "./requests.js";

/** TLS as connections use it. */
export interface Tls {
  readonly context: SecureContext;
  readonly serverName: string | undefined;
  readonly verify: boolean;
}

/** The checked options of a client. Constant. */
export class Options {
  readonly name: string;
  readonly identity: string;
  readonly tls: Tls | undefined;
  readonly connectTimeout: number;
  readonly replyTimeout: number;
  readonly releaseTimeout: number;
  readonly warn: (message: string) => void;
  readonly #token: string | undefined;
  readonly #tokenFile: string | undefined;

  constructor(given: ClientOptions) {
    if (given.token !== undefined && given.tokenFile !== undefined) {
      throw new InvalidRequest("give the auth token or its file, not both");
    }
    this.#token = given.token;
    this.#tokenFile = given.tokenFile;
    this.auth(); // so that a token that cannot be used is refused now
    this.name = given.name ?? defaultName();
    this.identity = clientLines(this.name, given.note ?? defaultNote());
    this.tls = given.tls ? tlsOf(given.tls === true ? {} : given.tls) : undefined;
    this.connectTimeout = timeout(given.connectTimeout, 10_000);
    this.replyTimeout = timeout(given.replyTimeout, 10_000);
    this.releaseTimeout = timeout(given.releaseTimeout, 5_000);
    this.warn = given.warn ?? debuglog("lockd");
  }

  /** The lines that say the auth token. The file is read each time: tokens are rotated. */
  auth(): string | undefined {
    const token = this.#tokenFile === undefined ? this.#token : readToken(this.#tokenFile);
    return token === undefined ? undefined : authLines(token);
  }
}

function timeout(given: number | undefined, otherwise: number): number {
  const ms = given ?? otherwise;
  if (!(ms >= 0)) throw new InvalidRequest("a timeout is not negative");
  return ms;
}

function tlsOf(given: TlsOptions): Tls {
  try {
    const context = createSecureContext({
      minVersion: "TLSv1.2",
      ...(given.caFile !== undefined && { ca: readRegularFile(given.caFile) }),
      ...(given.certificate !== undefined && {
        cert: readRegularFile(given.certificate),
        key: readRegularFile(given.key ?? given.certificate),
      }),
    });
    return { context, serverName: given.serverName, verify: given.verify ?? true };
  } catch (error) {
    throw new InvalidRequest(`the files for TLS cannot be used: ${told(error)}`, { cause: error });
  }
}

/** The first line of the file that is not blank: a server's file may hold two. */
function readToken(file: string): string {
  let text: string;
  try {
    text = readRegularFile(file).toString("utf8");
  } catch (error) {
    throw new InvalidRequest(`the file of the auth token cannot be read: ${told(error)}`, {
      cause: error,
    });
  }
  const line = text.split("\n").find((one) => one.trim() !== "");
  if (line === undefined) throw new InvalidRequest(`the file of the auth token is empty: ${file}`);
  return line;
}

/** To open a FIFO would wait for its writer, and stop the program. */
function readRegularFile(file: string): Buffer {
  const descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!fstatSync(descriptor).isFile()) throw new Error(`not a regular file: ${file}`);
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function defaultName(): string {
  let user: string;
  try {
    user = userInfo().username;
  } catch {
    user = String(process.getuid?.() ?? "unknown"); // a user without a name
  }
  return plain(`${user}@${hostname()}:${process.pid}`);
}

/** The program's base name, and never its arguments: they may hold secrets. */
function defaultNote(): string {
  return plain(basename(process.argv[1] ?? "")) || "node";
}

/** Text of the system's, fit for a line. */
function plain(text: string): string {
  return [...text.replace(/\p{C}/gu, "")].slice(0, 64).join("");
}

function told(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
