/// <reference lib="esnext.disposable" preserve="true" />
/**
 * Starts a server for tests, on free ports, and stops it. For Node.
 *
 *     import { start } from "restante/server";
 *
 *     await using restante = await start();
 *     await signUp("ann@example.org", restante.smtp);
 *     const mail = await restante.mailbox("ann").waitForMessage();
 *
 * The server stores mail in memory, listens only on loopback, and ends with this process: its standard input is a pipe, and it stops
 * when the pipe is closed.
 */

import { spawn, type ChildProcess } from "node:child_process";
import type { Socket } from "node:net";

import { endOf, StartError } from "./errors.js";
import { findProgram } from "./program.js";
import { Restante, type RestanteOptions } from "./server.js";

export { StartError } from "./errors.js";
export { findProgram } from "./program.js";

/** The value of a setting. A list is joined by commas. */
export type SettingValue = string | number | boolean | readonly string[];

/** How a server is started. */
export interface StartOptions {
  /** The path of the program. Default: `RESTANTE_PROGRAM`, the package for this platform, or a directory in `PATH`. */
  program?: string | undefined;
  /** A directory for messages. Default: they are stored in memory. */
  data?: string | undefined;
  /** A Lua script. */
  lua?: string | undefined;
  /** Further settings, by their names in `docs/config.md`: `{ "smtp.maxrecipients": 5 }`. */
  settings?: Readonly<Record<string, SettingValue>> | undefined;
  /** How long the start may take, in milliseconds. Default: 30,000. */
  timeout?: number | undefined;
  /** The token of the client, if the settings require a login. */
  token?: string | undefined;
  /** The name and the password of the client, if the settings require a login. */
  user?: { name: string; password: string } | undefined;
  /** The function that sends requests. Default: the global `fetch`. */
  fetch?: typeof fetch;
}

/** Where a protocol is served. */
export interface Address {
  host: string;
  port: number;
}

/** A process of the server. */
export interface ServerHandle {
  readonly addresses: Readonly<Record<string, Address>>;
  readonly pid: number;
  readonly log: string;
  stop(): Promise<void>;
}

/** What `server` needs of a test: the context of `node:test`, or an object with a function that registers a cleanup. */
export interface TestScope {
  after(cleanup: () => Promise<void>): unknown;
  readonly passed?: boolean | undefined;
  diagnostic?(message: string): void;
}

const START_TIMEOUT = 30_000;
/** The maximum time for a server to stop, in milliseconds. It ends open sessions after 15 seconds. */
const STOP_TIMEOUT = 30_000;
/** The maximum time to read the rest of the log after the server has ended, in milliseconds. */
const LOG_TIMEOUT = 1000;
/** The number of log lines that are kept. */
const KEPT_LINES = 1000;
/** The log lines in which a server reports its addresses. The one of HTTP comes last. */
const LISTENING = /\b((?:SMTP|LMTP|POP3|IMAP|HTTPS?)(?: with TLS)?) listening on tcp[46] \[?([0-9A-Fa-f.:]+?)\]?:(\d+)/;
/** The addresses at which a server is reached that listens on all of them. */
const LOOPBACK: Record<string, string> = { "0.0.0.0": "127.0.0.1", "::": "::1" };
/** The settings of the server, unless others are given. */
const DEFAULTS: Record<string, SettingValue> = {
  loglevel: "info",
  "smtp.addr": "127.0.0.1:0",
  "pop3.addr": "127.0.0.1:0",
  "imap.addr": "127.0.0.1:0",
  "web.addr": "127.0.0.1:0",
  // The server would load a script in the working directory.
  "lua.path": "",
};
/** The settings that this module needs to start and stop the server. */
const RESERVED = ["loglevel", "logfile", "stopwithstdin"];

/** A process of the server, and what its log says. */
class ServerProcess implements ServerHandle {
  readonly lines: string[] = [];
  readonly addresses: Record<string, Address> = {};
  /** Resolves to the exit status, or to a sentence if the process could not be run. */
  readonly ended: Promise<number | string>;
  /** Resolves when HTTP is served. */
  readonly listening: Promise<void>;
  readonly child: ChildProcess;

  constructor(program: string, flags: string[]) {
    // Variables for other servers, or for this client, must not configure this server.
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(RESTANTE|INBUCKET)_/.test(name)));
    // In its own process group, so that Ctrl-C in the terminal stops the tests first and then, by stop(), the server.
    const detached = process.platform !== "win32";
    this.child = spawn(program, flags, { env, detached, stdio: ["pipe", "ignore", "pipe"], windowsHide: true });
    // The server may end before its standard input is closed.
    this.child.stdin?.on("error", () => {});
    this.ended = new Promise((resolve) => {
      this.child.on("error", (error) => resolve(`Cannot run ${program}: ${error.message}`));
      // After the end of the log.
      this.child.on("close", (code) => resolve(code ?? 1));
    });
    this.child.on("exit", () => {
      // A process that the server has started can keep the pipe of the log open. What is in the pipe is read before the callback of
      // `setImmediate`, also if this process was suspended.
      const timer = setTimeout(() => setImmediate(() => this.child.stderr?.destroy()), LOG_TIMEOUT);
      this.child.on("close", () => clearTimeout(timer));
    });
    this.listening = new Promise((resolve) => this.#readLog(resolve));
  }

  get log(): string {
    return this.lines.join("\n");
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** Stops the server by the end of its standard input. */
  async stop(): Promise<void> {
    this.setReferenced(true);
    this.child.stdin?.end();
    const timer = setTimeout(() => this.child.kill("SIGKILL"), STOP_TIMEOUT);
    await this.ended;
    clearTimeout(timer);
  }

  /** Sets whether this process waits for the end of the server. */
  setReferenced(referenced: boolean): void {
    for (const handle of [this.child, this.child.stdin as Socket | null, this.child.stderr as Socket | null]) {
      if (referenced) handle?.ref();
      else handle?.unref();
    }
  }

  /** Reads the log until the server ends. A full pipe would block the server. */
  #readLog(isListening: () => void): void {
    let rest = "";
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        this.lines.push(line);
        const [, name, host, port] = LISTENING.exec(line) ?? [];
        if (name === undefined || host === undefined) continue;
        this.addresses[name] ??= { host: LOOPBACK[host] ?? host, port: Number(port) };
        if (name.startsWith("HTTP")) isListening();
      }
      this.lines.splice(0, this.lines.length - KEPT_LINES);
    });
  }
}

