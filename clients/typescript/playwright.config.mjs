// Configuration for the test of the fixtures. It uses the browser of the system.

export default {
  testDir: "test",
  testMatch: "*.spec.mjs",
  reporter: "list",
  use: { launchOptions: { executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox"] } },
};
