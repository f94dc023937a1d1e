/**
 * Tests the client for TypeScript: its suites against servers, its types, its style.
 *
 * Called by `./test`. Suites mostly wait, so they run side by side.
 */

import { spawn } from "node:child_process";
import { accessSync, constants, existsSync, readdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = fileURLToPath(new URL("..", import.meta.url));
const SERVER = resolve(process.env.LOCKD_TEST_SERVER ?? join(HERE, "..", "..", "build", "lockd"));
const SUITE_MS_MAX = 240_000;
const AT_ONCE = 5;
/** What a suite says of tests that went well. */
const QUIET = /^\s*(ok \d|# |---$|\.\.\.$|duration_ms:|type:|\d+\.\.\d+$|$)/;

/** Whether it went well; prints what it said if not, and what it skipped in any case. */
async function run(name, command, ...words) {
  const began = performance.now();
  const { isWell, said } = await saidBy(command, words);
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  console.log(`${(isWell ? "ok" : "FAILED").padEnd(6)} ${name} (${seconds} s)`);
  for (const line of said.split("\n")) {
    if ((!isWell && !QUIET.test(line)) || /# SKIP/.test(line)) console.log(`       ${line}`);
  }
  return isWell;
}

function saidBy(command, words) {
  return new Promise((done) => {
    const child = spawn(command, words, {
      cwd: HERE,
      env: { ...process.env, LOCKD_TEST_SERVER: SERVER },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: SUITE_MS_MAX,
      killSignal: "SIGKILL",
    });
    let said = "";
    for (const pipe of [child.stdout, child.stderr]) pipe.on("data", (data) => (said += data));
    child.once("error", (error) => done({ isWell: false, said: error.message }));
    child.once("close", (code, signal) => {
      done({ isWell: code === 0, said: signal === null ? said : `${said}\nended by ${signal}` });
    });
  });
}

async function sideBySide(runs) {
  const results = [];
  const next = async () => {
    for (let one = runs.shift(); one; one = runs.shift()) results.push(await one());
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
  return results.every(Boolean);
}

/** Whether the compiler and the linter are there, from the registry if need be. */
async function hasTools() {
  if (existsSync(join(HERE, "node_modules", ".package-lock.json"))) return true;
  // Not `npm ci`: it wants the linter of every platform in the lock file, which has not all.
  const { isWell, said } = await saidBy("npm", [
    "install",
    "--no-save",
    "--no-audit",
    "--no-fund",
    "--fetch-retries=0",
  ]);
  if (!isWell) {
    const why = said.includes("ENOENT") ? "there is no npm" : said.trim().split("\n")[0];
    console.log(`skipped all suites of the client for TypeScript: no compiler: ${why}`);
  }
  return isWell;
}

async function main(chosen) {
  try {
    accessSync(SERVER, constants.X_OK);
  } catch {
    console.log(`there is no server at ${SERVER}: build it, or set LOCKD_TEST_SERVER`);
    return 1;
  }
  if (!(await hasTools())) return 0;
  const tool = (...path) => join(HERE, "node_modules", ...path);
  const tsc = tool("typescript", "bin", "tsc");
  for (const folder of ["dist", "build"])
    rmSync(join(HERE, folder), { recursive: true, force: true });
  // The examples, and so the tests, are compiled against the package as it is shipped.
  if (!(await run("tsc", process.execPath, tsc))) return 1;
  if (!(await run("tsc of tests", process.execPath, tsc, "-p", "tsconfig.tests.json"))) return 1;
  const suites = readdirSync(join(HERE, "build", "tests"))
    .filter((file) => file.endsWith(".test.js"))
    .map((file) => file.slice(0, -".test.js".length))
    .filter((suite) => chosen.length === 0 || chosen.includes(suite));
  const runs = suites.map((suite) => () => {
    const file = join("build", "tests", `${suite}.test.js`);
    return run(suite, process.execPath, "--enable-source-maps", file);
  });
  const hasBiome = readdirSync(tool("@biomejs")).some((name) => name.startsWith("cli-"));
  if (chosen.length === 0 && !hasBiome) {
    console.log("skipped biome: the lock file has none for this machine");
  } else if (chosen.length === 0) {
    const biome = tool("@biomejs", "biome", "bin", "biome");
    runs.push(() => run("biome", process.execPath, biome, "ci", "."));
  }
  return (await sideBySide(runs)) ? 0 : 1;
}

process.exitCode = await main(process.argv.slice(2));
