/** Finds the restante program: the server and its commands. */

import { closeSync, openSync, readSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, join } from "node:path";

import { StartError } from "./errors.js";

/** The platforms that have a package with the program. */
const PLATFORMS = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64", "win32-x64"];

/**
 * Returns the path of the program: the one of the environment variable `RESTANTE_PROGRAM`, of the package for this platform, or of a
 * directory in `PATH`. Throws `StartError` if there is none.
 */
export function findProgram(): string {
  const found = process.env["RESTANTE_PROGRAM"] || packagedProgram() || programInPath();
  if (found) return found;
  const platform = currentPlatform();
  const others = "put the program into a directory of PATH, or set RESTANTE_PROGRAM to its path";
  throw new StartError(
    PLATFORMS.includes(platform)
      ? `The restante program is not installed: the package @restante/${platform} is missing. ` +
          `Install it with \`npm install --include=optional\`, ${others}.`
      : `There is no package with the restante program for ${platform}. Instead, ${others}.`,
  );
}

/** Returns the path of the program in the optional package for this platform. */
function packagedProgram(): string | undefined {
  try {
    const manifest = createRequire(import.meta.url).resolve(`@restante/${currentPlatform()}/package.json`);
    const program = join(dirname(manifest), "bin", programName());
    return isFile(program) ? program : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the path of the program in a directory of `PATH`. Scripts are ignored: the command of this package is one. */
function programInPath(): string | undefined {
  const directories = (process.env["PATH"] ?? "").split(delimiter).filter((directory) => directory !== "");
  return directories
    .map((directory) => join(directory, programName()))
    .find((path) => isFile(path) && !isScript(path));
}

function currentPlatform(): string {
  return `${process.platform}-${process.arch}`;
}

function programName(): string {
  return process.platform === "win32" ? "restante.exe" : "restante";
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function isScript(path: string): boolean {
  const start = Buffer.alloc(2);
  let file: number | undefined;
  try {
    file = openSync(path, "r");
    readSync(file, start, 0, start.length, 0);
  } catch {
    // A program that cannot be read may be executable.
    return false;
  } finally {
    if (file !== undefined) closeSync(file);
  }
  return start.toString("latin1") === "#!";
}
