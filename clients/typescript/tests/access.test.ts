/** Auth tokens and TLS at a real server. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import * as lockd from "../src/index.js";
import { Certificates, eventually, Folder, failure, now, Server } from "./support.js";

describe("auth tokens", () => {
  const SECRET = "a secret of some length";
  let server: Server;
  before(async () => {
    server = await Server.begin("--auth-token", SECRET);
  });
  after(() => server[Symbol.asyncDispose]());

  test("let in", async () => {
    await using locks = new lockd.Client({ servers: server.address, token: SECRET });
    await locks.using("k", { wait: 0 }, () => {});
  });

  test("may be in a file", async () => {
    using folder = new Folder();
    const tokenFile = join(folder.path, "token");
    writeFileSync(tokenFile, `${SECRET}\n`);
    await using locks = new lockd.Client({ servers: server.address, tokenFile });
    await locks.using("k", { wait: 0 }, () => {});
    writeFileSync(tokenFile, "\n");
    const fifo = join(folder.path, "fifo"); // without a writer
    execFileSync("mkfifo", [fifo]);
    for (const file of [tokenFile, join(folder.path, "none"), fifo]) {
      assert.throws(() => new lockd.Client({ tokenFile: file }), lockd.InvalidRequest);
    }
    assert.throws(() => new lockd.Client({ token: "a", tokenFile }), lockd.InvalidRequest);
  });

  test("that are wrong or missing end the wait at once", async () => {
    for (const token of ["wrong", undefined]) {
      await using locks = new lockd.Client({ servers: server.address, token });
      const began = now();
      await failure(lockd.Unauthorized, locks.acquire("k", { wait: 60_000 }));
      assert.ok(now() - began < 30_000);
    }
  });
});

describe("TLS", () => {
  let files: Certificates;
  let flags: string[];
  let server: Server;
  before(async () => {
    files = new Certificates();
    flags = ["--tls-cert", files.server, "--tls-key", files.serverKey];
    server = await Server.begin(...flags);
  });
  after(async () => {
    await server[Symbol.asyncDispose]();
    files[Symbol.dispose]();
  });

  async function acquire(
    host: string,
    tls: lockd.TlsOptions | true,
    port = server.port,
  ): Promise<void> {
    const servers = `${host}:${port}`;
    await using locks = new lockd.Client({ servers, tls, connectTimeout: 5000 });
    await using held = await locks.acquire("k", { wait: 0, lease: 1000 });
    held.check();
  }

  test("verifies the server", async () => {
    await acquire("127.0.0.1", { caFile: files.ca });
    await acquire("localhost", { caFile: files.ca });
    await acquire("127.0.0.1", { caFile: files.ca, serverName: "localhost" });
  });

  test("believes no other authority", async () => {
    for (const tls of [{ caFile: files.otherCa }, {}, true] as const) {
      await failure(lockd.Untrusted, acquire("127.0.0.1", tls));
    }
  });

  test("believes no other name", async () => {
    const tls = { caFile: files.ca, serverName: "elsewhere.example" };
    await failure(lockd.Untrusted, acquire("127.0.0.1", tls));
    await failure(lockd.Untrusted, acquire("127.0.0.2", { caFile: files.ca }));
  });

  test("believes anybody when told so", async () => {
    await acquire("127.0.0.1", { verify: false });
  });

  test("does not wait for an untrusted server", async () => {
    await using locks = new lockd.Client({ servers: server.address, tls: true });
    await failure(lockd.Untrusted, locks.acquire("k"));
  });

  test("is not had with a server that has none", async () => {
    await using plain = await Server.begin();
    await failure(lockd.ConnectionFailed, acquire("127.0.0.1", { verify: false }, plain.port));
  });

  test("needs files that can be used", () => {
    for (const tls of [
      { caFile: "/none" },
      { certificate: "/none" },
      { certificate: files.client, key: files.serverKey },
    ]) {
      assert.throws(() => new lockd.Client({ tls }), lockd.InvalidRequest);
    }
  });

  test("has certificates of clients", async () => {
    await using strict = await Server.begin(...flags, "--tls-client-ca", files.ca);
    const known = { caFile: files.ca, certificate: files.client, key: files.clientKey };
    await acquire("127.0.0.1", known, strict.port);
    const unknown = acquire("127.0.0.1", { caFile: files.ca }, strict.port);
    assert.match((await failure(lockd.Unauthorized, unknown)).message, /refused the certificate/);
  });

  test("goes on through a restart", async () => {
    using journal = new Folder();
    await using durable = await Server.begin(...flags, "--wal", journal.path);
    const tls = { caFile: files.ca };
    await using locks = new lockd.Client({ servers: durable.address, tls });
    await using held = await locks.acquire("k");
    await durable.kill();
    await durable.start();
    await eventually(() => held.isHeld, "a renewal on a new connection");
    await failure(lockd.NotAcquired, locks.acquire("k", { wait: 1000 }));
    held.check();
  });
});