/** A server that was started by `start`, and its client. */
export class RunningServer extends Restante {
  readonly #server: ServerHandle;

  /** Use `start`. */
  constructor(server: ServerHandle, options: RestanteOptions) {
    super(options);
    this.#server = server;
  }

  /** The addresses by protocol: `SMTP`, `POP3`, `IMAP`, `HTTP`, and those that the settings add, such as `LMTP` and `SMTP with TLS`. */
  get addresses(): Readonly<Record<string, Address>> {
    return this.#server.addresses;
  }

  /** The host and port for SMTP. */
  get smtp(): Address {
    return this.#address("SMTP", "smtp.addr");
  }

  /** The host and port for POP3. */
  get pop3(): Address {
    return this.#address("POP3", "pop3.addr");
  }

  /** The host and port for IMAP. */
  get imap(): Address {
    return this.#address("IMAP", "imap.addr");
  }

  /** The process id of the server. */
  get pid(): number {
    return this.#server.pid;
  }

  /** The newest 1,000 lines of the log. */
  get log(): string {
    return this.#server.log;
  }

  /** Stops the server, and waits until it has ended. Does nothing if it has ended before. */
  async stop(): Promise<void> {
    await this.#server.stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #address(name: string, setting: string): Address {
    const address = this.addresses[name];
    if (address === undefined) throw new Error(`the server has no address for ${name}: ${setting} is empty`);
    return address;
  }
}

/**
 * Starts a server on free ports of the loopback interface. Returns its client when it is ready; call `stop()` at the end, or declare
 * the variable with `await using`. Throws `StartError` if there is no program or the server does not start: the text contains its log.
 * Variables of the environment do not configure the server.
 */
export async function start(options: StartOptions = {}): Promise<RunningServer> {
  const flags = flagsFor(options);
  const server = new ServerProcess(options.program || findProgram(), flags);
  const timeout = options.timeout ?? START_TIMEOUT;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<"late">((resolve) => (timer = setTimeout(resolve, timeout, "late")));
  const outcome = await Promise.race([server.listening, server.ended, late]);
  clearTimeout(timer);
  if (outcome !== undefined) {
    server.child.kill("SIGKILL");
    await server.ended;
    if (typeof outcome === "number") throw new StartError(`The restante server ended with status ${outcome}.`, server.log);
    throw new StartError(outcome === "late" ? `The restante server did not start within ${timeout} ms.` : outcome, server.log);
  }
  server.setReferenced(false);
  const scheme = server.addresses["HTTP"] ? "HTTP" : "HTTPS";
  const { host, port } = server.addresses[scheme] as Address;
  const url = `${scheme.toLowerCase()}://${host.includes(":") ? `[${host}]` : host}:${port}`;
  const { token, user } = options;
  return new RunningServer(server, { url, token, user, ...(options.fetch && { fetch: options.fetch }) });
}

/**
 * Starts a server for a test, and stops it after the test. The scope is the context of a test, or an object with the `after` of a file:
 *
 *     import { after, test } from "node:test";
 *
 *     test("sign up", async (t) => {
 *       const restante = await server(t);
 *     });
 *     const restante = await server({ after });
 *
 * If the test fails, its diagnostics contain the end of the log.
 */
export async function server(scope: TestScope, options: StartOptions = {}): Promise<RunningServer> {
  const running = await start(options);
  scope.after(async () => {
    if (scope.passed === false) scope.diagnostic?.(`Log of the restante server:\n${endOf(running.log)}`);
    await running.stop();
  });
  return running;
}

/** Returns the command-line flags for the settings. */
function flagsFor({ data, lua, settings = {} }: StartOptions): string[] {
  for (const name of RESERVED) {
    const isLogged = name === "loglevel" && ["info", "debug"].includes(String(settings[name]));
    if (name in settings && !isLogged) {
      throw new TypeError(`the setting ${name} cannot be changed: the server is started and stopped by it`);
    }
  }
  const values: Record<string, SettingValue> = { ...DEFAULTS, ...settings, logfile: "stderr", stopwithstdin: true };
  if (!values["web.addr"]) throw new TypeError("the setting web.addr is empty: the client needs HTTP");
  const addresses = [values["web.addr"], values["web.tlsaddr"] ?? ""].flat().join(",").split(",").map((address) => address.trim());
  if (addresses.every((address) => address === "" || address.startsWith("unix:"))) {
    throw new TypeError(
      `the setting web.addr = "${values["web.addr"]}" has no TCP address: the client needs one, for example 127.0.0.1:0`,
    );
  }
  if (data !== undefined) values["storage.path"] = data;
  if (lua !== undefined) values["lua.path"] = lua;
  return Object.entries(values).map(([name, value]) => `--${name.replaceAll(".", "-")}=${[value].flat().join(",")}`);
}
