// Tests servers that are started for a test, and the command. RESTANTE_PROGRAM contains the path of the program.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { findProgram, start, StartError } from "../dist/process.js";

const PROGRAM = process.env.RESTANTE_PROGRAM;
const COMMAND = fileURLToPath(new URL("../bin/restante.js", import.meta.url));
const MODULE = new URL("../dist/process.js", import.meta.url).href;
/** Longer than any step of a test takes, in milliseconds. */
const TEST_TIMEOUT = 60_000;

const directory = mkdtempSync(join(tmpdir(), "restante-"));
after(() => rmSync(directory, { recursive: true }));

/** Sends commands to an SMTP server, one after the other. */
async function converse({ host, port }, ...commands) {
  const socket = createConnection(port, host);
  const replies = createInterface({ input: socket })[Symbol.asyncIterator]();
  for (const command of ["", ...commands]) {
    if (command !== "") socket.write(`${command}\r\n`);
    const { value } = await replies.next();
    assert.match(value, /^[23]/, command);
  }
  return socket;
}

async function send(smtp, to = "ann@example.org") {
  const mail = "Subject: Welcome\r\n\r\nYour code is 482913.\r\n.";
  const commands = ["HELO test", "MAIL FROM:<shop@example.com>", `RCPT TO:<${to}>`, "DATA", mail, "QUIT"];
  (await converse(smtp, ...commands)).destroy();
}

async function collect(generator) {
  const all = [];
  for await (const one of generator) all.push(one);
  return all;
}

function isRunning(pid) {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // A process that has ended may wait for another process to read its status.
  return spawnSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" }).stdout.trim().startsWith("Z") === false;
}

async function untilEnded(pid) {
  for (const deadline = Date.now() + TEST_TIMEOUT; isRunning(pid); await sleep(20)) {
    assert.ok(Date.now() < deadline, `process ${pid} still runs`);
  }
}

