import { defineConfig } from '@playwright/test';

// Debian's Chromium will not run its sandbox as root, as which a container runs everything.
const asRoot = process.getuid?.() === 0;

export default defineConfig({
  testDir: '.',
  testMatch: '*.spec.mjs',
  outputDir: '../../build/web/results',
  reporter: 'list',
  workers: 1, // each test starts a server and waits for leases; a busy machine must not upset it
  timeout: 120_000,
  expect: { timeout: 30_000 },
  forbidOnly: true,
  use: {
    browserName: 'chromium',
    viewport: { width: 1280, height: 900 },
    trace: 'retain-on-failure',
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      args: asRoot ? ['--no-sandbox'] : [],
    },
  },
});
