/** The command `restante` of this package: runs the program with its arguments, input and output. */

import { spawn } from "node:child_process";

import { findProgram } from "./program.js";

/** How long after a signal another one counts as the same request, in milliseconds: npx repeats those of a terminal. */
const REPEATED_SIGNAL_INTERVAL = 1000;
/** How often the parent process is checked, in milliseconds. */
const PARENT_INTERVAL = 250;

/** Runs the program. This process ends as the program does: with the same exit status, or by the same signal. */
export function run(args: string[]): void {
  let program: string;
  try {
    program = findProgram();
  } catch (error) {
    fail((error as Error).message);
    return;
  }
  // The program reports variables with this prefix that it does not know.
  const { RESTANTE_PROGRAM: _, ...env } = process.env;
  const child = spawn(program, args, { stdio: "inherit", env });
  const signals: NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP"];
  let lastRequest = -Infinity;
  const forward = (signal: NodeJS.Signals) => {
    // Windows sends Ctrl-C to both processes, and has no other signals.
    if (process.platform === "win32") return;
    // A terminal sends Ctrl-C to both processes, too. For the server, a second signal is a request to end at once.
    if (signal === "SIGINT" && hasTerminal()) return;
    const now = performance.now();
    if (signal !== "SIGHUP") {
      if (now - lastRequest < REPEATED_SIGNAL_INTERVAL) return;
      lastRequest = now;
    }
    child.kill(signal);
  };
  for (const signal of signals) process.on(signal, forward);
  const checks = isRunByNpx() ? stopWithParent(() => forward("SIGTERM")) : undefined;
  child.on("error", (error) => fail(`Cannot run ${program}: ${error.message}`));
  child.on("exit", (code, signal) => {
    clearInterval(checks);
    for (const one of signals) process.off(one, forward);
    if (signal === null) process.exitCode = code ?? 1;
    else process.kill(process.pid, signal);
  });
}

function hasTerminal(): boolean {
  return [process.stdin, process.stdout, process.stderr].some((stream) => stream.isTTY);
}

/** Returns whether the parent is a shell that npx has started only for this command. */
function isRunByNpx(): boolean {
  return process.env["npm_command"] === "exec";
}

/** Calls a function when the parent ends. npx sends a signal to end only to its shell, and some shells do not forward it. */
function stopWithParent(stop: () => void): ReturnType<typeof setInterval> {
  const parent = process.ppid;
  const checks = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(checks);
    stop();
  }, PARENT_INTERVAL);
  return checks;
}

function fail(text: string): void {
  process.stderr.write(`restante: ${text}\n`);
  process.exitCode = 1;
}
