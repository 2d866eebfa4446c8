// Writes the bundle that the page loads: dist/app.js and its source map, from js/main.js and its imports. Both are in the
// repository, so that the program can be built without Node. The bytes are the same on every machine.
//
// usage: node ui/bundle.mjs [--check]
//
// With --check nothing is written: the command fails if the files are out of date.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const UI = fileURLToPath(new URL('.', import.meta.url));
const SOURCES = 'js';
const OUT = 'dist/app.js';
/** The oldest browsers that docs/web.md names. */
const BROWSERS = ['chrome123', 'firefox133', 'safari17.5'];

const args = process.argv.slice(2);
if (args.some((arg) => arg !== '--check')) fail('usage: node ui/bundle.mjs [--check]');
const files = await bundle();
const stale = files.filter(({ name, content }) => read(name) !== content);
if (args.includes('--check')) {
  if (stale.length > 0) fail('ui/dist is out of date: run `node ui/bundle.mjs`');
} else {
  mkdirSync(path.join(UI, path.dirname(OUT)), { recursive: true });
  for (const { name, content } of stale) writeFileSync(path.join(UI, name), content);
}

/** Returns the names and contents of the bundle and of its source map. */
async function bundle() {
  const { build } = await import('esbuild').catch(() => fail('esbuild is missing: run `npm ci --prefix ui`'));
  const result = await build({
    absWorkingDir: UI,
    entryPoints: [`${SOURCES}/main.js`],
    outfile: OUT,
    bundle: true,
    minify: true,
    format: 'esm',
    target: BROWSERS,
    charset: 'utf8',
    legalComments: 'none',
    sourcemap: true,
    // A line for the hashes, so that the source map counts it.
    banner: { js: '/* */' },
    write: false,
    logLevel: 'warning',
  }).catch(() => process.exit(1));
  const toName = (file) => path.relative(UI, file).split(path.sep).join('/');
  const outputs = result.outputFiles.map((file) => ({ name: toName(file.path), content: file.text }));
  return outputs.map(({ name, content }) => ({ name, content: name === OUT ? withHashes(content) : content }));
}

/**
 * Returns the bundle with the hashes of the sources and of its other lines in its first line. They are compared when the program is
 * built and tested, see crates/http-web/build/bundle.rs.
 */
function withHashes(bundle) {
  const code = bundle.slice(bundle.indexOf('\n') + 1);
  const hash = createHash('sha256').update(code).digest('hex');
  return `/* sources: ${hashSources()}, bundle: ${hash} */\n${code}`;
}

/** Returns the SHA-256 hash over the hashes of the path and of the content of each source, in the order of the paths. */
function hashSources() {
  const sha256 = (data) => createHash('sha256').update(data);
  const all = createHash('sha256');
  for (const name of sourcePaths(SOURCES).sort()) {
    all.update(sha256(name).digest());
    all.update(sha256(readFileSync(path.join(UI, name))).digest());
  }
  return all.digest('hex');
}

/** Returns the paths of all files in a folder and its subfolders, without hidden ones. */
function sourcePaths(folder) {
  const entries = readdirSync(path.join(UI, folder), { withFileTypes: true }).filter(({ name }) => !name.startsWith('.'));
  return entries.flatMap((entry) => (entry.isDirectory() ? sourcePaths(`${folder}/${entry.name}`) : `${folder}/${entry.name}`));
}

/** Returns the content of a generated file, or null if it does not exist. */
function read(name) {
  try {
    return readFileSync(path.join(UI, name), 'utf8');
  } catch {
    return null;
  }
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