/** Runs the command of the package. Returns the process, and a function that waits for a line of its log. */
function runCommand(args, env = process.env) {
  const child = spawn(process.execPath, [COMMAND, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
  const log = [];
  const lines = createInterface({ input: child.stderr })[Symbol.asyncIterator]();
  const untilLogged = async (pattern) => {
    for (;;) {
      const { value, done } = await lines.next();
      assert.ok(!done, `${pattern} is not in the log:\n${log.join("\n")}`);
      log.push(value);
      const found = pattern.exec(value);
      if (found !== null) return found;
    }
  };
  return { child, log, untilLogged, ended: once(child, "exit") };
}

test("start and stop", async () => {
  const [first, second] = await Promise.all([start(), start()]);
  assert.notEqual(first.smtp.port, second.smtp.port);
  await send(first.smtp);
  const mail = await first.mailbox("ann").waitForMessage();
  assert.equal(await mail.code(), "482913");
  assert.deepEqual(await collect(second.messages()), []);
  assert.equal((await first.about()).smtp.port, first.smtp.port);
  assert.match(first.url, /^http:\/\/127\.0\.0\.1:\d+/);
  assert.deepEqual(first.pop3, first.addresses.POP3);
  assert.deepEqual(first.imap, first.addresses.IMAP);
  await Promise.all([first.stop(), second.stop()]);
  await first.stop();
  assert.match(first.log, /shutting down/);
  assert.ok(!isRunning(first.pid) && !isRunning(second.pid));
});

test("a server is stopped at the end of a scope", async () => {
  const restante = await start();
  await restante[Symbol.asyncDispose]();
  assert.ok(!isRunning(restante.pid));
});

test("settings, a script and a data directory", async () => {
  const lua = join(directory, "rules.lua");
  const data = join(directory, "mail");
  writeFileSync(lua, 'function inbucket.before.message_stored(message) message.subject = "changed" return message end');
  const settings = { mailboxnaming: "full", "smtp.acceptdomains": ["example.org", "x.test"], "smtp.requireauth": false };
  const first = await start({ lua, data, settings });
  await send(first.smtp);
  await first.stop();
  const second = await start({ data, settings: { "pop3.addr": "" } });
  const [mail] = await collect(second.messages());
  assert.deepEqual([mail.mailboxes, mail.subject], [["ann@example.org"], "changed"]);
  assert.throws(() => second.pop3, /pop3.addr is empty/);
  await second.stop();
});

test("variables of the environment do not configure the server", async (t) => {
  process.env.RESTANTE_SMTP_ADDR = "nowhere";
  t.after(() => delete process.env.RESTANTE_SMTP_ADDR);
  await (await start()).stop();
});

test("an error contains the log", async () => {
  for (const [settings, expected] of [
    [{ "smtp.timeout": "soon" }, /ended with status 2\. The end of its log:\n[^]*smtp\.timeout = "soon"/],
    [{ "nosuch.setting": 1 }, /ended with status 2\. The end of its log:\n[^]*--nosuch-setting/],
  ]) {
    await assert.rejects(start({ settings }), (error) => {
      assert.ok(error instanceof StartError && error.log !== "");
      assert.match(error.message, expected);
      return true;
    });
  }
});

test("settings that are refused", async () => {
  for (const settings of [{ logfile: "x" }, { loglevel: "error" }, { stopwithstdin: false }, { "web.addr": "" }]) {
    await assert.rejects(start({ settings }), TypeError);
  }
});

test("Unix sockets for HTTP are refused without a port", async () => {
  const program = join(directory, "missing");
  for (const address of ["unix:/tmp/web.sock", ["unix:/tmp/a.sock", "unix:/tmp/b.sock"], "unix:/a, unix:/b,"]) {
    const expected = { name: "TypeError", message: /web\.addr = "unix:.*" has no TCP address/ };
    await assert.rejects(start({ program, settings: { "web.addr": address } }), expected);
  }
});

test("a Unix socket and a port for HTTP", async () => {
  const socket = `unix:${join(directory, "web.sock")}`;
  const tls = { "web.addr": socket, "web.tlsaddr": "127.0.0.1:0", "web.tlscert": "self-signed" };
  for (const [settings, url] of [[{ "web.addr": [socket, "127.0.0.1:0"] }, /^http:/], [tls, /^https:/]]) {
    const restante = await start({ settings });
    assert.match(restante.url, url);
    await restante.stop();
  }
});

test("a server that does not start in time is killed", async () => {
  const program = join(directory, "sleeps");
  writeFileSync(program, "#!/bin/sh\nexec sleep 600\n");
  chmodSync(program, 0o755);
  await assert.rejects(start({ program, timeout: 100 }), /did not start within 100 ms/);
  await assert.rejects(start({ program: join(directory, "missing") }), /Cannot run .*missing/);
});

/** Writes a program that starts a process with its standard error, logs the id of that process, and runs a command. */
function programWithChild(command) {
  const program = join(mkdtempSync(join(directory, "program-")), "restante");
  writeFileSync(program, `#!/bin/sh\nsleep 60 &\necho started $! >&2\n${command}\n`);
  chmodSync(program, 0o755);
  return program;
}

/** Asserts that the process in a log still runs, and ends it. */
function endChild(log) {
  const pid = Number(/started (\d+)/.exec(log)?.[1]);
  assert.ok(isRunning(pid));
  process.kill(pid, "SIGKILL");
}

test("stop() does not wait for other processes that have the log open", async () => {
  const program = programWithChild("echo HTTP listening on tcp4 127.0.0.1:1 >&2\ncat > /dev/null\necho last line >&2");
  const restante = await start({ program });
  await restante.stop();
  endChild(restante.log);
  assert.match(restante.log, /last line$/);
});

test("a failed start does not wait for other processes that have the log open", async () => {
  const failures = [
    [{ program: programWithChild("exit 3") }, /ended with status 3/],
    [{ program: programWithChild("exec sleep 600"), timeout: 3000 }, /did not start within 3000 ms/],
  ];
  for (const [options, expected] of failures) {
    const error = await start(options).catch((error) => error);
    endChild(error.log);
    assert.match(error.message, expected);
  }
});

test("the program is found", (t) => {
  const { PATH } = process.env;
  t.after(() => Object.assign(process.env, { PATH, RESTANTE_PROGRAM: PROGRAM }));
  assert.equal(findProgram(), PROGRAM);
  delete process.env.RESTANTE_PROGRAM;
  const [scripts, programs] = ["scripts", "programs"].map((name) => mkdtempSync(join(directory, name)));
  writeFileSync(join(scripts, "restante"), "#!/usr/bin/env node\n");
  process.env.PATH = scripts;
  assert.throws(findProgram, /npm install --include=optional|There is no package/);
  writeFileSync(join(programs, "restante"), "\x7fELF");
  process.env.PATH = [scripts, programs].join(delimiter);
  assert.equal(findProgram(), join(programs, "restante"));
});

test("a server ends with the process that started it", async () => {
  for (const end of ["", "process.exit(0)", "process.kill(process.pid, 'SIGKILL')", "await restante.stop()"]) {
    const code = `import { start } from ${JSON.stringify(MODULE)};
      const restante = await start();
      process.stdout.write(String(restante.pid));
      ${end}`;
    const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", code], { encoding: "utf8", timeout: TEST_TIMEOUT });
    await untilEnded(Number(stdout));
  }
});

test("server() stops it after a test, and adds the log to a failure", () => {
  const file = join(directory, "uses.test.mjs");
  writeFileSync(
    file,
    `import { after, test } from "node:test";
     import { server } from ${JSON.stringify(MODULE)};
     const shared = await server({ after });
     test("passes", async (t) => { await (await server(t)).about(); await shared.about(); });
     test("fails", async (t) => { await server(t); throw new Error("x"); });`,
  );
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const args = ["--test", "--test-reporter=tap", file];
  const { stdout, status } = spawnSync(process.execPath, args, { encoding: "utf8", env, timeout: TEST_TIMEOUT });
  assert.equal(status, 1);
  assert.match(stdout, /^ *ok 1 - passes/m);
  assert.match(stdout, /^ *not ok 2 - fails/m);
  assert.equal(stdout.match(/Log of the restante server/g)?.length, 1, stdout);
});

test("the command passes arguments, output and exit status on", () => {
  const run = (...args) => spawnSync(process.execPath, [COMMAND, ...args], { encoding: "utf8", timeout: TEST_TIMEOUT });
  const version = run("--version");
  assert.match(version.stdout, /^restante \d+\.\d+\.\d+/);
  assert.equal(version.status, 0);
  const wrong = run("--smtp-timeout=soon");
  assert.match(wrong.stderr, /smtp\.timeout = "soon"/);
  assert.equal(wrong.status, 2);
});

test("the command explains that the program is missing", () => {
  const env = { PATH: directory };
  const { stderr, status } = spawnSync(process.execPath, [COMMAND], { encoding: "utf8", env, timeout: TEST_TIMEOUT });
  assert.match(stderr, /^restante: (The restante program is not installed|There is no package).*RESTANTE_PROGRAM/);
  assert.equal(status, 1);
  const missing = { ...env, RESTANTE_PROGRAM: join(directory, "missing") };
  const cannot = spawnSync(process.execPath, [COMMAND], { encoding: "utf8", env: missing, timeout: TEST_TIMEOUT });
  assert.match(cannot.stderr, /^restante: Cannot run .*missing/);
  assert.equal(cannot.status, 1);
});

const PORTS = ["--smtp-addr=127.0.0.1:0", "--pop3-addr=", "--imap-addr=", "--web-addr=127.0.0.1:0", "--lua-path="];

test("the command forwards signals, and a repeated one once", async () => {
  for (const signal of ["SIGTERM", "SIGINT"]) {
    const { child, log, untilLogged, ended } = runCommand(PORTS);
    const [, port] = await untilLogged(/SMTP listening on tcp4 127\.0\.0\.1:(\d+)/);
    await untilLogged(/HTTP listening/);
    // The server waits for a message that is being received.
    const socket = await converse({ host: "127.0.0.1", port }, "HELO x", "MAIL FROM:<a@x.org>", "RCPT TO:<b@x.org>", "DATA");
    child.kill(signal);
    child.kill(signal);
    await untilLogged(/shutting down/);
    socket.write("Subject: last\r\n\r\nx\r\n.\r\n");
    assert.deepEqual(await ended, [0, null]);
    assert.doesNotMatch(log.join("\n"), /second signal/);
    socket.destroy();
  }
});

test("the command ends by the signal that ended the program", async () => {
  const { child, untilLogged, ended } = runCommand(PORTS);
  await untilLogged(/HTTP listening/);
  const { stdout } = spawnSync("ps", ["-o", "pid=", "--ppid", String(child.pid)], { encoding: "utf8" });
  process.kill(Number(stdout), "SIGKILL");
  assert.deepEqual(await ended, [null, "SIGKILL"]);
});
