/** The tarball, the examples, and the code of the pages. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";

import * as lockd from "../src/index.js";
import { Folder, PACKAGE, ROOT, Server } from "./support.js";

const EXAMPLES = join(PACKAGE, "examples");
const COMPILED = join(PACKAGE, "build", "examples");
const GUIDE = join(ROOT, "docs", "typescript.md");
const LOCK_OUTPUT = /^(step \d under fence \d+\n){3}released\n$/;

/** What it prints. Rejects with that if it fails. */
async function run(cwd: string, command: string, ...words: string[]): Promise<string> {
  try {
    return (await promisify(execFile)(command, words, { cwd, timeout: 100_000 })).stdout;
  } catch (error) {
    const { message, stdout = "" } = error as Error & { stdout?: string };
    throw new Error(`${message}\n${stdout}`);
  }
}

const hasNpm = await run(PACKAGE, "npm", "--version").then(
  () => true,
  () => false,
);

describe("the tarball", { skip: hasNpm ? false : "no npm" }, () => {
  let folder: Folder;

  before(async () => {
    folder = new Folder();
    await run(PACKAGE, "npm", "pack", "--ignore-scripts", "--pack-destination", folder.path);
    writeFileSync(join(folder.path, "package.json"), '{"private":true,"type":"module"}');
    const [tarball] = readdirSync(folder.path).filter((name) => name.endsWith(".tgz"));
    assert.ok(tarball !== undefined);
    await run(folder.path, "npm", "install", "--offline", "--no-audit", `./${tarball}`);
  });

  after(() => folder[Symbol.dispose]());

  test("needs nothing, and has nothing that it does not need", () => {
    const modules = join(folder.path, "node_modules");
    assert.deepEqual(
      readdirSync(modules).filter((name) => !name.startsWith(".")),
      ["lockd"],
    );
    const installed = join(modules, "lockd");
    const names = readdirSync(installed).sort();
    assert.deepEqual(names, ["LICENSE", "README.md", "dist", "package.json"]);
    const json = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
    assert.equal(json.dependencies, undefined);
    assert.ok(readdirSync(join(installed, "dist")).every((name) => /\.(js|d\.ts)$/.test(name)));
  });

  test("takes locks", async () => {
    cpSync(join(COMPILED, "lock.js"), join(folder.path, "lock.js"));
    await using server = await Server.begin();
    assert.match(await run(folder.path, process.execPath, "lock.js", server.address), LOCK_OUTPUT);
  });

  test("is typed, without types of anything else", async () => {
    writeFileSync(
      join(folder.path, "typed.ts"),
      `import { Client, type HeldLock, LockLost, type SetItem } from "lockd";
       const locks = new Client({ cluster: ["a", "b"], tls: { caFile: "ca.pem" } });
       export async function work(signal?: AbortSignal): Promise<bigint> {
         await using held: HeldLock = await locks.acquire("k", { wait: 5, signal });
         // @ts-expect-error: a wait is a number
         await locks.acquire("k", { wait: "5" });
         const reason: string | undefined = LockLost.behind(held.signal.reason)?.reason;
         return reason === undefined ? held.fence : 0n;
       }
       await locks.acquireAll(["a", { key: "b", shared: true } satisfies SetItem]);
       export const answer: Promise<number> = locks.using("k", {}, async () => 42);
       for await (const signal of await locks.listen("a.>")) signal.payload.at(0);\n`,
    );
    const tsc = createRequire(join(PACKAGE, "package.json")).resolve("typescript/bin/tsc");
    const compilerOptions = {
      strict: true,
      exactOptionalPropertyTypes: true,
      skipLibCheck: false,
      noEmit: true,
      module: "nodenext",
      target: "es2022",
      lib: ["es2022", "dom"],
      types: [],
    };
    const config = { compilerOptions, files: ["typed.ts"] };
    writeFileSync(join(folder.path, "tsconfig.json"), JSON.stringify(config));
    await run(folder.path, process.execPath, tsc);
  });
});

describe("examples", () => {
  const shown = async (name: string) => {
    await using server = await Server.begin();
    return await run(PACKAGE, process.execPath, join(COMPILED, name), server.address);
  };

  test("lock", async () => {
    assert.match(await shown("lock.js"), LOCK_OUTPUT);
  });

  test("workers", async () => {
    assert.equal(await shown("workers.js"), "three worked, 2 at a time\n");
  });

  test("tour", async () => {
    const lines = (await shown("tour.js")).split("\n");
    assert.match(lines[0] ?? "", /^my-job \d+n 30000 [12]\d{4}\.\d+ true false$/);
    assert.equal(lines[1], "true queued");
    assert.deepEqual(lines.slice(2, 5), ["two read true", "one writes", "a job of four"]);
    assert.equal(lines[5], "seat-12 seat-13 under one fence");
    assert.equal(lines[6], "a report alone, prices shared, four cores: true");
    assert.deepEqual(lines.slice(7, 9), ["reached 1", "orders.42 ready"]);
    assert.match(lines[9] ?? "", /^\d connections$/);
  });
});

describe("the guide", { skip: existsSync(GUIDE) ? false : "it is not beside the package" }, () => {
  const outdented = (lines: string[]) => {
    const indents = lines.filter((line) => line !== "").map((line) => line.search(/\S/));
    const indent = Math.min(...indents);
    return lines.map((line) => line.slice(indent)).join("\n");
  };

  test("shows code of the examples", () => {
    const examples = readdirSync(EXAMPLES).map((name) =>
      readFileSync(join(EXAMPLES, name), "utf8").split("\n"),
    );
    const blocks = [...readFileSync(GUIDE, "utf8").matchAll(/```ts\n(.*?)\n```/gs)];
    assert.ok(blocks.length >= 5);
    for (const [, block = ""] of blocks) {
      const length = block.split("\n").length;
      const isShown = examples.some((lines) =>
        lines.some((_, at) => outdented(lines.slice(at, at + length)) === block),
      );
      assert.ok(isShown, `in no example, as it stands on the page:\n${block}`);
    }
  });

  test("names every error", () => {
    const text = readFileSync(GUIDE, "utf8");
    for (const [name, value] of Object.entries(lockd)) {
      const isError = typeof value === "function" && value.prototype instanceof Error;
      if (isError) assert.ok(text.includes(`\`${name}\``), name);
    }
  });
});

test("the lock file names no registry", () => {
  const text = readFileSync(join(PACKAGE, "package-lock.json"), "utf8");
  assert.ok(!text.includes('"resolved"'));
});
