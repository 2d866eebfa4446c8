// For the test of the fixtures: the browser is the system's own.

export default {
  testDir: "test",
  testMatch: "*.spec.mjs",
  reporter: "list",
  use: { launchOptions: { executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox"] } },
};
